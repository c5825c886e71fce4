package server_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"commerce/cmd/internal/server"
	"commerce/cmd/internal/telemetry"
)

// outage is a dependency that can be lost.
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
	equal(t, got, want, "log")
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
		equal(t, up(), map[string]bool{"redis": true, "postgres": false}, "states")
		postgres.set(errors.New("another error"))
		time.Sleep(time.Minute)
		postgres.set(nil)
		time.Sleep(time.Second)
		log.wantLines(t, back, lost, "INFO postgres is back, after 1m1s")
		equal(t, up(), map[string]bool{"redis": true, "postgres": true}, "states")
	})
}
