package history_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"commerce/cart/money"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions"
	"commerce/subscriptions/history"
	"commerce/subscriptions/recorded"
	"commerce/subscriptions/suite"
)

// events reads a page of events, or of a history.
func events(t *testing.T, b suite.Bundle, path string) (all []map[string]any, next string, more bool) {
	t.Helper()
	w := b.Do(path, 1, "en")
	var body struct {
		Data struct {
			Data    []map[string]any
			Next    *string
			HasMore bool `json:"has_more"`
		}
	}
	err := json.Unmarshal(w.Body.Bytes(), &body)
	assert.Require(t, err == nil && w.Code == http.StatusOK, "GET %s: %d %s (%v)", path, w.Code, w.Body, err)
	if body.Data.Next != nil {
		next = *body.Data.Next
	}
	return body.Data.Data, next, body.Data.HasMore
}

// eventReader follows the events of store 1.
type eventReader struct {
	suite.Bundle
	after string
	seen  []map[string]any
}

// read reads events until there are none.
func (r *eventReader) read(t *testing.T, limit int) {
	t.Helper()
	for more := true; more; {
		path := fmt.Sprintf("/subscriptions/events?limit=%d", limit)
		if r.after != "" {
			path += "&after=" + r.after
		}
		var page []map[string]any
		page, r.after, more = events(t, r.Bundle, path)
		assert.Require(t, len(page) <= limit, "a page of %d has %d events", limit, len(page))
		r.seen = append(r.seen, page...)
	}
}

// wantHistories compares the events with the histories. Overlapping transactions are in another order there. A history loses its cards
// when its subscription is deleted.
func (r *eventReader) wantHistories(t *testing.T, ids ...int64) {
	t.Helper()
	got := map[int64][]map[string]any{}
	for _, e := range r.seen {
		id := int64(e["subscription_id"].(float64))
		delete(e, "subscription_id")
		got[id] = append(got[id], e)
	}
	for _, id := range ids {
		all := got[id]
		slices.SortStableFunc(all, func(a, b map[string]any) int { return cmp.Compare(a["at"].(string), b["at"].(string)) })
		want := []map[string]any{}
		for path, more := fmt.Sprintf("/subscriptions/%d/history?limit=100", id), true; more; {
			var page []map[string]any
			var next string
			page, next, more = events(t, r.Bundle, path)
			want, path = append(want, page...), fmt.Sprintf("/subscriptions/%d/history?limit=100&after=%s", id, next)
		}
		slices.Reverse(want)
		slices.SortStableFunc(want, func(a, b map[string]any) int {
			return cmp.Or(cmp.Compare(a["at"].(string), b["at"].(string)), cmp.Compare(kind(a), kind(b)))
		})
		deleted := ""
		for _, e := range want {
			if e["event"] == "status" && e["to"] == nil {
				deleted = e["at"].(string)
			}
		}
		all = slices.DeleteFunc(all, func(e map[string]any) bool { return e["event"] == "card" && e["at"].(string) <= deleted })
		assert.Equal(t, all, want, "the events of subscription %d (-followed +history)", id)
	}
}

func kind(e map[string]any) int {
	return slices.Index(history.Kinds[:], history.Kind(e["event"].(string)))
}

func TestEvents_OfMemoryAreThoseOfTheHistories(t *testing.T) {
	t.Parallel()
	m := suite.NewMemory(nil, suite.SampleData().All)
	r := eventReader{Bundle: suite.NewBundle(m)}
	random := rand.New(rand.NewPCG(7, uint64(time.Now().UnixNano())))
	for i := range 300 {
		id := 5001 + random.Int64N(4)
		m.Now = func() time.Time { return suite.Now.Add(time.Duration(i) * time.Second) }
		switch s, err := m.Get(t.Context(), 1, id, "en"); {
		case err != nil:
			m.Put(subscriptions.Subscription{ID: id, StoreID: 1, Status: subscriptions.Active, Currency: "SAR"})
		case random.IntN(8) == 0:
			m.Delete(1, id, m.Now())
		default:
			s.Status, s.Price, s.CancelAtPeriodEnd = subscriptions.Statuses[random.IntN(6)], money.Amount(100*random.IntN(3)), random.IntN(2) == 0
			s.CancellationReason = []string{"", "Too expensive"}[random.IntN(2)]
			m.Put(*s)
		}
		if random.IntN(9) == 0 {
			r.read(t, 1+random.IntN(3))
		}
	}
	r.read(t, 1000)
	r.wantHistories(t, 5001, 5002, 5003, 5004)
}

// An event is not read while an older transaction is open, which may still bring events before it.
func TestEvents_AreInTheOrderOfTransactions(t *testing.T) {
	t.Parallel()
	pool := suite.Filled(t, suite.SampleData())
	b := suite.NewBundle(suite.Patient(pool))
	r := eventReader{Bundle: b}
	r.read(t, 1000)
	before := len(r.seen)
	older := assert.Must(pool.Begin(t.Context()))(t)
	defer func() { _ = older.Rollback(t.Context()) }() // does nothing after Commit
	suite.Exec(t, older, "UPDATE subscriptions SET status = 'expired' WHERE id = 5001")
	suite.Exec(t, pool, "UPDATE subscriptions SET cancel_at_period_end = NOT cancel_at_period_end, current_period_end = current_period_end + interval '1 day' WHERE id = 5003")
	suite.Exec(t, older, "UPDATE subscriptions SET status = 'expired' WHERE id = 5002")
	r.read(t, 1)
	assert.Equal(t, len(r.seen), before, "events while an older transaction is open")
	want := []string{"5001 status", "5002 status", "5003 cancel_at_period_end", "5003 renewed"}
	woken := make(chan []map[string]any, 1)
	go func() {
		var all []map[string]any
		for after, found := r.after, true; found && len(all) < len(want); { // an older transaction of another test may delay the last ones
			page, next, _ := events(t, b, "/subscriptions/events?limit=1000&wait=30&after="+after)
			all, after, found = append(all, page...), next, len(page) > 0
		}
		woken <- all
	}()
	time.Sleep(100 * time.Millisecond)
	assert.NoError(t, older.Commit(t.Context()))
	order := func(all []map[string]any) (order []string) {
		for _, e := range all {
			order = append(order, fmt.Sprint(e["subscription_id"], " ", e["event"]))
		}
		return order
	}
	assert.Equal(t, order(<-woken), want, "calls that wait")
	r.read(t, 1)
	assert.Equal(t, order(r.seen[before:]), want, "one by one")
	r.wantHistories(t, 5001, 5002, 5003)
}

