package subscriptions_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"commerce/auth/locale"
	"commerce/deploy/assert"
	"commerce/subscriptions"
)

// streamed reads a whole stream of store 1 in English, after the text of a cursor.
func (b bundle) streamed(format, after string) string {
	query := ""
	if after != "" {
		query = "?after=" + url.QueryEscape(after)
	}
	return b.accepting(format, "/subscriptions/changes"+query, 1, "en").Body.String()
}

const ndjsonType, csvType = "application/x-ndjson", "text/csv"

// nextLine is the line of a cursor in each format.
var nextLine = regexp.MustCompile(`(?m)^(?:{"next":"|next,)([\w-]+)[^\n]*\n`)

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

func TestStream_HasACursorEvery1000LinesAndLast(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][]int{0: {0}, 1: {1}, 1000: {1000}, 1001: {1000, 1001}, 2500: {1000, 2000, 2500}} {
		lines := newBundle(subscriptions.NewMemory(nil, many(n)), stores()...).streamed(ndjsonType, "")
		var cursors []int // numbers of other lines before each
		for i, at := range nextLine.FindAllStringIndex(lines, -1) {
			cursors = append(cursors, strings.Count(lines[:at[0]], "\n")-i)
		}
		assert.Equal(t, cursors, want, "%d subscriptions: cursors after", n)
		assert.Equal(t, strings.Count(lines, "\n"), n+len(want), "%d subscriptions: lines", n)
	}
}

func TestStream_CutAtAnyCursorGoesOnThere(t *testing.T) {
	t.Parallel()
	b := newBundle(subscriptions.NewMemory(nil, many(2500)), stores()...)
	for _, format := range []string{ndjsonType, csvType} {
		whole, header := b.streamed(format, ""), ""
		if format == csvType {
			header = whole[:strings.Index(whole, "\n")+1]
		}
		cursors := nextLine.FindAllStringSubmatchIndex(whole, -1)
		assert.Require(t, len(cursors) == 3, "%s: %d cursors", format, len(cursors))
		for i, at := range cursors {
			read := whole[:at[1]]
			if i == len(cursors)-1 { // after the last cursor there is only that cursor again
				read = whole[:at[0]]
			}
			rest := b.streamed(format, whole[at[2]:at[3]])
			together := read + strings.TrimPrefix(rest, header)
			assert.That(t, together == whole, "%s: cut after %d bytes: %d together", format, len(read), len(together))
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
		asCSV := b.streamed(csvType, "")
		table := tableOf(t, strings.ReplaceAll(asCSV, "\r\n cell", "\r\r\n cell")) // encoding/csv turns \r\n into \n
		want := [][]string{slices.Clone(table[0])}
		for line := range strings.Lines(b.streamed(ndjsonType, "")) {
			want = append(want, cellsOf(t, table[0], []byte(line)))
		}
		for _, row := range slices.Concat(want, table) {
			row[1] = "" // the cursors of two streams differ
		}
		assert.Equal(t, table, want, "(-NDJSON +CSV)")
	})
}

func tableOf(t *testing.T, text string) [][]string {
	t.Helper()
	table, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	assert.Require(t, err == nil && len(table) >= 2, "%d rows, %v", len(table), err)
	return table
}

// cellsOf returns the cells for a line of NDJSON.
func cellsOf(t *testing.T, columns []string, line []byte) []string {
	t.Helper()
	var of struct {
		Subscription json.RawMessage
		Next         string
	}
	assert.NoError(t, json.Unmarshal(line, &of))
	values := map[string]string{"kind": "next", "cursor": of.Next}
	if of.Subscription != nil {
		values = map[string]string{"kind": "row"}
		flatten(t, values, "", of.Subscription)
	}
	cells := make([]string, len(columns))
	for i, name := range columns {
		cells[i] = values[name]
		delete(values, name)
	}
	assert.That(t, len(values) == 0, "no columns for %v", values)
	return cells
}

func flatten(t *testing.T, values map[string]string, prefix string, object json.RawMessage) {
	t.Helper()
	var members map[string]json.RawMessage
	assert.NoError(t, json.Unmarshal(object, &members))
	for name, value := range members {
		switch text := ""; {
		case string(value) == "null":
		case value[0] == '{' && name != "metadata":
			flatten(t, values, prefix+name+".", value)
		case json.Unmarshal(value, &text) == nil:
			values[prefix+name] = text
		default:
			values[prefix+name] = string(value)
		}
	}
}

func TestStream_CSVHasNoFormulas(t *testing.T) {
	t.Parallel()
	marked := []string{ // ^ is where a ' is added
		"^=1+1", "^+1", "^-1", "^@SUM(A1)", "^\tx", "^\rx", "'x", "1=1", "a;b\nc", "^\nx", "^＝1", "^＋1", "^－1", "^＠A1",
		"a;^=1", "a\n^-1;^＠A1", "^\n^\n^=1", `a;""^=1`,
	}
	all := many(len(marked))
	for i := range all {
		all[i].ExternalCustomerID = strings.ReplaceAll(marked[i], "^", "")
	}
	all[0].Metadata = []byte(`{"note": "=1;=1;＝1"}`)
	table := tableOf(t, newBundle(subscriptions.NewMemory(nil, all), stores()...).streamed(csvType, ""))
	at := slices.Index(table[0], "external_customer_id")
	for i, text := range marked {
		assert.Equal(t, table[1+i][at], strings.ReplaceAll(text, "^", "'"), "external_customer_id")
	}
	assert.Equal(t, table[1][slices.Index(table[0], "metadata")], `{"note": "=1;\u003d1;\uff1d1"}`, "metadata")
}

