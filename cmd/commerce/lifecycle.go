package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"commerce/auth/limit"
	"commerce/cart/live"
	"commerce/cmd/internal/cli"
	"commerce/cmd/internal/server"
	"commerce/deploy/heap"
)

// gracePeriod is from SIGTERM to the end: the drain delay, and then the requests in flight.
const gracePeriod = 9 * time.Second

// streamPeriod is the time from SIGTERM until streams are ended. Until then they start and
// continue like other requests.
const streamPeriod = gracePeriod - time.Second

type listeners struct {
	public, admin net.Listener
}

func (s *settings) listen() (l listeners, err error) {
	if l.public, err = listen("ADDR", s.Addr); err != nil {
		return l, err
	}
	if l.admin, err = listen("ADMIN_ADDR", s.AdminAddr); err != nil {
		l.public.Close()
		_, public, _ := net.SplitHostPort(s.Addr) // both were checked when they were read
		if _, admin, _ := net.SplitHostPort(s.AdminAddr); admin == public {
			err = &cli.BadSetting{Name: "ADMIN_ADDR", Err: fmt.Errorf("has the port of ADDR, %s: set ADMIN_ADDR to another address", s.Addr)}
		}
	}
	return l, err
}

func listen(setting, addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%s is in use by another process: set %s to another address", addr, setting)
	}
	if err != nil {
		return nil, &cli.BadSetting{Name: setting, Err: err}
	}
	return l, nil
}

// errStops ends streams of events, whose clients then connect to another instance.
var errStops = errors.New("the process stops")

// serve assembles the parts and serves them until ctx ends, and then for another
// drainDelay. It calls announce before the first request.
func (s *settings) serve(ctx context.Context, sockets listeners, parts server.Parts, admin *server.Admin, drainDelay time.Duration, announce func()) error {
	connections := fit(&parts)
	var stopping atomic.Bool
	context.AfterFunc(ctx, func() { time.AfterFunc(streamPeriod, func() { stopping.Store(true) }) })
	parts.Stopping = stopping.Load
	var end context.CancelCauseFunc
	parts.Ending, end = context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(errStops)
	handler, err := server.Assemble(parts)
	if err != nil {
		return fmt.Errorf("assemble: %w", err)
	}
	at, ok := sockets.admin.Addr().(*net.TCPAddr)
	admin.Version, admin.Local = version, ok && at.IP.IsLoopback()
	announce()
	public := httpServer(reconnect(handler, admin), parts.Log)
	public.ConnContext = server.ConnContext
	public.RegisterOnShutdown(func() { end(errStops) })
	sockets.public = limitConnections(sockets.public.(*net.TCPListener), connections, public, parts)
	return sockets.serve(ctx, public, admin, drainDelay, parts.Log)
}

// What the process needs besides clients and streams.
const (
	ownFiles  = 64       // file descriptors of the admin address, the log and checks
	poolFiles = 64       // of connections to Redis and Postgres, for each CPU
	ownMemory = 64 << 20 // bytes

	requestFiles = 1000     // of clients without a stream
	streamMemory = 16 << 10 // bytes
)

// fit sets how many streams the process has room for, and returns how many connections.
func fit(parts *server.Parts) (connections int) {
	memory, err := heap.Configure()
	if err != nil {
		parts.Log.Warn("starting without a memory limit", "err", err) // it still works
		memory = math.MaxInt64
	}
	files := syscall.Rlimit{Cur: math.MaxInt32}
	_ = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) // otherwise unlimited
	connections, parts.Live.Streams = room(files.Cur, memory, runtime.GOMAXPROCS(0))
	if parts.Live.Streams < live.MaxStreams {
		parts.Log.Warn("the limit of file descriptors (LimitNOFILE, ulimit -n) or of memory is too low for all streams of events",
			"streams", parts.Live.Streams, "instead_of", live.MaxStreams, "file_descriptors", files.Cur, "memory", memory)
	}
	return connections
}

// room returns how many connections of clients, and how many streams among them, leave enough file descriptors and bytes
// of memory for everything else. Under very low limits it leaves most of them.
func room(files uint64, memory int64, cpus int) (connections, streams int) {
	all := int(min(files, math.MaxInt32))
	connections = max(all-ownFiles-poolFiles*cpus, all/4)
	fits := max(memory-ownMemory, memory/4) / streamMemory
	return connections, int(min(int64(max(connections-requestFiles, connections/2)), fits, live.MaxStreams))
}

// limitConnections makes clients wait while the maximum number of connections is open. Idle connections are closed then.
func limitConnections(l *net.TCPListener, maximum int, of *http.Server, parts server.Parts) net.Listener {
	var told atomic.Bool
	limited := limit.NewConnections(l, maximum, func() {
		if !told.Swap(true) {
			parts.Log.Warn("no file descriptor is left for further clients, so idle connections are closed", "connections", maximum)
			time.AfterFunc(time.Minute, func() { told.Store(false) })
		}
		of.SetKeepAlivesEnabled(false)
		of.SetKeepAlivesEnabled(true)
	})
	parts.Metrics.ObserveConnections(limited.Open, maximum)
	return limited
}

// serve serves both addresses until ctx ends. Then /readyz fails, so that load balancers stop sending
// requests. After the delay it closes the public address and waits for requests in flight.
func (l listeners) serve(ctx context.Context, public *http.Server, admin *server.Admin, delay time.Duration, log *slog.Logger) error {
	adminSide := httpServer(admin.Handler(), log)
	adminSide.WriteTimeout = 0 // the caller chooses the duration of a profile
	failed := make(chan error, 2)
	go func() { failed <- public.Serve(server.HoldWrites(l.public)) }()
	go func() { failed <- adminSide.Serve(l.admin) }()

	select {
	case err := <-failed:
		return errors.Join(err, public.Close(), adminSide.Close())
	case <-ctx.Done():
	}
	admin.Drain()
	log.Info("stopping", "delay", delay.String())
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), gracePeriod)
	defer cancel()
	time.Sleep(delay)
	err := public.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		log.Warn("requests were still running", "after", gracePeriod.String())
		err = public.Close()
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

// httpServer returns a server for HTTP/1.1, and HTTP/2 without TLS. It closes the connection of a client, or in
// HTTP/2 ends its request, after these timeouts. With HTTP/2, a client that does not read responses or answer pings
// loses its connection too.
func httpServer(h http.Handler, log *slog.Logger) *http.Server {
	s := &http.Server{
		Protocols:         new(http.Protocols),
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second, // of a whole request
		WriteTimeout:      15 * time.Second, // until the client has read the response
		IdleTimeout:       2 * time.Minute,  // until the next request
		MaxHeaderBytes:    64 << 10,

		DisableGeneralOptionsHandler: true, // net/http's answer to OPTIONS * has no request ID

		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	s.HTTP2 = &http.HTTP2Config{
		MaxConcurrentStreams:      128,
		MaxReceiveBufferPerStream: 128 << 10, // a request's body has at most 64 KiB
		SendPingTimeout:           s.IdleTimeout / 4,
		PingTimeout:               s.WriteTimeout,
		WriteByteTimeout:          s.WriteTimeout,
	}
	return s
}
