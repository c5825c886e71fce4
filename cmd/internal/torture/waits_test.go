package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// waitingStores are stores with one subscription each, whose programs wait for changes.
type waitingStores struct {
	t      *testing.T
	db     *pgx.Conn
	tokens []string
}

const firstWaitingStore = 1001

func startWaitingStores(t *testing.T, database string, n int) *waitingStores {
	t.Helper()
	w := &waitingStores{t: t, db: assert.Must(pgx.Connect(t.Context(), database))(t), tokens: make([]string, n)}
	command(t, []string{"DATABASE_URL=" + database}, "migrate", "up") // the database is a copy
	t.Cleanup(func() { _ = w.db.Close(context.Background()) })
	w.exec("INSERT INTO stores (id, name, currency) SELECT id, 'Store ' || id, 'SAR' FROM generate_series($1::bigint, $1 + $2 - 1) id", firstWaitingStore, n)
	w.exec("INSERT INTO customers (store_id, id, email, phone, calling_code) SELECT id, 1, 'a@example.com', '501234567', '966' FROM stores WHERE id >= $1", firstWaitingStore)
	for _, of := range []struct {
		table string
		id    int
	}{{"products", 4}, {"plans", 41}, {"subscriptions", 5001}} {
		w.exec("INSERT INTO "+of.table+" SELECT (jsonb_populate_record(null::"+of.table+`, to_jsonb(one) || jsonb_build_object('store_id', s.id,
				'product_id', 4, 'variant_id', 41, 'customer_id', 1, 'saved_card_id', null, 'scheduled_variant_id', null))).*
			FROM stores s JOIN `+of.table+" one ON one.store_id = 1 AND one.id = $2 WHERE s.id >= $1", firstWaitingStore, of.id)
	}
	secret := strings.Repeat("s", 43)
	w.exec("INSERT INTO api_tokens (id, store_id, name, hash) SELECT id, id, 'waits', sha256($2) FROM stores WHERE id >= $1", firstWaitingStore, []byte(secret))
	for i := range n {
		w.tokens[i] = fmt.Sprintf("%d|%s", firstWaitingStore+i, secret)
	}
	return w
}

func (w *waitingStores) exec(sql string, args ...any) {
	w.t.Helper()
	_, err := w.db.Exec(w.t.Context(), sql, args...)
	assert.Require(w.t, err == nil, "%s: %v", sql, err)
}

// change changes the subscription of each store in one transaction.
func (w *waitingStores) change() {
	w.t.Helper()
	w.exec("UPDATE subscriptions SET price_amount = price_amount + 1 WHERE store_id >= $1", firstWaitingStore)
}

type changesPage struct {
	status int
	Data   struct {
		Data []struct{ ID int64 }
		Next string
	}
}

// read reads changes of a store, and waits for them if after is not empty. Like a client, it repeats a call for which a
// busy machine had no connection to Postgres in time, but not one that finds no service.
func (w *waitingStores) read(from *shopper, store int, after string) (p changesPage) {
	if after != "" {
		after = "?wait=30&after=" + after
	}
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		r := from.send("GET", "/subscriptions/changes"+after, "", "Authorization", "Bearer "+w.tokens[store])
		if r.Status == 0 && p.status != 0 {
			return p
		}
		p = changesPage{status: r.Status}
		if json.Unmarshal(r.Raw, &p) != nil {
			p.status = 0
		}
		if p.status != http.StatusServiceUnavailable || time.Since(began) > startLimit {
			return p
		}
	}
}

// wait makes n calls, which wait in turns for each store, and returns the pages that end the waits.
func (w *waitingStores) wait(from *shopper, n int) (pages func() []changesPage) {
	w.t.Helper()
	from.client.Timeout = ephemeral.Patience(time.Minute)
	ephemeral.Settle(w.t, w.db) // else a call finds what has been written before
	cursors := make([]string, len(w.tokens))
	for i := range cursors {
		cursors[i] = w.read(from, i, "").Data.Next
	}
	all, calls := make([]changesPage, n), sync.WaitGroup{}
	for i := range n {
		calls.Go(func() { all[i] = w.read(from, i%len(cursors), cursors[i%len(cursors)]) })
		time.Sleep(time.Millisecond)
	}
	return func() []changesPage { calls.Wait(); return all }
}

// wantAll checks that all calls got a page with so many changes.
func (w *waitingStores) wantAll(pages []changesPage, changes int) {
	w.t.Helper()
	for i, p := range pages {
		assert.That(w.t, p.status == http.StatusOK && len(p.Data.Data) == changes, "call %d: %d with %d changes", i, p.status, len(p.Data.Data))
	}
}

// 1,000 calls wait, as many as may. One transaction is news for all. Then the process stops.
func TestWaits_ThousandTakeLittleMemory(t *testing.T) {
	ephemeral.Slow(t)
	const stores, calls, maxMB = 50, 1000, 60
	database := catalog(t)
	s := startService(t, "REDIS_URL="+ephemeral.StartRedis(t).URL, "DATABASE_URL="+database, "MAX_IN_FLIGHT=100")
	w, client := startWaitingStores(t, database, stores), newShopper(t, s)
	w.read(client, 0, "")
	rss := func() float64 { return s.metric("process_resident_memory_bytes") / 1e6 }
	before := rss()
	pages := w.wait(client, calls)
	for range 3 {
		time.Sleep(3 * time.Second)
		after := rss()
		t.Logf("%d calls wait: the process takes %.0f MB, %.0f before", calls, after, before)
		assert.That(t, after-before < maxMB, "the calls take %.0f MB, want less than %d", after-before, maxMB)
	}
	assert.Equal(t, s.metric("commerce_http_requests_in_flight"), calls, "calls that wait")
	w.change()
	w.wantAll(pages(), 1)
	pages = w.wait(client, calls)
	s.wantEnd(5 * time.Second)
	w.wantAll(pages(), 0)
}
