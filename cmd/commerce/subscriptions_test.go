package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"commerce/auth"
	"commerce/cart/money"
	"commerce/cmd/internal/server"
	"commerce/cmd/internal/telemetry"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/deploy/sample"
	"commerce/subscriptions"
	"commerce/subscriptions/figures"
	"commerce/subscriptions/postgres"
)

type listed struct {
	Message string // of an error
	Data    struct {
		Data []struct {
			ID     int64
			Status string
		}
		Next string `json:"next_page_url"`
	}
}

func (i instance) asStore(t *testing.T, token, url string) (status int, page listed) {
	t.Helper()
	a := i.send(t, "GET", url, "", "Authorization", "Bearer "+token)
	return a.Status, decoded[listed](t, a)
}

func (i instance) wantStatus(t *testing.T, token, path string, want int) {
	t.Helper()
	soon(t, want, func() int { return i.send(t, "GET", path, "", "Authorization", "Bearer "+token).Status })
}

// asStoreServed repeats asStore for at most 10 s while the response is a 503: on a busy
// machine the first list may be late.
func (i instance) asStoreServed(t *testing.T, token, url string) (status int, page listed) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		status, page = i.asStore(t, token, url)
		if status != http.StatusServiceUnavailable || time.Since(began) > ephemeral.Patience(10*time.Second) {
			return status, page
		}
	}
}

func TestStoreToken_IsAcceptedUntilItIsRevoked(t *testing.T) {
	t.Parallel()
	url := seeded(t)
	one, two := startServe(t, url), startServe(t, url)
	printed := onDatabase(t, url, "token", "store", "--store", "1", "--name", "nightly\texport\x1b[31m\u202e")
	token, whole := strings.CutSuffix(printed, "\n")
	assert.Require(t, whole && regexp.MustCompile(`\A1\|[A-Za-z0-9]{43}\z`).MatchString(token),
		"printed %q, want a token alone", printed)
	status, page := one.asStoreServed(t, token, "/subscriptions?per_page=40")
	assert.Require(t, status == http.StatusOK && len(page.Data.Data) == 40,
		"%d with %d subscriptions, want 40", status, len(page.Data.Data))
	// Another instance serves the next page.
	status, rest := two.asStoreServed(t, token, strings.Replace(page.Data.Next, one.URL, two.URL, 1))
	assert.That(t, status == http.StatusOK && len(rest.Data.Data) == 8 && rest.Data.Next == "",
		"by the first's link, the second answers %d with %d, want the last 8", status, len(rest.Data.Data))
	list := onDatabase(t, url, "token", "list")
	assert.That(t, strings.Contains(list, `nightly export\x1b[31m\u202e `) && !strings.Contains(list, token[2:]), "lists %s", list)
	onDatabase(t, url, "token", "revoke", "1")
	for _, i := range []*running{one, two} {
		i.wantStatus(t, token, "/subscriptions", http.StatusUnauthorized) // package auth tests that it takes a second
	}
	for _, i := range []*running{one, two} { // they record the last token use before they exit
		i.end(t)
	}
	row := strings.Fields(strings.Split(onDatabase(t, url, "token", "list"), "\n")[1])
	assert.That(t, row[len(row)-2] != "-", "token list knows of no use: %q", row)
}

type reader struct {
	assembly
	rows *postgres.Source
	sums *figures.Postgres
}

func openReader(t *testing.T, url string) *reader {
	t.Helper()
	r := &reader{}
	r.Metrics = telemetry.New("test")
	r.Stores, r.Log = auth.NewMemoryStores(money.Known, sample.Stores()...), slog.New(slog.DiscardHandler)
	s := &onPostgres{assembly: &r.assembly, admin: &server.Admin{}, url: url}
	assert.NoError(t, s.open(t.Context(), nil))
	r.rows, r.sums = s.rows, assert.Must(openFigures(t.Context(), s))(t)
	return r
}

// lockSubscriptions makes all statements that read subscriptions wait for unlock.
func lockSubscriptions(t *testing.T, url string) (unlock func()) {
	t.Helper()
	lock := assert.Must(writer(t, url).Begin(t.Context()))(t)
	assert.Must(lock.Exec(t.Context(), "LOCK TABLE subscriptions"))(t)
	return func() { _ = lock.Rollback(context.Background()) }
}

