package connect

import (
	"context"
	"fmt"
	"net"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// dialer returns go-redis' own dialer, except that a failed dial is a connection that
// fails. After as many failed dials as its pool has connections, go-redis refuses all
// commands and dials only once a second, so a Redis that is back would stay unused for up
// to a second. A failed connection does not count as a failed dial.
func dialer(o *redis.UniversalOptions) func(ctx context.Context, network, addr string) (net.Conn, error) {
	dial := redis.NewDialer(&redis.Options{DialTimeout: o.DialTimeout, TLSConfig: o.TLSConfig})
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			unused, _ := net.Pipe()
			return failedConn{unused, fmt.Errorf("dial redis: %w", err)}, nil
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

// SyscallConn tells go-redis' pool not to give the connection to another command.
func (c failedConn) SyscallConn() (syscall.RawConn, error) { return nil, c.err }
