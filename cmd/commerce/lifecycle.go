package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"commerce/cmd/internal/server"
)

// grace is how long requests in flight have to finish once the process is told to
// end.
const grace = 9 * time.Second

// listeners are both sides' sockets, opened before anything is announced.
type listeners struct {
	public, admin net.Listener
}

func (s *settings) listen() (listeners, error) {
	public, err := net.Listen("tcp", s.Addr)
	if err != nil {
		return listeners{}, &badSetting{"ADDR", err}
	}
	admin, err := net.Listen("tcp", s.AdminAddr)
	if err != nil {
		public.Close()
		return listeners{}, &badSetting{"ADMIN_ADDR", err}
	}
	return listeners{public, admin}, nil
}

// serve answers on both sides until the context ends, then lets what is in flight
// finish. The process is not ready from that moment on.
func (l listeners) serve(ctx context.Context, public http.Handler, admin *server.Admin, log *slog.Logger) error {
	publicSide, adminSide := httpServer(public, log), httpServer(admin.Handler(), log)
	adminSide.WriteTimeout = 0 // a profile takes as long as was asked
	failed := make(chan error, 2)
	go func() { failed <- publicSide.Serve(l.public) }()
	go func() { failed <- adminSide.Serve(l.admin) }()

	select {
	case err := <-failed:
		return errors.Join(err, publicSide.Close(), adminSide.Close())
	case <-ctx.Done():
	}
	admin.Drain()
	log.Info("stopping")
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := publicSide.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		log.Warn("requests were still running", "after", grace.String())
		err = publicSide.Close()
	}
	return errors.Join(err, adminSide.Close())
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
