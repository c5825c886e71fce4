package auth

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

func TestLastUsed_IsBoundedWhileItCannotBeWritten(t *testing.T) {
	t.Parallel()
	used := NewLastUsed(LastUsedConfig{Now: atNoon})
	for id := range int64(maxAPITokens) {
		used.Record(id)
	}
	later := noon.Add(time.Second)
	used.keep(map[int64]time.Time{0: later, maxAPITokens: later, maxAPITokens + 1: later})
	assert.Equal(t, len(used.uses), maxAPITokens, "uses are kept")
	got := used.uses[0]
	assert.That(t, got.Equal(later), "a known token was last used at %v, want %v", got, later)
}

func TestLastUsed_NeedsNoLogger(t *testing.T) {
	t.Parallel()
	pool := assert.Must(pgxpool.New(t.Context(), "postgres://127.0.0.1:1/none"))(t)
	t.Cleanup(pool.Close)
	used := NewLastUsed(LastUsedConfig{Pool: pool})
	used.Record(1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	used.Run(ended) // logs that the database is unreachable
	assert.Equal(t, len(used.uses), 1, "uses are kept")
}

func TestLastUsed_LogsAnOutageOnceAndItsEndOnce(t *testing.T) {
	t.Parallel()
	open := func(url string) *pgxpool.Pool {
		pool := assert.Must(pgxpool.New(t.Context(), url))(t)
		t.Cleanup(pool.Close)
		return pool
	}
	log, now := &bytes.Buffer{}, noon
	used := NewLastUsed(LastUsedConfig{Log: slog.New(slog.NewTextHandler(log, nil)), Now: func() time.Time { return now }})
	used.Record(1)
	for _, pool := range []*pgxpool.Pool{open("postgres://127.0.0.1:1/none"), used.cfg.Pool, open(ephemeral.Migrated(t)), nil} {
		if pool != nil {
			used.cfg.Pool = pool
		}
		used.tryFlush(t.Context())
		now = now.Add(10 * time.Second)
	}
	text := log.String()
	if strings.Count(text, "\n") != 2 || strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "after=20s") {
		t.Errorf("the log reads %s: want one warning and one all-clear", text)
	}
}
