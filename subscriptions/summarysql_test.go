package subscriptions_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions/postgres"
)

// slowTotals makes statements slow on connections whose search path begins with the schema
// slow, and no others.
const slowTotals = `CREATE SCHEMA slow; CREATE VIEW slow.subscriptions AS
	SELECT * FROM public.subscriptions WHERE (SELECT pg_sleep(60)::text) IS NOT NULL`

// slowPool returns a pool for summaries whose statements do not end before their timeout.
func slowPool(t *testing.T, pool *pgxpool.Pool, timeout time.Duration) *pgxpool.Pool {
	t.Helper()
	if _, err := pool.Exec(t.Context(), slowTotals); err != nil {
		t.Fatal(err)
	}
	return ephemeral.OpenPool(t, pool.Config().ConnString(), connect.PostgresConfig{
		MaxConns: 2, StatementTimeout: timeout,
		Edit: func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["search_path"] = "slow, public" },
	})
}

// While every connection for summaries is in use, callers of summaries are refused after
// 2 s, and lists are not affected.
func TestSummary_ASlowOneDoesNotDelayLists(t *testing.T) {
	t.Parallel()
	pool := filled(t, sampleData())
	summaries := slowPool(t, pool, 10*time.Second)
	lists := ephemeral.OpenPool(t, pool.Config().ConnString(), connect.PostgresConfig{MaxConns: 2})
	b := newBundle(postgres.New(postgres.Config{
		Pool: lists, SummaryPool: summaries, Base: t.Context(), Budget: 10 * time.Second, Wait: 5 * time.Second,
	}), stores()...)
	var callers sync.WaitGroup
	for i := range int64(20) {
		callers.Go(func() {
			began := time.Now()
			refused := b.refused(t, "/subscriptions/summary", 1+i%4)
			if took := time.Since(began); refused.Code != "unavailable" || took < time.Second || took > 5*time.Second {
				t.Errorf("a slow summary: %+v after %v, want unavailable after 2s", refused, took)
			}
		})
	}
	for began := time.Now(); summaries.Stat().AcquiredConns() < 2; time.Sleep(time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			t.Fatal("the summaries do not run")
		}
	}
	for range 20 {
		if w := b.do("/subscriptions", 1, "en"); w.Code != http.StatusOK {
			t.Errorf("a list while summaries are slow: %d %s", w.Code, w.Body)
		}
	}
	callers.Wait()
	if n := lists.Stat().NewConnsCount(); n > 2 {
		t.Errorf("%d connections for lists", n)
	}
}

// The end of Base ends what still runs, so that the pool can be closed.
func TestSummary_RunsEndWithTheirSource(t *testing.T) {
	t.Parallel()
	pool := filled(t, sixStates())
	summaries := slowPool(t, pool, -1)
	base, end := context.WithCancel(t.Context())
	defer end()
	source := postgres.New(postgres.Config{Pool: pool, SummaryPool: summaries, Base: base})
	ended := make(chan error, 1)
	go func() {
		_, err := source.Totals(t.Context(), 1)
		ended <- err
	}()
	for began := time.Now(); summaries.Stat().AcquiredConns() < 1; time.Sleep(time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			t.Fatal("the summary does not run")
		}
	}
	end()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a run that was ended has totals")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the run has not ended")
	}
}

// If Postgres is unresponsive or down, callers get unavailable within 2 seconds.
func TestSummary_AnOutageIsUnavailableWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartPostgres(t)
	if err := ephemeral.Migrate(t.Context(), server.URL); err != nil {
		t.Fatal(err)
	}
	pool := ephemeral.OpenPool(t, server.URL, connect.PostgresConfig{MaxConns: 2})
	instance := func() bundle { // without a kept summary
		return newBundle(postgres.New(postgres.Config{Pool: pool, Base: t.Context()}), stores()...)
	}
	served := func() {
		t.Helper()
		b := instance()
		for began := time.Now(); b.do("/subscriptions/summary", 1, "en").Code != http.StatusOK; time.Sleep(20 * time.Millisecond) {
			if time.Since(began) > 20*time.Second {
				t.Fatal("not served")
			}
		}
	}
	// The fastest of a few calls counts: a machine may be busy for a moment, but not each time.
	unavailable := func(when string) {
		t.Helper()
		const within = 2300 * time.Millisecond
		quickest := time.Hour
		for try := 0; try < 4 && quickest > within; try++ {
			began := time.Now()
			if refused := instance().refused(t, "/subscriptions/summary", 1); refused.Code != "unavailable" {
				t.Errorf("%s: %+v, want unavailable", when, refused)
			}
			quickest = min(quickest, time.Since(began))
		}
		if quickest > within {
			t.Errorf("%s: unavailable after %v at best, want %v", when, quickest, within)
		}
	}
	served()
	server.Freeze()
	unavailable("frozen")
	server.Thaw()
	served()
	server.Kill()
	unavailable("gone")
	server.Restart()
	served()
}
