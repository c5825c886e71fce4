package connect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/cause"
)

type dial func(ctx context.Context, network, addr string) (net.Conn, error)

// alwaysConnected returns a dialer that never fails: instead of an error, it returns a
// connection on which every read and write fails. go-redis counts failed dials. Once there are
// as many as its pool has connections, it refuses all commands and dials only once a second.
// A Redis that is back would then stay unused for up to a second.
func (d dial) alwaysConnected() dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := d(ctx, network, addr)
		if err != nil {
			unused, _ := net.Pipe()
			return failedConn{unused, err}, nil
		}
		return conn, nil
	}
}

type failedConn struct {
	net.Conn
	err error
}

func (c failedConn) Read([]byte) (int, error)  { return 0, c.err }
func (c failedConn) Write([]byte) (int, error) { return 0, c.err }

// SyscallConn fails, so that go-redis's pool does not give the connection to another command.
func (c failedConn) SyscallConn() (syscall.RawConn, error) { return nil, c.err }

// sentinelPatience is how long a sentinel may take to respond on a new connection. It is
// much shorter than a request's time for Redis, which must be enough for another sentinel.
const sentinelPatience = 50 * time.Millisecond

// orAnotherSentinel returns a dialer for sentinels and for the servers that they name.
//
// go-redis asks the same sentinel until it fails, but does not count the end of a request's time as
// a failure. So it would keep to a sentinel that hangs, and find no master. If a sentinel does not
// respond, this dialer connects to another one. The address of the first one need not be one of
// sentinels, since go-redis learns of more.
func (d dial) orAnotherSentinel(sentinels []string, failed *tries) dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if server, ok := ctx.Value(toServer{}).(*string); ok {
			*server = addr
			return d(ctx, network, addr)
		}
		began := time.Now()
		conn, err := dialAny(ctx, func(ctx context.Context, addr string) (net.Conn, error) {
			conn, err := d(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			if err := respond(ctx, conn); err != nil {
				_ = conn.Close()
				return nil, err
			}
			return conn, nil
		}, addr, sentinels)
		failed.ReportResult(cause.Of(nameOf(sentinels), began, err))
		return conn, err
	}
}

// serverDials is a hook for a client that asks sentinels for the server to dial. go-redis has
// one dialer for servers and sentinels; the hook is called only for servers. If no sentinel
// names a server, that is a failed dial too.
type serverDials struct {
	master    string   // the sentinels' name for it
	sentinels []string // their addresses
	failed    *tries
}

// toServer marks a dial's context with a *string for the address that the sentinels name.
type toServer struct{}

func (serverDials) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (serverDials) ProcessPipelineHook(n redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return n
}

// DialHook marks the dial, and keeps the server's address for errors.
func (s serverDials) DialHook(next redis.DialHook) redis.DialHook {
	marked := dial(func(ctx context.Context, network, addr string) (net.Conn, error) {
		began, server := time.Now(), ""
		conn, err := next(context.WithValue(ctx, toServer{}, &server), network, addr)
		if server == "" {
			err = s.unnamed(began, err)
		} else {
			name := "redis " + server
			s.failed.server.Store(&name)
			err = cause.Of(name, began, err)
		}
		if err != nil {
			s.failed.ReportResult(err)
			return nil, fmt.Errorf("%w", err) // go-redis unwraps it once
		}
		return conn, nil
	})
	return redis.DialHook(marked.alwaysConnected())
}

func nameOf(sentinels []string) string { return "redis sentinels " + strings.Join(sentinels, ",") }

// unnamed returns the error of a dial for which the sentinels named no server.
func (s serverDials) unnamed(began time.Time, err error) error {
	server := nameOf(s.sentinels)
	described := cause.Of(server, began, err)
	failure, ok := described.(*cause.Failure)
	switch {
	case !ok:
		return described
	case errors.Is(err, redis.Nil):
		failure.What = "they know no master " + s.master
	case errors.Is(err, context.DeadlineExceeded):
		earlier, _ := errors.AsType[*cause.Failure](s.failed.failedSince(began))
		return failure.Because(earlier)
	}
	return failure
}

// dialAny connects to first; if it fails or takes longer than sentinelPatience, to any address.
func dialAny(ctx context.Context, connect func(context.Context, string) (net.Conn, error), first string, all []string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	late, beginOthers := context.WithTimeout(ctx, sentinelPatience)
	defer beginOthers()
	defer cancel() // comes first, so that no other dial begins
	results := make(chan result)
	begin := func(addr string) {
		if addr != first {
			<-late.Done()
			if ctx.Err() != nil {
				return
			}
		}
		conn, err := connect(ctx, addr)
		select {
		case results <- result{conn, err}:
		case <-ctx.Done(): // another one was faster
			if err == nil {
				_ = conn.Close()
			}
		}
	}
	addrs := append(slices.DeleteFunc(slices.Clone(all), func(addr string) bool { return addr == first }), first)
	for _, addr := range addrs {
		go begin(addr)
	}
	var failed error
	for range addrs {
		select {
		case r := <-results:
			if r.err == nil {
				return r.conn, nil
			}
			failed = r.err
			beginOthers()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, failed
}

// respond waits until a server responds to a PING, also if it requires a login first.
func respond(ctx context.Context, conn net.Conn) error {
	if deadline, bounded := ctx.Deadline(); bounded {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	for end := make([]byte, 1); !bytes.Equal(end, []byte("\n")); { // go-redis reads what follows
		if _, err := conn.Read(end); err != nil {
			return err
		}
	}
	return conn.SetDeadline(time.Time{})
}
