package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

// line is a proxy to a server, on which data can be delayed or lost.
type line struct {
	t     *testing.T
	proxy *toxiproxy.Proxy
}

// through starts a proxy to the server of a URL, and returns the URL through the proxy.
func through(t *testing.T, rawURL string, user *url.Userinfo) (string, *line) {
	t.Helper()
	u := parsed(t, rawURL)
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &line{t, toxiproxy.NewProxy(api, "line", "127.0.0.1:0", u.Host)}
	l.start()
	t.Cleanup(l.proxy.Stop)
	u.Host, u.User = l.proxy.Listen, user
	return u.String(), l
}

func (l *line) start() { l.t.Helper(); assert.NoError(l.t, l.proxy.Start()) }

func (l *line) add(kind, attributes, stream string) {
	l.t.Helper()
	toxic := fmt.Sprintf(`{"type":%q,"stream":%q,"attributes":%s}`, kind, stream, attributes)
	assert.Must(l.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)))(l.t)
}

func (l *line) heal() { l.proxy.Toxics.ResetToxics(context.Background()) }

// outage is a failure of a dependency, and what tells the person on call about it.
type outage struct {
	name   string
	begin  func()
	end    func()
	causes string // regular expression after the server's name, in the log
	kind   string // of the errors in the metrics
}

// secrets are values that must never get into a log.
type secrets struct{ jwt, apiToken string }

const (
	plantedCart     = "planted-cart-token-000000"
	plantedPassword = "planted-password"
)

// plant makes every kind of call, concurrently, with secrets everywhere in the requests.
func (r *running) plant(t *testing.T, s secrets) {
	t.Helper()
	cart := [][3]string{
		{"GET", "/cart?email=planted%40example.com", ""},
		{"GET", "/cart/count", ""},
		{"GET", "/cart/validate", ""},
		{"GET", "/cart/summary", ""},
		{"POST", "/cart/add", `{"product_id":5,"fields":{"0":"planted-field"},"notice":"planted-notice"}`},
		{"PATCH", "/cart/items/planted-item", `{"notice":"planted-notice"}`},
		{"DELETE", "/cart/items/planted-item", ""},
		{"DELETE", "/cart/clear", ""},
		{"POST", "/cart/coupon", `{"coupon":"PLANTED-COUPON"}`},
		{"DELETE", "/cart/coupon", ""},
		{"POST", "/cart/handover", ""},
		{"POST", "/cart/handover/redeem", `{"code":"planted-code"}`},
		{"POST", "/cart/merge/undo", `{"id":"planted-merge"}`},
		{"POST", "/cart/share", ""},
		{"GET", "/cart/share/planted-code", ""},
		{"DELETE", "/cart/share/planted-code", ""},
	}
	lists := []string{
		"?customerEmail=planted%40example.com", "?customerPhone=966501234567", "?externalCustomerId=planted-customer",
		"/5", "/changes", "/changes?after=planted-cursor", "/summary",
	}
	var all sync.WaitGroup
	send := func(method, path, body string, headers ...string) {
		all.Go(func() {
			_, err := request(t.Context(), http.DefaultClient, method, r.URL+path, body, headers...)
			assert.That(t, err == nil, "%v", err)
		})
	}
	for _, c := range cart {
		for _, authorization := range []string{"", "Bearer " + s.jwt, "Bearer planted.planted.planted", "Basic cGxhbnRlZA=="} {
			send(c[0], c[1], c[2], "X-Public-Key", "pk_demo", "X-Cart-Token", plantedCart, "Idempotency-Key", "planted-key-of-22-characters",
				"Content-Type", "application/json", "Authorization", authorization)
		}
	}
	for _, path := range lists {
		for _, authorization := range []string{s.apiToken, "7|planted-secret-planted-secret", s.jwt} {
			send("GET", "/subscriptions"+path, "", "Authorization", "Bearer "+authorization)
		}
	}
	all.Wait()
}

