package auth

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/cause"
)

type LastUsedConfig struct {
	Pool  *pgxpool.Pool    // writable. One connection is enough
	Every time.Duration    // between writes; default 10 s
	Now   func() time.Time // default time.Now
	Log   *slog.Logger     // of when writes begin to fail, and when they work again; default slog.Default
}

// LastUsed records when API tokens were used. It writes in batches, so that a token in
// constant use causes one update per interval. Uses that are not written when the process
// dies are lost.
type LastUsed struct {
	cfg  LastUsedConfig
	lost time.Time // when writes began to fail; zero while they work. Only Run uses it

	mu   sync.Mutex
	uses map[int64]time.Time // at most maxAPITokens
}

// NewLastUsed returns a LastUsed for a config. It writes nothing until Run.
func NewLastUsed(c LastUsedConfig) *LastUsed {
	c.Every, c.Log = cmp.Or(c.Every, 10*time.Second), cmp.Or(c.Log, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	return &LastUsed{cfg: c, uses: map[int64]time.Time{}}
}

// Record records a use of the token now. It never waits for Postgres.
func (l *LastUsed) Record(id int64) {
	l.keep(map[int64]time.Time{id: l.cfg.Now()})
}

func (l *LastUsed) keep(uses map[int64]time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, at := range uses {
		latest, known := l.uses[id]
		if at.After(latest) && (known || len(l.uses) < maxAPITokens) {
			l.uses[id] = at
		}
	}
}

// Run writes recorded uses at each interval, and once more when ctx ends. If a write
// fails, it keeps the uses for the next one, as far as there is room.
func (l *LastUsed) Run(ctx context.Context) {
	tick := time.NewTicker(l.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.tryFlush(ctx)
		case <-ctx.Done():
			l.tryFlush(ctx)
			return
		}
	}
}

func (l *LastUsed) tryFlush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), apiTokenTimeout) // the end interrupts no write
	defer cancel()
	began := l.cfg.Now()
	switch err := l.Flush(ctx); {
	case err != nil && l.lost.IsZero():
		l.lost = began
		l.cfg.Log.WarnContext(ctx, "cannot write the last use of API tokens; it is written later", "err", err)
	case err == nil && !l.lost.IsZero():
		l.cfg.Log.InfoContext(ctx, "the last use of API tokens can be written again", "after", cause.Text(l.cfg.Now().Sub(l.lost)))
		l.lost = time.Time{}
	}
}

// Flush writes the uses since the last Flush.
func (l *LastUsed) Flush(ctx context.Context) error {
	l.mu.Lock()
	uses := l.uses
	l.uses = map[int64]time.Time{}
	l.mu.Unlock()
	if len(uses) == 0 {
		return nil
	}
	ids, times := make([]int64, 0, len(uses)), make([]time.Time, 0, len(uses))
	for id, at := range uses {
		ids, times = append(ids, id), append(times, at)
	}
	began := time.Now()
	_, err := l.cfg.Pool.Exec(ctx, `/* last_used */
		UPDATE api_tokens SET last_used_at = used.at
		FROM unnest($1::bigint[], $2::timestamptz[]) AS used (id, at)
		WHERE api_tokens.id = used.id AND (last_used_at IS NULL OR last_used_at < used.at)`, ids, times)
	if err != nil {
		l.keep(uses)
		return fmt.Errorf("write last use of %d API tokens: %w", len(uses), cause.OfPostgres(l.cfg.Pool, began, err))
	}
	return nil
}
