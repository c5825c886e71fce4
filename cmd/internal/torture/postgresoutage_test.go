package torture

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// Clients make every call without Postgres, or a slow one, while an instance restarts.
func TestPromise08_CartsDoNotNeedPostgres(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	p := promised(t, 8, "Postgres gone or slow never touches carts; a restart during it serves",
		"no cart error; a restarted instance answers 503 until Postgres is back, and never exits")
	s := &shopOnPostgres{p: p, t: t, postgres: ephemeral.StartPostgres(t), redis: ephemeral.StartRedis(t)}
	assert.NoError(t, stock(t.Context(), commerce.compiled(t), s.postgres.URL))
	outages := []postgresOutage{
		{"stopped", s.postgres.URL, s.postgres.Kill, s.postgres.Restart, false},
		{"frozen", s.postgres.URL, s.postgres.Freeze, s.postgres.Thaw, false},
	}
	via, line := faultyLineTo(t, s.postgres.URL)
	outages = append(outages, postgresOutage{"slow", via, func() { line.delay(900) }, line.heal, true})
	rounds := sized(1, 3)
	bar := p.progress("outages of Postgres", rounds*len(outages))
	for range rounds {
		for _, outage := range outages {
			s.suffer(outage)
			_ = bar.Add(1)
		}
	}
	p.counted("outages", int64(s.outages))
	p.counted("cart calls during outages", int64(s.calls))
	p.counted("failed", int64(s.failed))
	p.lasted("slowest", s.slowest)
	p.counted("restarts during outages", int64(s.outages))
	p.lasted("latest first success of a restarted instance", s.recovery)
}

type postgresOutage struct {
	name, url  string
	begin, end func()
	slow       bool // a restarted instance may be able to use it
}

// shopOnPostgres is a Postgres for several outages, and what the clients saw.
type shopOnPostgres struct {
	p        *promise
	t        *testing.T
	postgres *ephemeral.Server
	redis    *ephemeral.Server
	outages  int

	mu                     sync.Mutex
	calls, failed, waiting int // waiting: in the current window
	example                string
	unexplained            string // request id of the last failed call
	slowest                time.Duration
	recovery               time.Duration
}

func (s *shopOnPostgres) suffer(o postgresOutage) {
	s.t.Helper()
	settings := []string{"DATABASE_URL=" + o.url, "REDIS_URL=" + s.redis.URL, "DRAIN_DELAY=100ms"}
	kept, restarted := startService(s.t, settings...), startService(s.t, settings...)
	defer kept.kill()
	defer restarted.kill()
	client, again := newShopper(s.t, kept), newShopper(s.t, restarted)
	var clients []*regular
	for i := range sized(4, 16) {
		clients = append(clients, newRegular(s.t, client, fmt.Sprint(o.name, s.outages, "-", i)))
	}
	again.Token = clients[0].fills["guest"].Token
	awaitEveryCall(s.t, clients)

	o.begin()
	stop := browse(clients, s.note)
	var restart sync.WaitGroup
	restart.Go(func() { s.restart(o, restarted, again) })
	s.wantNewProductUnavailable(o, client)
	s.wantNoWaiting(o)
	restart.Wait()
	o.end()
	s.wantServes(o, restarted, again)
	stop()
	s.explain(kept)
	s.wantRevalidated(o, client)
	s.outages++
}

func (s *shopOnPostgres) note(call shopCall, _ time.Time, a reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.slowest = max(s.slowest, a.Took)
	if a.Status != http.StatusOK {
		s.failed++
		s.example = fmt.Sprintf("%v: %v", call, a)
		s.unexplained = a.Header.Get("X-Request-Id")
	}
	if a.Status != http.StatusOK || a.Took > postgresWait {
		s.waiting++
	}
}

func (s *shopOnPostgres) explain(from *service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range from.entries(0) {
		if s.unexplained != "" && line["request_id"] == s.unexplained {
			s.t.Logf("the log about a failed call: %v", line)
		}
	}
	s.unexplained = ""
}

// postgresWait is less than the time of a request that waits for a slow or frozen Postgres: 900
// ms over the slow line, or 1 s until the service abandons the load.
const postgresWait = 800 * time.Millisecond