func (r *running) wantClean(t *testing.T, s secrets) {
	t.Helper()
	_, apiSecret, _ := strings.Cut(s.apiToken, "|")
	log := r.log.String()
	for _, secret := range append(strings.Split(s.jwt, "."), "planted", "cGxhbnRlZA", apiSecret, "966501234567", secret) {
		at := strings.Index(strings.ToLower(log), strings.ToLower(secret))
		assert.That(t, at < 0, "%q is in the log: …%s…", secret, log[max(0, at-200):min(len(log), at+100)])
	}
}

// requestLines returns a route's lines in the log from n on, whose error matches named.
func (r *running) requestLines(t *testing.T, after int, route string, named *regexp.Regexp) []logLine {
	return slices.DeleteFunc(r.log.lines(t, after), func(l logLine) bool {
		return l.Msg != "request" || l.Route != route || !named.MatchString(l.Err)
	})
}

// endure makes each outage happen, with calls of every kind. Each must be visible as docs/runbook.md
// says: in the log as a lost dependency, as the cause of a failed request, and as one that is
// back; in the metrics; and in the trace of that request, to which its line leads.
func (r *running) endure(t *testing.T, dependency, server string, s secrets, route string, traces *collector, outages []outage) {
	t.Helper()
	up := `commerce_dependency_up{dependency="` + dependency + `"}`
	for _, o := range outages {
		after := len(r.log.String())
		errors := fmt.Sprintf("commerce_%s_errors_total{kind=%q}", dependency, o.kind)
		before := r.metric(t, errors)
		o.begin()
		lost := `"msg":"lost ` + dependency + `"`
		r.log.wait(t, after, `"level":"WARN"`, lost, regexp.QuoteMeta(server))
		named := regexp.MustCompile(regexp.QuoteMeta(server) + `: ` + o.causes)
		eventually(t, func() string {
			r.plant(t, s)
			for _, line := range r.requestLines(t, after, route, named) {
				if traces.shows(line.TraceID, dependency+" ") {
					t.Logf("%s: %+v", o.name, line)
					return ""
				}
			}
			return fmt.Sprintf("%s: no request line with %s and a trace; the log ends with\n%s", o.name, named, tail(r.log.String(), 3000))
		})
		assert.Equal(t, r.metric(t, up), 0, "%s: %s", o.name, up)
		assert.That(t, r.metric(t, errors) > before, "%s: %s stays at %v", o.name, errors, before)
		o.end()
		r.log.wait(t, after, `"level":"INFO"`, `"msg":"`+dependency+` is back"`, `"after":"[0-9.]+m?s"`)
		soon(t, 1, func() float64 { return r.metric(t, up) })
	}
}

func tail(text string, n int) string { return text[max(0, len(text)-n):] }

func customerToken(t *testing.T) string {
	t.Helper()
	got := ended(t, program(t, []string{"JWT_SECRET=" + secret}, "token", "customer", "--store", "1", "--customer", "planted-customer"))
	return strings.TrimSpace(got.out)
}

