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

	"commerce/auth/cause"
)

// Listener receives the notifications of a Postgres channel on its own connection. It
// must connect directly: a transaction pooler does not deliver notifications.
type Listener struct {
	Config  *pgx.ConnConfig
	Channel string

	// Log receives a warning when the connection is lost or cannot be opened, and a
	// message when it works again. Default: slog.Default().
	Log *slog.Logger

	// Silence is the time without a notification after which the connection is
	// pinged. Default: 5 s.
	Silence time.Duration

	// Timeout is how long Postgres may take to respond. Default: 1 s.
	Timeout time.Duration

	// Heard is called with the payload of each notification, in order.
	Heard func(message string)
	// Missed is called after each connect, because notifications may have been lost before.
	Missed func()
}

const (
	listenSilence  = 5 * time.Second
	listenTimeout  = time.Second
	listenPause    = 100 * time.Millisecond
	listenMaxPause = 2 * time.Second // the pause doubles up to this
)

// Run listens until ctx ends. It reconnects after every failure.
func (l *Listener) Run(ctx context.Context) {
	log := cmp.Or(l.Log, slog.Default())
	pause := listenPause
	var lost time.Time // zero while it listens
	found := func() {
		if !lost.IsZero() {
			log.InfoContext(ctx, "the connection for notifications works again", "channel", l.Channel, "after", cause.Text(time.Since(lost)))
			lost = time.Time{}
		}
	}
	for ctx.Err() == nil {
		began := time.Now()
		err := l.listen(ctx, found)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > listenMaxPause {
			pause = listenPause
		}
		if lost.IsZero() {
			lost = time.Now()
			log.WarnContext(ctx, "lost the connection for notifications: changes of the catalog show within a second, not at once",
				"channel", l.Channel, "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, listenMaxPause)
	}
}

// listen receives notifications until the connection fails. It calls found once it listens.
func (l *Listener) listen(ctx context.Context, found func()) error {
	began := time.Now()
	conn, err := l.dial(ctx)
	if err != nil {
		return cause.OfConnection(l.Config, began, err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(l.Timeout, listenTimeout))
		defer cancel()
		_ = conn.Close(ctx)
	}()
	found()
	l.Missed()
	for {
		message, err := l.next(ctx, conn)
		if err != nil {
			return err
		}
		l.Heard(message)
	}
}

func (l *Listener) dial(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(l.Timeout, listenTimeout))
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

// next waits for a notification, and pings a connection without one for a while.
func (l *Listener) next(ctx context.Context, conn *pgx.Conn) (string, error) {
	for {
		began := time.Now()
		quiet, cancel := context.WithTimeout(ctx, cmp.Or(l.Silence, listenSilence))
		n, err := conn.WaitForNotification(quiet)
		cancel()
		switch {
		case err == nil:
			return n.Payload, nil
		case ctx.Err() != nil || !pgconn.Timeout(err):
			return "", cause.OfConnection(l.Config, began, err)
		}
		probe, cancel := context.WithTimeout(ctx, cmp.Or(l.Timeout, listenTimeout))
		began = time.Now()
		err = conn.Ping(probe)
		cancel()
		if err != nil {
			return "", cause.OfConnection(l.Config, began, err)
		}
	}
}
