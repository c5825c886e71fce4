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
	// Checks are what must answer before requests may come, by name.
	Checks map[string]func(context.Context) error

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
	mux.Handle("GET /metrics", a.Metrics.handler())
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// ready answers 200 when every check passes within half a second, else 503; either
// way it says what each came to.
func (a *Admin) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 500*time.Millisecond)
	defer cancel()
	status, checks := http.StatusOK, map[string]string{}
	for name, check := range a.Checks {
		checks[name] = "ok"
		if err := check(ctx); err != nil {
			status, checks[name] = http.StatusServiceUnavailable, "failing"
		}
	}
	word := "ready"
	switch {
	case a.draining.Load():
		status, word = http.StatusServiceUnavailable, "draining"
	case status != http.StatusOK:
		word = "not ready"
	}
	writeJSON(w, status, map[string]any{"status": word, "checks": checks})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