// wantNoWaiting checks that no call fails. On a busy machine some calls may fail. Then there
// must be a window in which no call failed or waited. A window is longer than the time for which
// a cached value is fresh plus the time of one load. So if calls waited for Postgres, they would
// do so in every window.
func (s *shopOnPostgres) wantNoWaiting(o postgresOutage) {
	s.t.Helper()
	const window = 2 * time.Second
	time.Sleep(time.Second) // from now on, all cached values are too old
	if *long {
		s.count()
		time.Sleep(10 * time.Second)
		if _, waiting := s.count(); waiting > 0 || s.failed > 0 {
			s.p.broke("%s: %d calls waited, %d failed, such as %s", o.name, waiting, s.failed, s.example)
		}
		return
	}
	for range 10 {
		before, _ := s.count()
		time.Sleep(window)
		if calls, waiting := s.count(); calls > before && waiting == 0 {
			return
		}
	}
	s.p.broke("%s: in each of ten windows, calls failed or waited: %s", o.name, s.example)
}

func (s *shopOnPostgres) count() (calls, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls, waiting, s.waiting = s.calls, s.waiting, 0
	return calls, waiting
}

// wantNewProductUnavailable adds a product that the instance has not loaded.
func (s *shopOnPostgres) wantNewProductUnavailable(o postgresOutage, c *shopper) {
	s.t.Helper()
	for range 3 {
		a := c.send("POST", "/cart/add", fmt.Sprintf(`{"product_id":%d}`, lastProduct-s.outages))
		if a.Status != http.StatusServiceUnavailable || a.Code != "unavailable" || a.Header.Get("Retry-After") == "" || a.Took > hang {
			s.p.broke("%s: an add of a product that was not loaded: %v after %v", o.name, a, a.Took)
		}
	}
}

// restart replaces an instance during the outage. It must end and start in time, and answer.
func (s *shopOnPostgres) restart(o postgresOutage, i *service, c *shopper) {
	if took, err := i.terminate(); err != nil || took > ephemeral.Patience(10*time.Second) {
		s.p.broke("%s: an instance ended after %v: %v", o.name, took, err)
	}
	i.start()
	s.wantReadiness(o, i, http.StatusServiceUnavailable)
	for range 3 {
		for _, a := range []reply{c.send("GET", "/cart", ""), c.send("POST", "/cart/add", `{"product_id":1001}`)} {
			if a.Status != http.StatusServiceUnavailable && !o.slow || a.Took > hang {
				s.p.broke("%s: a restarted instance: %v after %v, want 503", o.name, a, a.Took)
			}
		}
	}
	if *long && o.name == "stopped" && s.outages == 0 {
		time.Sleep(31 * time.Second) // then it counts as ready, because Postgres may be down for all instances
		s.wantReadiness(o, i, http.StatusOK)
	}
}

func (s *shopOnPostgres) wantReadiness(o postgresOutage, i *service, want int) {
	status, text, err := i.adminGet("/readyz")
	var said struct{ Checks map[string]string }
	if err == nil {
		err = json.Unmarshal([]byte(text), &said)
	}
	if !o.slow && (err != nil || status != want || said.Checks["postgres"] != "unreached") {
		s.p.broke("%s: /readyz of a restarted instance: %v, %d %s, want %d and unreached", o.name, err, status, text, want)
	}
}

// wantServes waits until a restarted instance serves and is ready. It adds a product that the
// instance that kept running has loaded, because both serve this cart.
func (s *shopOnPostgres) wantServes(o postgresOutage, i *service, c *shopper) {
	s.t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		a := c.send("POST", "/cart/add", `{"product_id":1001}`)
		status, text, err := i.adminGet("/readyz")
		took := time.Since(began)
		if a.Status == http.StatusOK && status == http.StatusOK {
			s.recovery = max(s.recovery, took)
			return
		}
		if took > sized(startLimit, 5*time.Second) {
			s.p.broke("%s: %v after the return, a restarted instance: %v; /readyz: %v, %d %s", o.name, took, a, err, status, text)
			return
		}
	}
}

// wantRevalidated deactivates a cached product, and waits until it is refused.
func (s *shopOnPostgres) wantRevalidated(o postgresOutage, c *shopper) {
	s.t.Helper()
	db := assert.Must(pgx.Connect(s.t.Context(), s.postgres.URL))(s.t)
	defer db.Close(s.t.Context())
	for _, active := range []bool{false, true} {
		want := map[bool]int{false: http.StatusUnprocessableEntity, true: http.StatusOK}[active]
		assert.Must(db.Exec(s.t.Context(), "UPDATE products SET active = $1 WHERE (store_id, id) = (1, 1001)", active))(s.t)
		for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			a := c.send("POST", "/cart/add", `{"product_id":1001}`)
			if a.Status == want {
				break
			}
			if time.Since(began) > startLimit {
				s.p.broke("%s: %v after active = %v: %v", o.name, startLimit, active, a)
				break
			}
		}
	}
}
