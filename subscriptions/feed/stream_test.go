package feed_test

import (
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
	"commerce/subscriptions/feed"
	"commerce/subscriptions/formats"
	"commerce/subscriptions/recorded"
	"commerce/subscriptions/suite"
)

// streamed reads a whole stream of store 1 in English, after the text of a cursor.
func streamed(b suite.Bundle, format formats.Format, after string) string {
	query := ""
	if after != "" {
		query = "?after=" + url.QueryEscape(after)
	}
	return b.Accepting(format, "/subscriptions/changes"+query, 1, "en").Body.String()
}

// nextLine is the line of a cursor in each format.
var nextLine = regexp.MustCompile(`(?m)^(?:{"next":"|next,)([\w-]+)[^\n]*\n`)

func TestStream_HasACursorEvery1000LinesAndLast(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][]int{0: {0}, 1: {1}, 1000: {1000}, 1001: {1000, 1001}, 2500: {1000, 2000, 2500}} {
		lines := streamed(suite.NewBundle(suite.NewMemory(nil, suite.Many(n))), formats.NDJSON, "")
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
	b := suite.NewBundle(suite.NewMemory(nil, suite.Many(2500)))
	for _, format := range []formats.Format{formats.NDJSON, formats.CSV} {
		whole, header := streamed(b, format, ""), ""
		if format == formats.CSV {
			header = whole[:strings.Index(whole, "\n")+1]
		}
		cursors := nextLine.FindAllStringSubmatchIndex(whole, -1)
		assert.Require(t, len(cursors) == 3, "%s: %d cursors", format, len(cursors))
		for i, at := range cursors {
			read := whole[:at[1]]
			if i == len(cursors)-1 { // after the last cursor there is only that cursor again
				read = whole[:at[0]]
			}
			rest := streamed(b, format, whole[at[2]:at[3]])
			together := read + strings.TrimPrefix(rest, header)
			assert.That(t, together == whole, "%s: cut after %d bytes: %d together", format, len(read), len(together))
		}
	}
}

// Each line of CSV has the values of the same line of NDJSON.
func TestStream_CSVHasTheValuesOfNDJSON(t *testing.T) {
	t.Parallel()
	d := suite.SampleData()
	for i := range d.All {
		switch i % 4 {
		case 0:
			d.All[i].ExternalCustomerID = "a \"quoted\", \r\n cell;ü"
		case 1:
			d.All[i].Metadata = []byte(`{"note": "=1+1, \"so\"", "deep": {"er": [1, null]}}`)
		}
	}
	suite.OnEach(t, d, func(t *testing.T, b suite.Bundle) {
		asCSV := streamed(b, formats.CSV, "")
		table := suite.TableOf(t, strings.ReplaceAll(asCSV, "\r\n cell", "\r\r\n cell")) // encoding/csv turns \r\n into \n
		want := [][]string{slices.Clone(table[0])}
		for line := range strings.Lines(streamed(b, formats.NDJSON, "")) {
			want = append(want, cellsOf(t, table[0], []byte(line)))
		}
		for _, row := range slices.Concat(want, table) {
			row[1] = "" // the cursors of two streams differ
		}
		assert.Equal(t, table, want, "(-NDJSON +CSV)")
	})
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
		suite.Flatten(t, values, "", of.Subscription)
	}
	cells := make([]string, len(columns))
	for i, name := range columns {
		cells[i] = values[name]
		delete(values, name)
	}
	assert.That(t, len(values) == 0, "no columns for %v", values)
	return cells
}

func TestStream_CSVHasNoFormulas(t *testing.T) {
	t.Parallel()
	marked := []string{ // ^ is where a ' is added
		"^=1+1", "^+1", "^-1", "^@SUM(A1)", "^\tx", "^\rx", "'x", "1=1", "a;b\nc", "^\nx", "^＝1", "^＋1", "^－1", "^＠A1",
		"a;^=1", "a\n^-1;^＠A1", "^\n^\n^=1", `a;""^=1`,
	}
	all := suite.Many(len(marked))
	for i := range all {
		all[i].ExternalCustomerID = strings.ReplaceAll(marked[i], "^", "")
	}
	all[0].Metadata = []byte(`{"note": "=1;=1;＝1"}`)
	table := suite.TableOf(t, streamed(suite.NewBundle(suite.NewMemory(nil, all)), formats.CSV, ""))
	at := slices.Index(table[0], "external_customer_id")
	for i, text := range marked {
		assert.Equal(t, table[1+i][at], strings.ReplaceAll(text, "^", "'"), "external_customer_id")
	}
	assert.Equal(t, table[1][slices.Index(table[0], "metadata")], `{"note": "=1;\u003d1;\uff1d1"}`, "metadata")
}

