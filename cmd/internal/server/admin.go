package server

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	"commerce/auth"
	"commerce/cmd/internal/telemetry"
	"commerce/subscriptions/replicas"
)

// Admin is the operator's side. It has a separate address, which must not be public.
type Admin struct {
	Metrics *telemetry.Metrics
	Version string
	// Profiles serves /debug/pprof/, which shows memory. Otherwise only OpenProfiles does.
	Profiles bool
	// Local says that the address is a loopback address. A page of a website whose name leads there must not read it.
	Local bool

	// Dependencies are the servers that the service needs, by name. Started is when the
	// process began to check them.
	Dependencies map[string]*Dependency
	Started      time.Time

	// Replicas returns the state of each Postgres replica, by name, for /readyz. It does not
	// affect readiness, because other servers serve the replica's reads. nil: none.
	Replicas func() map[string]replicas.State

	Log *slog.Logger // of Watch

	draining      atomic.Bool
	profilesUntil atomic.Pointer[time.Time] // nil: OpenProfiles was not called
}

// OpenProfiles serves /debug/pprof/ for a while.
func (a *Admin) OpenProfiles(during time.Duration) {
	until := time.Now().Add(during)
	a.profilesUntil.Store(&until)
}

func (a *Admin) profiled(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if until := a.profilesUntil.Load(); a.Profiles || until != nil && time.Now().Before(*until) {
			serve(w, r)
		} else {
			http.NotFound(w, r)
		}
	}
}

// Drain makes the process not ready, so that load balancers send it no new requests.
func (a *Admin) Drain() { a.draining.Store(true) }

func (a *Admin) Draining() bool { return a.draining.Load() }

// Handler serves health, readiness, metrics, version and profiles.
func (a *Admin) Handler() http.Handler {
	mux := http.NewServeMux()
	always := func(body map[string]any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, body) }
	}
	mux.HandleFunc("GET /healthz", always(map[string]any{"status": "ok"}))
	mux.HandleFunc("GET /readyz", a.ready)
	mux.HandleFunc("GET /version", always(map[string]any{"version": a.Version}))
	mux.Handle("GET /metrics", a.Metrics.Handler())
	// Not cmdline: flags may hold secrets.
	mux.HandleFunc("/debug/pprof/", a.profiled(pprof.Index))
	mux.HandleFunc("/debug/pprof/profile", a.profiled(pprof.Profile))
	mux.HandleFunc("/debug/pprof/symbol", a.profiled(pprof.Symbol))
	mux.HandleFunc("/debug/pprof/trace", a.profiled(pprof.Trace))
	if !a.Local {
		return mux
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "" && !auth.ForLoopback(r) { // some health checks send none, and no browser does
			writeJSON(w, http.StatusBadRequest, map[string]any{"error": "Host must be localhost or a loopback address."})
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	h := w.Header()
	h["Content-Type"] = jsonContent
	h["Cache-Control"] = notStored
	protect(h)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
