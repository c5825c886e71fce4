package connect_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

// listening starts a Listener for the test; what it tells comes from the channel,
// "missed" for Missed.
func listening(t *testing.T, url string) (told <-chan string, admin *pgxpool.Pool) {
	t.Helper()
	admin = ephemeral.OpenPool(t, url, connect.PostgresConfig{Writable: true})
	events := make(chan string, 100)
	l := connect.Listener{
		Config: admin.Config().ConnConfig, Channel: "news", Log: slog.New(slog.DiscardHandler),
		Silence: 100 * time.Millisecond,
		Heard:   func(message string) { events <- message },
		Missed:  func() { events <- "missed" },
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(5 * time.Second):
			t.Error("the listener did not end with its context")
		}
	})
	return events, admin
}

func wantTold(t *testing.T, told <-chan string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		select {
		case got := <-told:
			if got != w {
				t.Fatalf("told %q, want %q", got, w)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("not told %q", w)
		}
	}
}

func tell(t *testing.T, admin *pgxpool.Pool, message string) {
	t.Helper()
	if _, err := admin.Exec(t.Context(), "SELECT pg_notify('news', $1)", message); err != nil {
		t.Fatal(err)
	}
}

const cutListeners = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE '% listener'`

func TestListener_HearsInOrderAndSaysWhenItMayHaveMissedSome(t *testing.T) {
	t.Parallel()
	told, admin := listening(t, ephemeral.Postgres(t))
	wantTold(t, told, "missed")
	tell(t, admin, "one")
	tell(t, admin, "two")
	wantTold(t, told, "one", "two")

	if _, err := admin.Exec(t.Context(), cutListeners); err != nil {
		t.Fatal(err)
	}
	wantTold(t, told, "missed")
	tell(t, admin, "three")
	wantTold(t, told, "three")
}

func TestListener_NeedsNoLogger(t *testing.T) {
	t.Parallel()
	nobody, err := pgx.ParseConfig("postgres://127.0.0.1:1/none")
	if err != nil {
		t.Fatal(err)
	}
	l := connect.Listener{Config: nobody, Channel: "news"}
	ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
	defer cancel()
	l.Run(ctx) // reports that nobody answers
}

func TestListener_ComesBackAfterPostgresWasGone(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartPostgres(t)
	told, admin := listening(t, server.URL)
	wantTold(t, told, "missed")
	server.Kill()
	server.Restart()
	wantTold(t, told, "missed")
	admin.Reset()
	tell(t, admin, "one")
	wantTold(t, told, "one")
}

func TestListener_TakesSilenceForNoConnection(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartPostgres(t)
	told, admin := listening(t, server.URL)
	wantTold(t, told, "missed")
	server.Freeze()
	time.Sleep(3 * time.Second) // a probe of the silence has failed by then
	server.Thaw()
	wantTold(t, told, "missed")
	admin.Reset()
	tell(t, admin, "one")
	wantTold(t, told, "one")
}