// Token checks have their own connections, so that lists cannot use all of them.
func TestSubscriptions_CheckTokensOnTheirOwnConnections(t *testing.T) {
	t.Parallel()
	url := seeded(t)
	db, m := writer(t, url), openReader(t, url)
	defer m.close()
	token := storeToken(t, url)
	defer lockSubscriptions(t, url)()
	ctx, stop := context.WithCancel(t.Context())
	var lists sync.WaitGroup
	conns := 8 * runtime.GOMAXPROCS(0) // for lists
	for store := range int64(conns + 8) {
		lists.Go(func() {
			for ctx.Err() == nil {
				_, _ = m.rows.List(ctx, store, subscriptions.Query{Limit: 16})
			}
		})
	}
	for count(t, db, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'commerce subscriptions'") < conns {
		time.Sleep(time.Millisecond)
	}
	request := httptest.NewRequest("GET", "/subscriptions", nil)
	request.Header.Set("Authorization", "Bearer "+token)
	store, _, err := m.APITokens.Identify(request, "")
	assert.That(t, err == nil && store.ID == 1, "while lists use all of their connections: store %v, %v", store, err)
	stop()
	lists.Wait()
}

// A summary that runs without a caller must not delay the end of the process.
func TestSubscriptions_CloseEndsSummaries(t *testing.T) {
	t.Parallel()
	url := seeded(t)
	db := writer(t, url)
	m := openReader(t, url)
	defer lockSubscriptions(t, url)()
	ended := make(chan error, 1)
	go func() {
		_, err := m.sums.Totals(context.Background(), 1)
		ended <- err
	}()
	// Postgres ignores a cancellation that comes before the statement.
	const waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
	for count(t, db, waiting) == 0 {
		time.Sleep(time.Millisecond)
	}
	began := time.Now()
	m.close()
	assert.That(t, time.Since(began) <= summaryTimeout/2, "closed after %v", time.Since(began))
	assert.That(t, <-ended != nil, "a summary of a locked table has an answer")
}

func TestSeed_WritesTheSamplesSubscriptionsAndSyntheticOnes(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	db := writer(t, url)
	onDatabase(t, url, "seed")
	change(t, db, "UPDATE subscriptions SET status = 'expired' WHERE store_id = 1 AND id = 5001")
	got := ended(t, program(t, []string{"DATABASE_URL=" + url}, "seed", "--subscriptions", "12000"))
	assert.Require(t, got.status == 0 && got.errors == "", "status %d, %s%s", got.status, got.out, got.errors)
	onDatabase(t, url, "seed", "--subscriptions", "500")
	wantCounts(t, db, map[string]int{
		"SELECT count(*) FROM subscriptions":                                                                                                      54 + 12500,
		"SELECT count(*) FROM subscriptions WHERE store_id = 1 AND customer_id = 1001":                                                            3,
		"SELECT count(*) FROM subscriptions WHERE store_id = 1 AND id < 6000":                                                                     48,
		"SELECT count(DISTINCT status) FROM subscriptions WHERE store_id = 1 AND id < 6000":                                                       6,
		"SELECT count(*) FROM subscriptions WHERE store_id = 2":                                                                                   6,
		"SELECT count(*) FROM subscriptions WHERE store_id = 1 AND id = 5001 AND status = 'active'":                                               1,
		"SELECT count(DISTINCT status) FROM subscriptions WHERE id > 10000":                                                                       6,
		"SELECT count(DISTINCT store_id) FROM subscriptions":                                                                                      2 + 12,
		"SELECT count(*) FROM subscriptions WHERE created_at > now() OR updated_at > now() OR current_period_start > now()":                       0,
		"SELECT count(*) FROM subscriptions WHERE canceled_at > now() OR paused_at > now()":                                                       0,
		"SELECT count(*) FROM subscriptions s JOIN stores t ON t.id = s.store_id WHERE s.currency <> t.currency":                                  0,
		"SELECT count(*) FROM subscriptions s JOIN plans p ON (p.store_id, p.id) = (s.store_id, s.variant_id) WHERE p.product_id <> s.product_id": 0,
		"SELECT count(*) FROM customers WHERE national_phone = '501234567'":                                                                       1,
	})
	share := count(t, db, "SELECT trunc(1000000 * avg((store_id = 1)::int))::int FROM subscriptions WHERE id > 10000")
	assert.That(t, share >= 90_000 && share <= 110_000,
		"of a million synthetic ones, %d would be the first store's, want about a tenth", share)
}

func TestPrune_PrintsHowManyDeletionsItDeleted(t *testing.T) {
	t.Parallel()
	url := seeded(t)
	db := writer(t, url)
	change(t, db, "DELETE FROM subscriptions WHERE store_id = 1 AND id <= 5003")
	change(t, db, "UPDATE deleted_subscriptions SET deleted_at = now() - interval '91 days' WHERE id <= 5002")
	_, asRole := newRole(t, url, "--prune-role=")
	for _, want := range []string{"2", "0"} {
		out := onDatabase(t, asRole, "subscriptions", "prune")
		assert.That(t, strings.Contains(out, "the records of "+want+" deletions older than 90 days"), "printed %q", out)
	}
}
