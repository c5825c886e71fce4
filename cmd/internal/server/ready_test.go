package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"commerce/cmd/internal/server"
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
	o.Admin = &server.Admin{Started: started, Dependencies: map[string]*server.Dependency{"it": {
		Ping:    func(context.Context) error { return o.err },
		Refused: func(err error) bool { return errors.Is(err, errRefused) },
	}}}
	return o
}

// says requests /readyz while the dependency fails with err.
func (o *operated) says(t *testing.T, err error) (status int, state string) {
	t.Helper()
	o.err = err
	w := httptest.NewRecorder()
	o.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/readyz", nil))
	var body struct{ Checks map[string]string }
	noError(t, json.Unmarshal(w.Body.Bytes(), &body))
	return w.Code, body.Checks["it"]
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
				assert(t, status == step.status && state == step.state, "step %d: %d %s, want %d %s", i, status, state, step.status, step.state)
			}
			o.Drain()
			if status, _ := o.says(t, nil); status != http.StatusServiceUnavailable {
				t.Errorf("%d while it drains, want 503", status)
			}
		})
	}
}

func TestReady_CountsChecksBeforeTheFirstRequest(t *testing.T) {
	t.Parallel()
	o := operate(time.Now())
	failed := o.Reach(t.Context())
	require(t, len(failed) <= 0, "%v", failed)
	status, state := o.says(t, errUnreached)
	assert(t, status == http.StatusOK && state == "failing", "%d %s, want 200 failing", status, state)
}
