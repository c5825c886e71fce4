package server_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"commerce/cmd/internal/server"
	"commerce/cmd/internal/telemetry"
	"commerce/deploy/assert"
)

var (
	errUnreached = errors.New("connection refused")
	errRefused   = errors.New("wrong password")
)

// operated is the admin API of a process with one dependency, which fails with err.
type operated struct {
	*server.Admin
	err error
}

func operate(started time.Time) *operated {
	o := &operated{}
	o.Admin = &server.Admin{Metrics: telemetry.New("test"), Started: started, Dependencies: map[string]*server.Dependency{"it": {
		Ping:    func(context.Context) error { return o.err },
		Refused: func(err error) bool { return errors.Is(err, errRefused) },
	}}}
	return o
}

// says requests /readyz while the dependency fails with err.
func (o *operated) says(t *testing.T, err error) (status int, state string) {
	t.Helper()
	o.err = err
	w := ask(o.Handler(), "192.0.2.1", "GET", "/readyz")
	return w.Code, decode[struct{ Checks map[string]string }](t, w.Body.Bytes()).Checks["it"]
}

func TestReady_IsNotReadyOnlyUntilTheFirstSuccessfulCheck(t *testing.T) {
	t.Parallel()
	type step struct {
		err    error
		status int
		state  string
	}
	const fresh, old = time.Duration(0), 31 * time.Second // ago
	for name, test := range map[string]struct {
		started time.Duration
		steps   []step
	}{
		"works, then fails": {fresh, []step{{nil, 200, "ok"}, {errUnreached, 200, "failing"}, {errRefused, 200, "failing"}, {nil, 200, "ok"}}},
		"never reached":     {fresh, []step{{errUnreached, 503, "unreached"}, {nil, 200, "ok"}, {errUnreached, 200, "failing"}}},
		"never for 30 s":    {old, []step{{errUnreached, 200, "unreached"}, {nil, 200, "ok"}}},
		"refused":           {fresh, []step{{errRefused, 503, "refused"}, {errUnreached, 503, "refused"}, {nil, 200, "ok"}}},
		"refused for 30 s":  {old, []step{{errRefused, 503, "refused"}, {errUnreached, 503, "refused"}, {nil, 200, "ok"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := operate(time.Now().Add(-test.started))
			for i, step := range test.steps {
				status, state := o.says(t, step.err)
				assert.That(t, status == step.status && state == step.state, "step %d: %d %s, want %d %s", i, status, state, step.status, step.state)
			}
			o.Drain()
			status, _ := o.says(t, nil)
			assert.Equal(t, status, http.StatusServiceUnavailable, "status while it drains")
		})
	}
}

func TestReady_CountsChecksBeforeTheFirstRequest(t *testing.T) {
	t.Parallel()
	o := operate(time.Now())
	failed := o.Reach(t.Context())
	assert.Require(t, len(failed) == 0, "%v", failed)
	status, state := o.says(t, errUnreached)
	assert.That(t, status == http.StatusOK && state == "failing", "%d %s, want 200 failing", status, state)
}

// Only a name that leads to a loopback address can be a website's, and only such an address serves profiles.
func TestAdmin_ServesProfilesAndChecksTheHostOnLoopback(t *testing.T) {
	t.Parallel()
	const ok, bad, notFound = http.StatusOK, http.StatusBadRequest, http.StatusNotFound
	for _, test := range []struct {
		url       string
		local, on int // statuses on a loopback address, and on another one
	}{
		{"http://localhost/healthz", ok, ok},
		{"http://[::1]:9090/debug/pprof/", ok, notFound},
		{"http://127.0.0.1:9090/debug/pprof/goroutine?debug=1", ok, notFound},
		{"http://localhost/debug/pprof/symbol", ok, notFound},
		{"http://localhost/debug/pprof/cmdline", notFound, notFound}, // flags may hold secrets
		{"http://admin.example.com/healthz", bad, ok},
		{"http://admin.example.com/debug/pprof/heap", bad, notFound},
		{"http://localhost.example.com/debug/pprof/heap", bad, notFound},
	} {
		for local, status := range map[bool]int{true: test.local, false: test.on} {
			o := operate(time.Now())
			o.Local = local
			assert.Equal(t, ask(o.Handler(), "192.0.2.1", "GET", test.url).Code, status, "%s, local: %v", test.url, local)
		}
	}
	for _, local := range []bool{true, false} {
		o := operate(time.Now())
		o.Local = local
		withoutHost := httptest.NewRequest("GET", "/healthz", nil) // of a health check over HTTP/1.0
		withoutHost.Host = ""
		w := httptest.NewRecorder()
		o.Handler().ServeHTTP(w, withoutHost)
		assert.Equal(t, w.Code, http.StatusOK, "without a Host, local: %v", local)
	}
}

func TestProtect_CoversTheAdminsJSON(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/healthz", "/readyz", "/version"} {
		w := ask(operate(time.Now()).Handler(), "192.0.2.1", "GET", path)
		wantProtected(t, path, w.Header())
		got := w.Header().Get("Cache-Control")
		assert.That(t, w.Code == http.StatusOK && got == "no-store", "%s: %d, Cache-Control is %q", path, w.Code, got)
	}
}

