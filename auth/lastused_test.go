package auth

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

func TestLastUsed_IsBoundedWhileItCannotBeWritten(t *testing.T) {
	t.Parallel()
	used := NewLastUsed(LastUsedConfig{Now: atNoon})
	for id := range int64(maxAPITokens) {
		used.Record(id)
	}
	later := noon.Add(time.Second)
	used.keep(map[int64]time.Time{0: later, maxAPITokens: later, maxAPITokens + 1: later})
	if n := len(used.uses); n != maxAPITokens {
		t.Errorf("%d uses are kept, want %d", n, maxAPITokens)
	}
	if got := used.uses[0]; !got.Equal(later) {
		t.Errorf("a known token was last used at %v, want %v", got, later)
	}
}

func TestLastUsed_NeedsNoLogger(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://127.0.0.1:1/none")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	used := NewLastUsed(LastUsedConfig{Pool: pool})
	used.Record(1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	used.Run(ended) // logs that the database is unreachable
	if len(used.uses) != 1 {
		t.Errorf("%d uses are kept, want 1", len(used.uses))
	}
}