func TestStream_PlainCSVHasOnlyRows(t *testing.T) {
	t.Parallel()
	m := suite.NewMemory(nil, suite.Many(2500))
	m.Delete(1, 7, suite.Now)
	b := suite.NewBundle(m)
	var want [][]string
	for _, row := range suite.TableOf(t, streamed(b, formats.CSV, "")) {
		if row[0] == "kind" || row[0] == "row" {
			want = append(want, row[2:])
		}
	}
	plain := b.Accepting(formats.CSV, "/subscriptions/changes?plain=1", 1, "en").Body.String()
	assert.Equal(t, suite.TableOf(t, plain), want, "plain (-rows of the whole +plain)")
	assert.Equal(t, want[0][0], "id", "first column")
	_, _, end := follow(t, m, 1, recorded.Cursor{}, 1000)
	none := b.Accepting(formats.CSV, "/subscriptions/changes?plain=1&after="+feed.OfChanges.Text(end, 1), 1, "en").Body.String()
	assert.Equal(t, none, plain[:strings.Index(plain, "\n")+1], "without changes, the header is all")
	for query, format := range map[string]formats.Format{
		"plain=0": formats.CSV, "plain=": formats.CSV, "plain=true": formats.CSV, "plain=1&plain=1": formats.CSV, "plain=1": formats.NDJSON, "plain=1&limit=1": "",
	} {
		w := b.Accepting(format, "/subscriptions/changes?"+query, 1, "en")
		assert.That(t, strings.Contains(w.Body.String(), `"Errors":{"plain":`), "%s of %q: %s", query, format, w.Body)
	}
}

func TestStream_HasDeletions(t *testing.T) {
	t.Parallel()
	pool := suite.Filled(t, suite.SampleData())
	b := suite.NewBundle(suite.Patient(pool))
	_, _, end := follow(t, b.Source, 1, recorded.Cursor{}, 100)
	settle(t, pool, "DELETE FROM subscriptions WHERE store_id = 1 AND id IN (5001, 5002)")
	asJSON := streamed(b, formats.NDJSON, feed.OfChanges.Text(end, 1))
	lines := strings.Split(asJSON, "\n")
	table := suite.TableOf(t, streamed(b, formats.CSV, feed.OfChanges.Text(end, 1)))
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
	source := suite.NewMemory(nil, suite.Many(3000))
	config := suite.ConfigOf(source)
	checks := 0
	config.Stopping = func() bool { checks++; return checks > 1 }
	text := streamed(suite.Bundle{Engine: suite.NewEngine(config, feed.Calls(source))}, formats.NDJSON, "")
	assert.That(t, strings.Count(text, "\n") == 1001 && strings.Contains(text, "the process is stopping"),
		"%d lines, which end with %s", strings.Count(text, "\n"), text[strings.LastIndex(text, "\n")+1:])
	_, _, other := follow(t, source, 1, recorded.Cursor{}, 1000)
	text = streamed(suite.NewBundle(suite.NewMemory(nil, nil)), formats.CSV, feed.OfChanges.Text(other, 1))
	assert.That(t, strings.Contains(text, `"cursor_expired"`), "%s", text)
}

// follow reads all changes of a store after a cursor, limit at a time.
func follow(t *testing.T, s feed.Source, store int64, after recorded.Cursor, limit int) (changed, deleted []int64, next recorded.Cursor) {
	t.Helper()
	for {
		c := assert.Must(s.Changes(t.Context(), store, feed.Query{After: after, Limit: limit, Language: locale.En}))(t)
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
	d := suite.SampleData()
	suite.OnEach(t, d, func(t *testing.T, b suite.Bundle) {
		for _, limit := range []int{1, 2, 100, 1000} {
			changed, deleted, next := follow(t, b.Source, 1, recorded.Cursor{}, limit)
			slices.Sort(changed)
			want := []int64{}
			for _, s := range d.All {
				if s.StoreID == 1 {
					want = append(want, s.ID)
				}
			}
			slices.Sort(want)
			assert.Equal(t, changed, want, "limit %d: changed", limit)
			again, _, at := follow(t, b.Source, 1, next, limit)
			assert.That(t, len(deleted)+len(again) == 0 && at == next, "limit %d: %v, then %v", limit, deleted, again)
		}
	})
}
