package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"commerce/cmd/internal/server"
)

// gracePeriod is the time from SIGTERM to the end of the process. It covers the drain
// delay and the requests in flight.
const gracePeriod = 9 * time.Second

// streamPeriod is the time from SIGTERM until streams are ended. Until then they start and
// continue like other requests.
const streamPeriod = gracePeriod - time.Second

// listeners are the sockets of the public and the admin address.
type listeners struct {
	public, admin net.Listener
}

func (s *settings) listen() (listeners, error) {
	public, err := listen("ADDR", s.Addr)
	if err != nil {
		return listeners{}, err
	}
	admin, err := listen("ADMIN_ADDR", s.AdminAddr)
	if err != nil {
		public.Close()
		return listeners{}, err
	}
	return listeners{public, admin}, nil
}

func listen(setting, addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, &badSetting{setting, fmt.Errorf("%s is in use by another process: set %s to another address", addr, setting)}
	}
	if err != nil {
		return nil, &badSetting{setting, err}
	}
	return l, nil
}

// run assembles the parts and serves them until ctx ends, and then for another
// drainDelay. It calls announce once both addresses accept connections.
func (s *settings) run(ctx context.Context, parts server.Parts, admin *server.Admin, drainDelay time.Duration, announce func(listeners)) error {
	s.limitMemory(parts.Log)
	parts.Stopping = endedFor(ctx, streamPeriod)
	handler, err := server.Assemble(parts)
	if err != nil {
		return fmt.Errorf("assemble: %w", err)
	}
	sockets, err := s.listen()
	if err != nil {
		return err
	}
	admin.Metrics, admin.Version, admin.Profiles = parts.Metrics, version, s.profiles(sockets.admin)
	announce(sockets)
	return sockets.serve(ctx, handler, admin, drainDelay, parts.Log)
}

// endedFor returns a function that reports whether ctx ended at least d ago.
func endedFor(ctx context.Context, d time.Duration) func() bool {
	var is atomic.Bool
	context.AfterFunc(ctx, func() { time.AfterFunc(d, func() { is.Store(true) }) })
	return is.Load
}

// profiles reports whether to serve profiles on the admin address.
func (s *settings) profiles(admin net.Listener) bool {
	at, ok := admin.Addr().(*net.TCPAddr)
	return s.Pprof == "on" || s.Pprof == "" && ok && at.IP.IsLoopback()
}

// serve serves both addresses until ctx ends. Then /readyz fails, so that load balancers
// stop sending requests. After the delay serve closes the public address and waits for
// requests in flight, at most until the grace period is over.
func (l listeners) serve(ctx context.Context, public http.Handler, admin *server.Admin, delay time.Duration, log *slog.Logger) error {
	publicSide, adminSide := httpServer(reconnect(public, admin), log), httpServer(admin.Handler(), log)
	publicSide.ConnContext = server.ConnContext
	adminSide.WriteTimeout = 0 // the caller chooses the duration of a profile
	failed := make(chan error, 2)
	go func() { failed <- publicSide.Serve(server.HoldWrites(l.public)) }()
	go func() { failed <- adminSide.Serve(l.admin) }()

	select {
	case err := <-failed:
		return errors.Join(err, publicSide.Close(), adminSide.Close())
	case <-ctx.Done():
	}
	admin.Drain()
	log.Info("stopping", "delay", delay.String())
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), gracePeriod)
	defer cancel()
	time.Sleep(delay)
	err := publicSide.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		log.Warn("requests were still running", "after", gracePeriod.String())
		err = publicSide.Close()
	}
	return errors.Join(err, adminSide.Close())
}

// reconnect makes clients close their connections while the process drains. Otherwise
// the process would close a kept-alive connection, possibly during a request.
func reconnect(h http.Handler, admin *server.Admin) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if admin.Draining() {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

func httpServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      15 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}
