package torture

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"commerce/deploy/ephemeral"
)

// Clients make every call without Postgres, or a slow one, while an instance restarts.
func TestPromise08_CartsDoNotNeedPostgres(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	p := promised(t, 8, "Postgres gone or slow never touches carts; a restart during it serves",
		"no cart error; a restarted instance answers 503 until Postgres is back, and never exits")
	s := &shopOnPostgres{p: p, t: t, postgres: startPostgres(t), redis: ephemeral.StartRedis(t)}
	line, via := lineTo(t, s.postgres.URL)
	outages := []postgresOutage{
		{"stopped", s.postgres.URL, s.postgres.Kill, s.postgres.Restart, false},
		{"frozen", s.postgres.URL, s.postgres.Freeze, s.postgres.Thaw, false},
		{"slow", via, func() { line.lag(900*time.Millisecond, 0) }, line.heal, true},
	}
	rounds := sized(1, 3)
	bar := p.progress("outages of Postgres", rounds*len(outages))
	for range rounds {
		for _, outage := range outages {
			s.suffer(outage)
			_ = bar.Add(1)
		}
	}
	p.counted("outages", int64(s.outages))
	p.counted("cart calls during outages", s.calls)
	p.counted("failed", s.failed)
	p.lasted("slowest", s.slowest)
	p.detail("restarts during outages", float64(s.outages), "")
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
	calls, failed, waiting int64 // waiting: in the current window
	example                string
	slowest, recovery      time.Duration
}

func (s *shopOnPostgres) suffer(o postgresOutage) {
	s.t.Helper()
	settings := []string{"DATABASE_URL=" + o.url, "REDIS_URL=" + s.redis.URL, "DRAIN_DELAY=100ms"}
	kept, restarted := startService(s.t, settings...), startService(s.t, settings...)
	defer kept.kill()
	defer restarted.kill()
	client, again := newShopper(s.t, kept), newShopper(s.t, restarted)
	clients := newRegulars(s.t, client, sized(4, 16), fmt.Sprint(o.name, s.outages))
	again.Token = clients[0].fills["guest"].Token
	awaitEveryCall(s.t, clients)

	o.begin()
	stop := browse(clients, s.note)
	var restart sync.WaitGroup
	restart.Go(func() { s.restart(o, restarted, again) })
	for i := range 3 { // the instance has not loaded this product
		a := client.send("POST", "/cart/add", fmt.Sprintf(`{"product_id":%d}`, lastProduct-3*s.outages-i))
		if a.Status != http.StatusServiceUnavailable || a.Code != "unavailable" || a.Header.Get("Retry-After") == "" || a.Took > hangs {
			s.p.broke("%s: an add of a product that was not loaded: %v after %v", o.name, a, a.Took)
		}
	}
	s.wantNoWaiting(o)
	restart.Wait()
	o.end()
	s.wantServes(o, restarted, again)
	stop()
	for _, active := range []bool{false, true} { // the catalog is read again
		want := map[bool]int{false: http.StatusUnprocessableEntity, true: http.StatusOK}[active]
		execSQL(s.t, s.postgres.URL, fmt.Sprintf("UPDATE products SET active = %t WHERE (store_id, id) = (1, 1001)", active))
		ephemeral.Eventually(s.t, fmt.Sprintf("an add is answered with %d", want), func() bool {
			return client.send("POST", "/cart/add", `{"product_id":1001}`).Status == want
		})
	}
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
	}
	if a.Status != http.StatusOK || a.Took > postgresWait {
		s.waiting++
	}
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
	time.Sleep(time.Second) // from now on, all cached values are too old
	before, _ := s.window()
	windows, span := sized(10, 1), sized(2*time.Second, 10*time.Second)
	for range windows {
		time.Sleep(span)
		calls, waiting := s.window()
		if calls > before && waiting == 0 && (!*long || s.failed == 0) {
			return
		}
		before = calls
	}
	s.p.broke("%s: in each of %d windows, calls failed or waited: %s", o.name, windows, s.example)
}

// window returns how many calls were made so far, and how many of them failed or waited since it was last called.
func (s *shopOnPostgres) window() (calls, waiting int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls, waiting, s.waiting = s.calls, s.waiting, 0
	return calls, waiting
}

// restart replaces an instance during the outage. It must end and start in time, and answer.
func (s *shopOnPostgres) restart(o postgresOutage, i *service, c *shopper) {
	i.wantEnd(10 * time.Second)
	i.start()
	s.wantReadiness(o, i, http.StatusServiceUnavailable)
	for range 3 {
		for _, a := range []reply{c.send("GET", "/cart", ""), c.send("POST", "/cart/add", `{"product_id":1001}`)} {
			if a.Status != http.StatusServiceUnavailable && !o.slow || a.Took > hangs {
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