func TestStream_PlainCSVHasOnlyRows(t *testing.T) {
	t.Parallel()
	m := subscriptions.NewMemory(nil, many(2500))
	m.Delete(1, 7, now)
	b := newBundle(m, stores()...)
	var want [][]string
	for _, row := range tableOf(t, b.streamed(csvType, "")) {
		if row[0] == "kind" || row[0] == "row" {
			want = append(want, row[2:])
		}
	}
	plain := b.accepting(csvType, "/subscriptions/changes?plain=1", 1, "en").Body.String()
	assert.Equal(t, tableOf(t, plain), want, "plain (-rows of the whole +plain)")
	assert.Equal(t, want[0][0], "id", "first column")
	_, _, end := follow(t, m, 1, subscriptions.Cursor{}, 1000)
	none := b.accepting(csvType, "/subscriptions/changes?plain=1&after="+end.Text(1), 1, "en").Body.String()
	assert.Equal(t, none, plain[:strings.Index(plain, "\n")+1], "without changes, the header is all")
	for query, format := range map[string]string{
		"plain=0": csvType, "plain=": csvType, "plain=true": csvType, "plain=1&plain=1": csvType, "plain=1": ndjsonType, "plain=1&limit=1": "",
	} {
		w := b.accepting(format, "/subscriptions/changes?"+query, 1, "en")
		assert.That(t, strings.Contains(w.Body.String(), `"Errors":{"plain":`), "%s of %q: %s", query, format, w.Body)
	}
}

func TestStream_HasDeletions(t *testing.T) {
	t.Parallel()
	pool := filled(t, sampleData())
	b := newBundle(patient(pool), stores()...)
	_, _, end := follow(t, b.source, 1, subscriptions.Cursor{}, 100)
	settle(t, pool, "DELETE FROM subscriptions WHERE store_id = 1 AND id IN (5001, 5002)")
	asJSON := b.streamed(ndjsonType, end.Text(1))
	lines := strings.Split(asJSON, "\n")
	table := tableOf(t, b.streamed(csvType, end.Text(1)))
	assert.Require(t, len(lines) == 4 && len(table) == 4, "%s\n%v", asJSON, table)
	id, at := slices.Index(table[0], "id"), slices.Index(table[0], "deleted_at")
	for i, want := range []int64{5001, 5002} {
		var l struct {
			Deleted struct {
				ID int64
				At string `json:"deleted_at"`
			}
		}
		assert.NoError(t, json.Unmarshal([]byte(lines[i]), &l))
		deleted, err := time.Parse("2006-01-02T15:04:05.000000Z", l.Deleted.At)
		assert.That(t, l.Deleted.ID == want && err == nil && time.Since(deleted) < time.Hour, "%s (%v)", lines[i], err)
		row := table[1+i]
		assert.Equal(t, []string{row[0], row[id], row[at]}, []string{"deleted", fmt.Sprint(want), l.Deleted.At}, "CSV")
	}
}

// An error ends a stream: no later page follows.
func TestStream_EndsWithAnError(t *testing.T) {
	t.Parallel()
	config := configOf(subscriptions.NewMemory(nil, many(3000)), stores()...)
	checks := 0
	config.Stopping = func() bool { checks++; return checks > 1 }
	text := bundle{config.Source, newEngine(config)}.streamed(ndjsonType, "")
	assert.That(t, strings.Count(text, "\n") == 1001 && strings.Contains(text, "the process is stopping"),
		"%d lines, which end with %s", strings.Count(text, "\n"), text[strings.LastIndex(text, "\n")+1:])
	_, _, other := follow(t, config.Source, 1, subscriptions.Cursor{}, 1000)
	text = newBundle(subscriptions.NewMemory(nil, nil), stores()...).streamed(csvType, other.Text(1))
	assert.That(t, strings.Contains(text, `"cursor_expired"`), "%s", text)
}

// follow reads all changes of a store after a cursor, limit at a time.
func follow(t *testing.T, s subscriptions.Source, store int64, after subscriptions.Cursor, limit int) (changed, deleted []int64, next subscriptions.Cursor) {
	t.Helper()
	for {
		c := assert.Must(s.Changes(t.Context(), store, subscriptions.ChangesQuery{After: after, Limit: limit, Language: locale.En}))(t)
		n := len(c.Changed) + len(c.Deleted)
		assert.Require(t, n <= limit && (!c.More || n >= limit), "%d changes, more: %v, with limit %d", n, c.More, limit)
		for _, s := range c.Changed {
			changed = append(changed, s.ID)
		}
		for _, d := range c.Deleted {
			deleted = append(deleted, d.ID)
		}
		if after = c.Next; !c.More {
			return changed, deleted, after
		}
	}
}

func TestChanges_FromTheBeginningAreAllSubscriptions(t *testing.T) {
	t.Parallel()
	d := sampleData()
	onEach(t, d, func(t *testing.T, b bundle) {
		for _, limit := range []int{1, 2, 100, 1000} {
			changed, deleted, next := follow(t, b.source, 1, subscriptions.Cursor{}, limit)
			slices.Sort(changed)
			want := idsOf(d.all, 1, nil)
			slices.Reverse(want)
			assert.Equal(t, changed, want, "limit %d: changed", limit)
			again, _, at := follow(t, b.source, 1, next, limit)
			assert.That(t, len(deleted)+len(again) == 0 && at == next, "limit %d: %v, then %v", limit, deleted, again)
		}
	})
}
