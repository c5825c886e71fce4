package subscriptions_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart/money"
	"commerce/cart/wire"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions"
)

// streamed reads a whole stream of store 1 in English, as its lines and the number of pages.
func streamed(t *testing.T, s subscriptions.Stream) (lines []byte, pages int) {
	t.Helper()
	s.Now = func() time.Time { return now }
	for page, err := range s.Pages(t.Context(), wire.NewWriter(nil, locale.En, money.NewFormatter())) {
		if err != nil {
			t.Fatal(err)
		}
		lines, pages = append(lines, page.Lines...), pages+1
	}
	return lines, pages
}

// many returns n subscriptions of store 1.
func many(n int) []subscriptions.Subscription {
	all := make([]subscriptions.Subscription, n)
	sample := sampleData().all
	for i := range all {
		all[i] = sample[i%40]
		all[i].StoreID, all[i].ID = 1, int64(i+1)
	}
	return all
}

func shop(t *testing.T) *store.Store {
	t.Helper()
	return stores()[0]
}

func TestStream_HasACursorEvery1000LinesAndLast(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][]int{0: {0}, 1: {1}, 1000: {1000}, 1001: {1000, 1001}, 2500: {1000, 2000, 2500}} {
		source := subscriptions.NewMemory(nil, many(n))
		lines, _ := streamed(t, subscriptions.Stream{Source: source, Store: shop(t), Format: subscriptions.NDJSON})
		var cursors []int // numbers of lines before each
		others := 0
		for line := range bytes.Lines(lines) {
			if bytes.HasPrefix(line, []byte(`{"next":`)) {
				cursors = append(cursors, others)
			} else {
				others++
			}
		}
		if diff := cmp.Diff(want, cursors); diff != "" || others != n {
			t.Errorf("%d subscriptions: %d lines, cursors after (-want +got):\n%s", n, others, diff)
		}
	}
}

func TestStream_CutAtAnyCursorGoesOnThere(t *testing.T) {
	t.Parallel()
	for _, format := range []subscriptions.Format{subscriptions.NDJSON, subscriptions.CSV} {
		source := subscriptions.NewMemory(nil, many(2500))
		whole, _ := streamed(t, subscriptions.Stream{Source: source, Store: shop(t), Format: format})
		header := ""
		if format == subscriptions.CSV {
			header, _, _ = strings.Cut(string(whole), "\r\n")
			header += "\r\n"
		}
		s := subscriptions.Stream{Source: source, Store: shop(t), Format: format, Now: func() time.Time { return now }}
		read := ""
		for page, err := range s.Pages(t.Context(), wire.NewWriter(nil, locale.En, money.NewFormatter())) {
			if err != nil {
				t.Fatal(err)
			}
			read += string(page.Lines)
			rest, _ := streamed(t, subscriptions.Stream{Source: source, Store: shop(t), Format: format, After: page.Next})
			together := read + strings.TrimPrefix(string(rest), header)
			if page.Changes < 1000 { // after the last cursor there is only that cursor again
				together = read
			}
			if together != string(whole) {
				t.Errorf("%s: cut after %d bytes: %d bytes together, want %d", format, len(read), len(together), len(whole))
			}
		}
	}
}

// Each line of CSV has the values of the same line of NDJSON.
func TestStream_CSVHasTheValuesOfNDJSON(t *testing.T) {
	t.Parallel()
	d := sampleData()
	for i := range d.all {
		switch i % 4 {
		case 0:
			d.all[i].ExternalCustomerID = "a \"quoted\", \r\n cell;ü"
		case 1:
			d.all[i].Metadata = []byte(`{"note": "=1+1, \"so\"", "deep": {"er": [1, null]}}`)
		}
	}
	onEach(t, d, func(t *testing.T, b bundle) {
		asJSON, _ := streamed(t, subscriptions.Stream{Source: b.source, Store: shop(t), Format: subscriptions.NDJSON})
		asCSV, _ := streamed(t, subscriptions.Stream{Source: b.source, Store: shop(t), Format: subscriptions.CSV})
		r := csv.NewReader(strings.NewReader(strings.ReplaceAll(string(asCSV), "\r\n cell", "\r\r\n cell"))) // encoding/csv turns \r\n into \n
		table, err := r.ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		want := [][]string{slices.Clone(table[0])}
		for line := range bytes.Lines(asJSON) {
			want = append(want, cellsOf(t, table[0], line))
		}
		for _, row := range slices.Concat(want, table) {
			row[1] = "" // the cursors of two streams differ
		}
		if diff := cmp.Diff(want, table); diff != "" {
			t.Errorf("(-NDJSON +CSV):\n%s", diff)
		}
	})
}

