package server

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"
)

// Admin is the operator's side, on an address of its own that is never public.
type Admin struct {
	Metrics *Metrics
	Version string
	// Checks are what must answer before requests may come, by name. Watched are
	// what the service can do without for a while: they are told of, no more.
	Checks, Watched map[string]func(context.Context) error

	draining atomic.Bool
}

// Drain makes the process not ready, so that no new requests are sent to it.
func (a *Admin) Drain() { a.draining.Store(true) }

// Handler serves health, readiness, metrics, version and profiles.
func (a *Admin) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", a.ready)
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"version": a.Version})
	})
	if a.Metrics != nil {
		mux.Handle("GET /metrics", a.Metrics.handler())
	}
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// ready answers 200 when every check passes within half a second, else 503; either
// way it says what each came to, and what was watched.
func (a *Admin) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 500*time.Millisecond)
	defer cancel()
	checks := map[string]string{}
	status := http.StatusOK
	if !pass(ctx, a.Checks, checks) {
		status = http.StatusServiceUnavailable
	}
	pass(ctx, a.Watched, checks)
	word := "ready"
	switch {
	case a.draining.Load():
		status, word = http.StatusServiceUnavailable, "draining"
	case status != http.StatusOK:
		word = "not ready"
	}
	writeJSON(w, status, map[string]any{"status": word, "checks": checks})
}

// pass notes what each check came to and reports whether all passed. They run at
// the same time, so that a slow one does not take the time of the others.
func pass(ctx context.Context, checks map[string]func(context.Context) error, came map[string]string) bool {
	type result struct {
		name string
		err  error
	}
	results := make(chan result, len(checks))
	for name, check := range checks {
		go func() { results <- result{name, check(ctx)} }()
	}
	all := true
	for range checks {
		r := <-results
		came[r.name] = "ok"
		if r.err != nil {
			came[r.name], all = "failing", false
		}
	}
	return all
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
