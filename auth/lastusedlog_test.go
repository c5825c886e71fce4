package auth

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/ephemeral"
)

func TestLastUsed_LogsAnOutageOnceAndItsEndOnce(t *testing.T) {
	t.Parallel()
	open := func(url string) *pgxpool.Pool {
		pool, err := pgxpool.New(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		return pool
	}
	log, now := &bytes.Buffer{}, noon
	used := NewLastUsed(LastUsedConfig{Log: slog.New(slog.NewTextHandler(log, nil)), Now: func() time.Time { return now }})
	used.Record(1)
	for _, pool := range []*pgxpool.Pool{open("postgres://127.0.0.1:1/none"), used.pool, open(ephemeral.Migrated(t)), nil} {
		if pool != nil {
			used.pool = pool
		}
		used.tryFlush(t.Context())
		now = now.Add(10 * time.Second)
	}
	text := log.String()
	if strings.Count(text, "\n") != 2 || strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "after=20s") {
		t.Errorf("the log reads %s: want one warning and one all-clear", text)
	}
}