func TestServe_NamesAFailingRedisAndLogsNoSecret(t *testing.T) {
	slow(t)
	redis, database := ephemeral.StartRedis(t), seeded(t)
	admin := redis.Admin()
	do := func(args ...any) { assert.NoError(t, admin.Do(t.Context(), args...).Err()) }
	do("ACL", "SETUSER", "shop", "on", ">"+plantedPassword, "~*", "&*", "+@all")
	redisURL, wire := through(t, redis.URL, url.UserPassword("shop", plantedPassword))
	s, traces := secrets{customerToken(t), storeToken(t, database)}, startCollector(t)
	serve := startServe(t, database, "REDIS_URL="+redisURL, "OTEL_EXPORTER_OTLP_ENDPOINT="+traces.URL, "OTEL_BSP_SCHEDULE_DELAY=50", "LOG_LEVEL=debug", "RATE_LIMIT=off")
	kill := func() { do("CLIENT", "KILL", "USER", "shop") }
	serve.endure(t, "redis", "redis "+wire.proxy.Listen, s, "/cart", traces, []outage{
		{"slow", func() { wire.add("latency", `{"latency":1000}`, "downstream") }, wire.heal, `no answer after \d+ms`, "timeout"},
		{"frozen", redis.Freeze, redis.Thaw, `no answer after \d+ms`, "timeout"},
		{"reset", func() { wire.add("reset_peer", `{"timeout":0}`, "upstream") }, wire.heal, `(connection reset by peer|it closed the connection|broken pipe)`, "reset"},
		{"stopped", wire.proxy.Stop, wire.start, `connection refused`, "refused"},
		{
			"another password", func() { do("ACL", "SETUSER", "shop", "resetpass", ">other"); kill() },
			func() { do("ACL", "SETUSER", "shop", ">"+plantedPassword) }, `WRONGPASS invalid username-password pair`, "denied",
		},
	})
	serve.wantClean(t, s)
	serve.end(t)
}

func TestServe_NamesAFailingPostgresAndLogsNoSecret(t *testing.T) {
	slow(t)
	postgres := startSeeded(t)
	change(t, writer(t, postgres.URL), "CREATE ROLE shop LOGIN SUPERUSER PASSWORD '"+plantedPassword+"'")
	databaseURL, wire := through(t, postgres.URL, url.UserPassword("shop", plantedPassword))
	s, traces := secrets{customerToken(t), storeToken(t, postgres.URL)}, startCollector(t)
	serve := startServe(t, databaseURL, "OTEL_EXPORTER_OTLP_ENDPOINT="+traces.URL, "OTEL_BSP_SCHEDULE_DELAY=50", "LOG_LEVEL=debug", "RATE_LIMIT=off")
	kill := "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'shop'"
	serve.endure(t, "postgres", "postgres "+wire.proxy.Listen, s, "/subscriptions", traces, []outage{
		{"slow", func() { wire.add("latency", `{"latency":3000}`, "downstream") }, wire.heal, `(canceled|no connection) after \d`, "timeout"},
		{"stopped", wire.proxy.Stop, wire.start, `connection refused`, "refused"},
		{"no login", func() {
			change(t, writer(t, postgres.URL), "ALTER ROLE shop NOLOGIN")
			change(t, writer(t, postgres.URL), kill)
		}, func() { change(t, writer(t, postgres.URL), "ALTER ROLE shop LOGIN") }, `role "shop" is not permitted to log in \(SQLSTATE 28000\)`, "denied"},
		{"frozen", postgres.Freeze, postgres.Thaw, `(canceled|no connection) after \d`, "timeout"},
	})
	serve.wantClean(t, s)
	serve.end(t)
}

// A Postgres that is slow but serves requests is not lost.
func TestServe_DoesNotLoseASlowPostgresThatServesRequests(t *testing.T) {
	slow(t)
	database := seeded(t)
	token := storeToken(t, database)
	databaseURL, wire := through(t, database, parsed(t, database).User)
	serve := startServe(t, databaseURL)
	serve.wantReady(t, http.StatusOK, "ok", "ok")
	list := func() {
		status, _ := serve.asStoreServed(t, token, "/subscriptions")
		assert.That(t, status == http.StatusOK, "a list: %d", status)
	}
	list() // opens connections
	wire.add("latency", `{"latency":120}`, "downstream")
	for range 10 {
		list()
		time.Sleep(300 * time.Millisecond)
	}
	assert.That(t, !strings.Contains(serve.log.String(), "lost postgres"), "%s", serve.log)
}

func TestClose_LeavesWhatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for late, want := range map[bool]time.Duration{false: closePeriod, true: 0} {
			a, hangs := &assembly{late: make(chan struct{})}, make(chan struct{})
			a.atEnd(func() { <-hangs })
			if late {
				close(a.late)
			}
			began := time.Now()
			a.close()
			assert.Equal(t, time.Since(began), want, "how long close waits")
			close(hangs)
		}
	})
}

