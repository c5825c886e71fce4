package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Listener receives the notifications of a Postgres channel on its own connection. It
// must connect directly: a transaction pooler does not deliver notifications.
type Listener struct {
	Config  *pgx.ConnConfig
	Channel string

	// Log receives a warning for each lost connection. Default: slog.Default().
	Log *slog.Logger

	// Silence is the time without a notification after which the connection is
	// pinged. Default: 5 s.
	Silence time.Duration

	// Heard is called with the payload of each notification, in order.
	Heard func(message string)
	// Missed is called each time the listener connects, because notifications may
	// have been lost before.
	Missed func()
}

const (
	listenSilence  = 5 * time.Second
	listenTimeout  = time.Second // for Postgres to respond
	listenPause    = 100 * time.Millisecond
	listenMaxPause = 2 * time.Second // the pause doubles up to this
)

// Run listens until ctx ends. It reconnects after every failure.
func (l *Listener) Run(ctx context.Context) {
	pause := listenPause
	for ctx.Err() == nil {
		began := time.Now()
		err := l.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > listenMaxPause {
			pause = listenPause
		}
		cmp.Or(l.Log, slog.Default()).WarnContext(ctx, "lost the connection for notifications: reconnecting", "channel", l.Channel, "in", pause.String(), "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, listenMaxPause)
	}
}

// listen receives notifications until the connection fails.
func (l *Listener) listen(ctx context.Context) error {
	conn, err := l.dial(ctx)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), listenTimeout)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	l.Missed()
	for {
		message, err := l.next(ctx, conn)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		l.Heard(message)
	}
}

func (l *Listener) dial(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	config := l.Config.Copy()
	config.RuntimeParams["application_name"] += " listener"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "/* listen */ LISTEN "+pgx.Identifier{l.Channel}.Sanitize()); err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w", err), conn.Close(ctx))
	}
	return conn, nil
}

// next waits for a notification. It pings the connection when none has arrived for a
// while, to find out whether the connection still works.
func (l *Listener) next(ctx context.Context, conn *pgx.Conn) (string, error) {
	for {
		quiet, cancel := context.WithTimeout(ctx, cmp.Or(l.Silence, listenSilence))
		n, err := conn.WaitForNotification(quiet)
		cancel()
		switch {
		case err == nil:
			return n.Payload, nil
		case ctx.Err() != nil || !pgconn.Timeout(err):
			return "", err
		}
		probe, cancel := context.WithTimeout(ctx, listenTimeout)
		err = conn.Ping(probe)
		cancel()
		if err != nil {
			return "", err
		}
	}
}
