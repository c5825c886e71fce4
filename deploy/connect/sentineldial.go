package connect

import (
	"bytes"
	"context"
	"net"
	"slices"
	"time"
)

// sentinelPatience is how long the dialer waits for the first sentinel before it also tries the
// others. It is much shorter than a request's time for Redis, so that the others have time to
// respond.
const sentinelPatience = 50 * time.Millisecond

// orAnotherSentinel returns a dialer for sentinels and for the servers that they name.
//
// go-redis uses the same sentinel until it fails. But go-redis does not count it as a failure
// of the sentinel when a request runs out of time. So it would keep using a sentinel that
// hangs, for example because its machine is lost, and would not find the master any more. If a
// sentinel does not respond, this dialer connects to another one.
func (d dial) orAnotherSentinel(sentinels []string) dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if !slices.Contains(sentinels, addr) {
			return d(ctx, network, addr)
		}
		return dialAny(ctx, func(ctx context.Context, addr string) (net.Conn, error) {
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
	}
}

// dialAny connects to first. If that takes longer than sentinelPatience, it also tries all
// other addresses, and returns the first connection that succeeds.
func dialAny(ctx context.Context, connect func(context.Context, string) (net.Conn, error), first string, all []string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	results := make(chan result)
	begin := func(addr string) {
		conn, err := connect(ctx, addr)
		select {
		case results <- result{conn, err}:
		case <-ctx.Done(): // another address was faster, or the time is over
			if err == nil {
				_ = conn.Close()
			}
		}
	}
	go begin(first)
	pending, late := 1, time.After(sentinelPatience)
	for {
		select {
		case r := <-results:
			pending--
			if r.err == nil || pending == 0 {
				return r.conn, r.err
			}
		case <-late:
			for _, addr := range all {
				if addr != first {
					pending++
					go begin(addr)
				}
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// respond waits until a server responds to a PING. An error response counts, because the
// server may require a login first.
func respond(ctx context.Context, conn net.Conn) error {
	if deadline, bounded := ctx.Deadline(); bounded {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	for end := make([]byte, 1); !bytes.Equal(end, []byte("\n")); { // byte by byte, because go-redis reads what follows
		if _, err := conn.Read(end); err != nil {
			return err
		}
	}
	return conn.SetDeadline(time.Time{})
}
