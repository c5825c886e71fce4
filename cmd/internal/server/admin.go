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
)

// Admin is the operator's side. It has a separate address, which must not be public.
type Admin struct {
	Metrics *telemetry.Metrics
	Version string
	// Local says that the address is a loopback address. Only then it serves /debug/pprof/, which shows memory. A page
	// of a website whose name leads there must not read it.
	Local bool

	// Dependencies are the servers that the service needs, by name. Started is when the
	// process began to check them.
	Dependencies map[string]*Dependency
	Started      time.Time

	// Replicas returns the state of each Postgres replica, by name, for /readyz. It does not
	// affect readiness, because other servers serve the replica's reads. nil: none.
	Replicas func() map[string]string

	Log      *slog.Logger // of Watch
	LosesLog func() bool  // whether lines of the log are being lost, for /readyz; nil: never

	draining atomic.Bool
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
	if !a.Local {
		return mux
	}
	// Not cmdline: flags may hold secrets.
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
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