// A reader that has not seen an event must not miss it because it was folded. One that begins later misses nothing.
func TestEvents_ExpireWhereTheyAreFolded(t *testing.T) {
	t.Parallel()
	const years = 4 * 366 * 24
	pool := writePast(t, pastOf(5001, time.Now(), map[int]func(s *history.State){
		years + 3: func(*history.State) {},
		years + 2: func(s *history.State) { s.Status = subscriptions.PastDue },
		years + 1: func(s *history.State) { s.Status = subscriptions.Active },
		5:         func(s *history.State) { s.Status = subscriptions.PastDue },
		4:         func(s *history.State) { s.Status = subscriptions.Active },
	}))
	ephemeral.Settle(t, pool)
	b := suite.NewBundle(suite.Patient(pool))
	all, end, _ := events(t, b, "/subscriptions/events?limit=1000")
	_, begin, _ := events(t, b, "/subscriptions/events?limit="+fmt.Sprint(len(all)-4))
	_, folded, _ := events(t, b, "/subscriptions/events?limit="+fmt.Sprint(len(all)-2))
	folds := assert.Must(history.Fold(t.Context(), pool))(t)
	assert.That(t, folds == 1, "folded %d", folds)
	ephemeral.Settle(t, pool)
	b = suite.NewBundle(suite.Patient(pool)) // knows of no cursor that was good
	assert.Equal(t, b.Refused(t, "/subscriptions/events?after="+begin, 1).Code, "cursor_expired", "before the folded ones")
	for after, want := range map[string]int{end: 0, folded: 2} {
		page, _, _ := events(t, b, "/subscriptions/events?after="+after)
		assert.Equal(t, len(page), want, "events after the folded ones")
	}
	r := eventReader{Bundle: b}
	r.read(t, 1)
	assert.Equal(t, len(r.seen), len(all)-3, "events of a reader that begins later")
}

// States into which others were folded before a restore may have a transaction of the old server.
func TestEvents_DoNotExpireForWhatAnotherServerFolded(t *testing.T) {
	t.Parallel()
	const years = 4 * 366 * 24
	pool := writePast(t, pastOf(5001, time.Now(), map[int]func(s *history.State){
		years + 3: func(s *history.State) { s.Baseline = true },
		years + 1: func(s *history.State) { s.Status = subscriptions.PastDue },
		4:         func(s *history.State) { s.Status = subscriptions.Active },
	}))
	suite.Exec(t, pool, "UPDATE subscription_states SET recorded_in = '7000000' WHERE first")
	ephemeral.Settle(t, pool)
	_, end, _ := events(t, suite.NewBundle(suite.Patient(pool)), "/subscriptions/events?limit=1000")
	folds := assert.Must(history.Fold(t.Context(), pool))(t)
	assert.That(t, folds == 1, "folded %d", folds)
	ephemeral.Settle(t, pool)
	page, _, _ := events(t, suite.NewBundle(suite.Patient(pool)), "/subscriptions/events?after="+end)
	assert.Equal(t, len(page), 0, "events after the folded ones")
}

func TestEvents_RefuseWhatTheyDoNotKnow(t *testing.T) {
	t.Parallel()
	suite.OnEach(t, suite.SampleData(), func(t *testing.T, b suite.Bundle) {
		_, own, _ := events(t, b, "/subscriptions/events?limit=1")
		of := assert.Must(b.Source.Events(t.Context(), 2, history.StoreQuery{Limit: 1}))(t)
		changes := recorded.Kind("changes cursor").Text(of.Next, 1)
		for query, want := range map[string][]string{
			"after=":                          {"after"},
			"after=" + changes:                {"after"},
			"after=" + own[:len(own)-1] + "!": {"after"},
			"after=" + strings.ToLower(own):   {"after"},
			"after=" + own + "&after=" + own:  {"after"},
			"after=x&limit=1001":              {"after", "limit"},
			"limit=0":                         {"limit"},
			"wait=5":                          {"wait"},
			"wait=31&after=" + own:            {"wait"},
			"page=2":                          {"page"},
			"plain=1":                         {"plain"},
			"%zz":                             {"query"},
		} {
			b.Names(t, "/subscriptions/events?"+query, want)
		}
		b.WantRefused(t, "/subscriptions/events?after="+own, 2, "invalid_parameter", "after")
		b.WantRefused(t, "/subscriptions/changes?after="+own, 1, "invalid_parameter", "after")
		_, end, _ := events(t, b, "/subscriptions/events?limit=1000")
		page, next, more := events(t, b, "/subscriptions/events?wait=1&after="+end)
		assert.That(t, len(page) == 0 && next == end && !more, "a wait without news: %v, next %s, more %v", page, next, more)
	})
}