func TestServe_EndsInTimeWhilePostgresHangs(t *testing.T) {
	slow(t)
	postgres := startSeeded(t)
	serve := startServe(t, postgres.URL)
	serve.wantReady(t, http.StatusOK, "ok", "ok")
	postgres.Freeze()
	t.Cleanup(postgres.Thaw)
	serve.log.wait(t, 0, `"msg":"lost postgres"`)
	signaled := time.Now()
	serve.end(t)
	assert.That(t, time.Since(signaled) <= ephemeral.Patience(10*time.Second), "took %v to end", time.Since(signaled))
}

func TestServe_NamesAFailingIssuer(t *testing.T) {
	slow(t)
	const unknownKey = "eyJhbGciOiJFUzI1NiIsImtpZCI6ImEifQ.eyJzdWIiOiIxIn0." // {"alg":"ES256","kid":"a"}
	token := unknownKey + strings.Repeat("A", 86)
	for name, o := range map[string]struct {
		takes time.Duration
		stop  bool
		cause string
	}{
		"failing": {cause: "status 502"},
		"slow":    {takes: 3 * time.Second, cause: "no answer after "},
		"stopped": {stop: true, cause: "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				time.Sleep(o.takes)
				w.WriteHeader(http.StatusBadGateway)
			}))
			t.Cleanup(issuer.Close)
			if o.stop {
				issuer.Close()
			}
			traces := startCollector(t)
			keys := strings.Replace(issuer.URL, "http://", "http://user:"+plantedPassword+"@", 1) + "/keys?token=planted"
			serve := startServe(t, seeded(t), "JWT_SECRET=", "JWT_JWKS_URL="+keys, "JWT_AUDIENCE=shop", "LOG_LEVEL=debug",
				"OTEL_EXPORTER_OTLP_ENDPOINT="+traces.URL, "OTEL_BSP_SCHEDULE_DELAY=50")
			serve.send(t, "GET", "/cart", "", "Authorization", "Bearer "+token)
			blamed := "jwks " + issuer.URL + "/keys: " + o.cause
			serve.log.wait(t, 0, `"level":"WARN"`, "cannot fetch the issuer's keys", regexp.QuoteMeta(blamed))
			eventually(t, func() string {
				for _, line := range serve.requestLines(t, 0, "/cart", regexp.MustCompile(regexp.QuoteMeta(blamed))) {
					if traces.shows(line.TraceID, "fetch JWKS") {
						return ""
					}
				}
				return "no request line with a trace; the log ends with\n" + tail(serve.log.String(), 3000)
			})
			const failed = `commerce_http_request_duration_seconds_count{method="GET",route="/cart",status="503"}`
			assert.Equal(t, serve.metric(t, failed), 1, "requests with status 503")
			serve.wantClean(t, secrets{token, "1|" + plantedPassword})
		})
	}
}

// A ping of a cluster asks one node. The watch must notice the loss of any master.
func TestPingMasters_NamesANodeThatIsLost(t *testing.T) {
	t.Parallel()
	cluster := ephemeral.StartCluster(t)
	rdb := assert.Must(connect.Redis(cluster.URL))(t)
	defer rdb.Close()
	ping := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), ephemeral.Patience(500*time.Millisecond))
		defer cancel()
		return pingMasters(ctx, rdb)
	}
	soon(t, nil, ping)
	cluster.Nodes[1].Freeze()
	defer cluster.Nodes[1].Thaw()
	_, node, _ := strings.Cut(cluster.Nodes[1].URL, "://")
	got := fmt.Sprint(ping())
	assert.That(t, strings.HasPrefix(got, "redis "+node+": no answer after "), "got %s, want %s lost", got, node)
}