type outage struct {
	mu  sync.Mutex
	err error
}

func (o *outage) set(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
}

func (o *outage) ping(context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// wantLines checks the lines of a log, each as its level, message, duration and error.
func (l *logBuffer) wantLines(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, line := range l.logged(t) {
		text := line["level"].(string) + " " + line["msg"].(string)
		for _, name := range []string{"after", "err"} {
			if value, ok := line[name].(string); ok {
				text += ", " + name + " " + value
			}
		}
		got = append(got, text)
	}
	assert.Equal(t, got, want, "log")
}

// watched runs test while dependencies are watched. The first one is down from the start.
func watched(t *testing.T, test func(redis, postgres *outage, log *logBuffer, up func() map[string]bool)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		redis, postgres, log := &outage{err: errors.New("connection refused")}, &outage{}, &logBuffer{}
		refused := func(error) bool { return false }
		a := &server.Admin{
			Log:     slog.New(slog.NewJSONHandler(log, nil)),
			Started: time.Now(),
			Dependencies: map[string]*server.Dependency{
				"redis":    {Ping: redis.ping, Refused: refused},
				"postgres": {Ping: func(context.Context) error { return nil }, PingAll: postgres.ping, Refused: refused},
			},
			Metrics: telemetry.New("test"),
		}
		a.Reach(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.Watch(ctx)
		}()
		test(redis, postgres, log, func() map[string]bool {
			synctest.Wait()
			up := map[string]bool{}
			for name := range a.Dependencies {
				up[name] = metric(t, a.Metrics, `commerce_dependency_up{dependency="`+name+`"}`) == 1
			}
			return up
		})
		cancel()
		<-done
	})
}

func TestWatch_LogsEachLossAndEachReturnOnce(t *testing.T) {
	watched(t, func(redis, postgres *outage, log *logBuffer, up func() map[string]bool) {
		time.Sleep(10500 * time.Millisecond)
		log.wantLines(t) // the start has logged it
		redis.set(nil)
		time.Sleep(10 * time.Second)
		const back = "INFO redis is back, after 11s"
		log.wantLines(t, back)

		postgres.set(errors.New("connection reset"))
		time.Sleep(time.Second)
		const lost = "WARN lost postgres, err connection reset"
		log.wantLines(t, back, lost)
		assert.Equal(t, up(), map[string]bool{"redis": true, "postgres": false}, "states")
		postgres.set(errors.New("another error"))
		time.Sleep(time.Minute)
		postgres.set(nil)
		time.Sleep(time.Second)
		log.wantLines(t, back, lost, "INFO postgres is back, after 1m1s")
		assert.Equal(t, up(), map[string]bool{"redis": true, "postgres": true}, "states")
	})
}
