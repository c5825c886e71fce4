package main

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

type readiness struct {
	Code   int `json:"-"`
	Status string
	Checks map[string]string
}

func (r *running) ready(t *testing.T) readiness {
	t.Helper()
	a := r.send(t, "GET", r.admin+"/readyz", "")
	said := decoded[readiness](t, a)
	said.Code = a.Status
	return said
}

// wantReady waits until /readyz responds with these states.
func (r *running) wantReady(t *testing.T, code int, redis, postgres string) {
	t.Helper()
	parts := "unknown"
	if postgres == "ok" {
		parts = "ok"
	}
	r.wantChecks(t, code, map[string]string{"redis": redis, "postgres": postgres, "postgres_rights": parts, "postgres_schema": parts})
}

func (r *running) wantChecks(t *testing.T, code int, checks map[string]string) {
	t.Helper()
	want := readiness{Code: code, Status: "ready", Checks: checks}
	if code != http.StatusOK {
		want.Status = "not ready"
	}
	soon(t, want, func() readiness { return r.ready(t) })
}

func eventually(t *testing.T, wrong func() string) {
	t.Helper()
	ephemeral.Until(t, func() error {
		if said := wrong(); said != "" {
			return errors.New(said)
		}
		return nil
	})
}

// soon waits until got returns what is wanted.
func soon[T any](t *testing.T, want T, got func() T) {
	t.Helper()
	eventually(t, func() string { return cmp.Diff(want, got()) })
}

type statuses struct {
	ready, cart, subscriptions int // HTTP statuses of /readyz, an add, and a list
	redis, postgres            string
}

func healthy() statuses {
	return statuses{http.StatusOK, http.StatusOK, http.StatusOK, "ok", "ok"}
}

// wantStatuses waits until the instance responds with these. token is an API token.
func (r *running) wantStatuses(t *testing.T, token string, want statuses) {
	t.Helper()
	r.wantReady(t, want.ready, want.redis, want.postgres)
	eventually(t, func() string {
		a, err := r.call("", "POST", "/cart/add", `{"product_id":1}`)
		switch {
		case err != nil:
			return err.Error()
		case a.Status != want.cart || want.cart == http.StatusServiceUnavailable && a.Header.Get("Retry-After") == "":
			return a.Body
		}
		return ""
	})
	r.wantStatus(t, token, "/subscriptions", want.subscriptions)
}

func (r *running) end(t *testing.T) {
	t.Helper()
	r.signal(t, syscall.SIGTERM)
	late := time.AfterFunc(ephemeral.Patience(15*time.Second), func() { _ = r.cmd.Process.Kill() })
	defer late.Stop()
	assert.Succeeds(t, r.cmd.Wait(), "serve ended with")
}

func storeToken(t *testing.T, databaseURL string) string {
	t.Helper()
	return strings.TrimSpace(onDatabase(t, databaseURL, "token", "store", "--store", "1", "--name", "test"))
}

func startSeeded(t *testing.T) *ephemeral.Server {
	t.Helper()
	postgres := ephemeral.StartPostgres(t)
	onDatabase(t, postgres.URL, "migrate", "up")
	onDatabase(t, postgres.URL, "seed")
	return postgres
}

// No outage makes an instance unready. One that starts meanwhile serves what it can.
func TestServe_ServesWhatItCanDuringAnOutage(t *testing.T) {
	t.Parallel()
	const ok, down = http.StatusOK, http.StatusServiceUnavailable
	postgres, redis := startSeeded(t), ephemeral.StartRedis(t)
	token := storeToken(t, postgres.URL)
	serve := startServe(t, postgres.URL, "REDIS_URL="+redis.URL)
	serve.wantStatuses(t, token, healthy())
	for _, outage := range []struct {
		server     *ephemeral.Server
		settings   string   // of the instance that starts
		has, later statuses // of the one that has started before, and of the other
	}{
		{postgres, "DEFAULT_STORE=9", statuses{ok, ok, down, "ok", "failing"}, statuses{down, down, down, "ok", "unreached"}},
		{redis, "DEFAULT_STORE=1", statuses{ok, down, ok, "failing", "ok"}, statuses{down, down, ok, "unreached", "ok"}},
	} {
		outage.server.Kill()
		serve.wantStatuses(t, token, outage.has)
		later := startServe(t, postgres.URL, "REDIS_URL="+redis.URL, outage.settings)
		later.wantStatuses(t, token, outage.later)
		outage.server.Restart()
		for _, r := range []*running{serve, later} {
			r.wantStatuses(t, token, healthy())
		}
		later.end(t)
	}
	serve.end(t)
}