// cellsOf returns the cells for a line of NDJSON.
func cellsOf(t *testing.T, columns []string, line []byte) []string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{"kind": "row"}
	var raw struct {
		Subscription struct{ Metadata json.RawMessage }
	}
	_ = json.Unmarshal(line, &raw)
	if next, ok := object["next"].(string); ok {
		values["kind"], values["cursor"] = "next", next
	} else {
		flatten(values, "", object["subscription"].(map[string]any))
		if m := raw.Subscription.Metadata; string(m) != "null" {
			values["metadata"] = string(m)
		}
	}
	cells := make([]string, len(columns))
	for i, name := range columns {
		cells[i] = values[name]
		delete(values, name)
	}
	if len(values) > 0 {
		t.Errorf("no columns for %v", values)
	}
	return cells
}

func flatten(values map[string]string, prefix string, object map[string]any) {
	for name, value := range object {
		switch v := value.(type) {
		case nil:
		case map[string]any:
			if name != "metadata" {
				flatten(values, prefix+name+".", v)
			}
		case string:
			values[prefix+name] = v
		default:
			values[prefix+name] = fmt.Sprint(v)
		}
	}
}

func TestStream_CSVHasNoFormulas(t *testing.T) {
	t.Parallel()
	all := many(8)
	texts := []string{"=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "'x", "1=1"}
	for i := range all {
		all[i].ExternalCustomerID = texts[i]
	}
	lines, _ := streamed(t, subscriptions.Stream{Source: subscriptions.NewMemory(nil, all), Store: shop(t), Format: subscriptions.CSV})
	table, err := csv.NewReader(bytes.NewReader(lines)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.Index(table[0], "external_customer_id")
	var got []string
	for _, row := range table[1:9] {
		got = append(got, row[at])
	}
	want := []string{"'=1+1", "'+1", "'-1", "'@SUM(A1)", "'\tx", "'\rx", "'x", "1=1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStream_HasDeletions(t *testing.T) {
	t.Parallel()
	pool := filled(t, sampleData())
	source := patient(pool)
	_, _, end := follow(t, source, 1, subscriptions.Cursor{}, 100)
	if _, err := pool.Exec(t.Context(), "DELETE FROM subscriptions WHERE store_id = 1 AND id IN (5001, 5002)"); err != nil {
		t.Fatal(err)
	}
	ephemeral.Settle(t, pool)
	asJSON, _ := streamed(t, subscriptions.Stream{Source: source, Store: shop(t), Format: subscriptions.NDJSON, After: end})
	var ids []int64
	for line := range bytes.Lines(asJSON) {
		var l struct {
			Deleted *struct {
				ID int64
				At string `json:"deleted_at"`
			}
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		if l.Deleted != nil {
			ids = append(ids, l.Deleted.ID)
			if at, err := time.Parse("2006-01-02T15:04:05.000000Z", l.Deleted.At); err != nil || time.Since(at) > time.Hour {
				t.Errorf("deleted at %s (%v)", l.Deleted.At, err)
			}
		}
	}
	if diff := cmp.Diff([]int64{5001, 5002}, ids); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	asCSV, _ := streamed(t, subscriptions.Stream{Source: source, Store: shop(t), Format: subscriptions.CSV, After: end})
	table, err := csv.NewReader(bytes.NewReader(asCSV)).ReadAll()
	if err != nil || len(table) != 4 {
		t.Fatalf("%v (%v)", table, err)
	}
	id, at := slices.Index(table[0], "id"), slices.Index(table[0], "deleted_at")
	for i, row := range table[1:3] {
		if row[0] != "deleted" || row[id] != strconv.FormatInt(ids[i], 10) || row[at] == "" {
			t.Errorf("%v", row)
		}
	}
}

// An error ends a stream: no later page follows.
func TestStream_EndsWithAnError(t *testing.T) {
	t.Parallel()
	w := func() *wire.Writer { return wire.NewWriter(nil, locale.En, money.NewFormatter()) }
	source := subscriptions.NewMemory(nil, many(3000))
	stopped := errors.New("stopped")
	checks := 0
	s := subscriptions.Stream{Source: source, Store: shop(t), Format: subscriptions.NDJSON, Check: func() error {
		if checks++; checks > 1 {
			return stopped
		}
		return nil
	}}
	pages := 0
	var failed error
	for _, err := range s.Pages(context.Background(), w()) {
		if failed = err; err == nil {
			pages++
		}
	}
	if pages != 1 || !errors.Is(failed, stopped) {
		t.Errorf("%d pages, %v, want an error after the first", pages, failed)
	}
	s.Source, s.Check = subscriptions.NewMemory(nil, nil), nil
	_, _, s.After = follow(t, source, 1, subscriptions.Cursor{}, 1000)
	for _, err := range s.Pages(t.Context(), w()) {
		if !errors.Is(err, subscriptions.ErrCursorExpired) {
			t.Error(err)
		}
	}
}
