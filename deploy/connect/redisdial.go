package connect

import (
	"context"
	"net"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// dial is the type of a go-redis dialer.
type dial func(ctx context.Context, network, addr string) (net.Conn, error)

// dialer returns the dialer of a client with these options. failed records failed dials to
// sentinels.
func (t redisTarget) dialer(o *redis.UniversalOptions, failed *tries) dial {
	direct := dial(redis.NewDialer(&redis.Options{DialTimeout: o.DialTimeout, TLSConfig: o.TLSConfig}))
	if t.kind == sentinels {
		return direct.orAnotherSentinel(t.addrs, failed) // serverDials does the rest
	}
	return direct.alwaysConnected()
}

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

// failedConn is a connection that could not be opened.
type failedConn struct {
	net.Conn
	err error
}

func (c failedConn) Read([]byte) (int, error)  { return 0, c.err }
func (c failedConn) Write([]byte) (int, error) { return 0, c.err }

// SyscallConn fails, so that go-redis's pool does not give the connection to another command.
func (c failedConn) SyscallConn() (syscall.RawConn, error) { return nil, c.err }