func TestServe_IsNotReadyWhenItsCredentialsAreRefused(t *testing.T) {
	t.Parallel()
	database, redis := seeded(t), ephemeral.Redis(t)
	with := func(rawURL string, edit func(*url.URL)) string {
		u := parsed(t, rawURL)
		edit(u)
		return u.String()
	}
	noUser := func(u *url.URL) { u.User = url.UserPassword("nobody", "wrong") }
	noDatabase := func(u *url.URL) { u.Path = "/nothing" }
	startServe(t, with(database, noUser)).wantReady(t, http.StatusServiceUnavailable, "ok", "refused")
	startServe(t, with(database, noDatabase)).wantReady(t, http.StatusServiceUnavailable, "ok", "refused")
	refusesParameter := ephemeral.Pooler(t, database, "session") + "&search_path=public"
	startServe(t, refusesParameter).wantReady(t, http.StatusServiceUnavailable, "ok", "refused")
	startServe(t, database, "REDIS_URL="+with(redis, noUser)).wantReady(t, http.StatusServiceUnavailable, "refused", "ok")
}

// After SIGTERM the process accepts requests until load balancers know it is not ready.
func TestServe_AcceptsRequestsDuringTheDrainDelay(t *testing.T) {
	t.Parallel()
	const delay = maxDrainDelay // in which the checks below have to fit
	database := seeded(t)
	onDatabase(t, database, "migrate", "up") // changes can be read in this copy of a database
	token := storeToken(t, database)
	serve := startServe(t, database, "DRAIN_DELAY="+delay.String())
	serve.wantReady(t, http.StatusOK, "ok", "ok")
	serve.asStoreServed(t, token, "/subscriptions") // has a connection to Postgres, which takes time on a busy machine
	signaled := time.Now()
	serve.signal(t, syscall.SIGTERM)
	soon(t, "draining", func() string { return serve.ready(t).Status })
	// A kept-alive connection ends with a response that announces it, not during a request.
	response := assert.Must(http.Get(serve.URL + "/cart/count"))(t)
	response.Body.Close()
	assert.That(t, response.Close, "a response during the delay keeps its connection alive")
	a := serve.send(t, "GET", "/subscriptions/changes", "", "Authorization", "Bearer "+token, "Accept", "text/csv")
	assert.That(t, a.Status == http.StatusOK && strings.Contains(a.Body, "\nnext,"), "a stream meanwhile: %+v", a)
	for accepted := true; accepted; {
		began := time.Now()
		conn, err := net.Dial("tcp", strings.TrimPrefix(serve.URL, "http://"))
		if accepted = err == nil; accepted {
			conn.Close()
			time.Sleep(10 * time.Millisecond)
		} else if passed := began.Sub(signaled); passed < delay-100*time.Millisecond {
			t.Errorf("accepts no connections %v after SIGTERM, want %v", passed, delay)
		}
		assert.Require(t, time.Since(signaled) <= ephemeral.Patience(20*time.Second), "still accepts connections")
	}
	assert.Succeeds(t, serve.cmd.Wait(), "serve ended with")
	assert.That(t, time.Since(signaled) <= ephemeral.Patience(10*time.Second), "took %v to end", time.Since(signaled))
}

func TestDemo_HasProfilesOnLoopbackAlone(t *testing.T) {
	t.Parallel()
	for addr, status := range map[string]int{
		"127.0.0.1:0": http.StatusOK, "[::1]:0": http.StatusOK, "0.0.0.0:0": http.StatusNotFound, ":0": http.StatusNotFound,
	} {
		d := start(t, "demo", "ADMIN_ADDR="+addr)
		assert.Equal(t, d.send(t, "GET", d.admin+"/debug/pprof/", "").Status, status, "%s answers", addr)
	}
}
