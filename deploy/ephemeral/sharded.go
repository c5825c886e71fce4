//go:build unix

package ephemeral

import (
	"context"
	_ "embed"
	"fmt"
	"hash/crc32"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/connect"
	"commerce/deploy/migrations"
)

//go:embed likecitus.sql
var likeCitus string

// ShardedPool returns a pool, which can write, for a database with the schema of a sharded one,
// without foreign keys between distributed tables. Each table that script distributes, the path
// of deploy/postgres/citus.sql, has hash partitions by store. The pool's statements are collected.
func ShardedPool(tb testing.TB, script string) (*pgxpool.Pool, *Statements) {
	tb.Helper()
	text, err := os.ReadFile(script)
	must(tb, "read script", err)
	distribute := likeCitus + string(text)
	name := fmt.Sprintf("sharded_%s_%x", migrations.Digest(), crc32.ChecksumIEEE([]byte(distribute)))
	url := PostgresFrom(tb, name, func(ctx context.Context, url string) error {
		err := migrate(url, func(m *migrations.Migrator) error { _, err := m.UpSharded(ctx); return err })
		if err != nil {
			return err
		}
		return query(url, func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.PgConn().Exec(ctx, distribute).ReadAll()
			return err
		})
	})
	s := &Statements{seen: map[string][]any{}}
	s.pool = OpenPool(tb, url, connect.PostgresConfig{Writable: true, MaxConns: 4, StatementTimeout: -1, Tracer: s})
	return s.pool, s
}

// Statements collects the statements of a pool whose text begins with a comment, as all of the
// service's do, to check what they need of a sharded database.
type Statements struct {
	pool *pgxpool.Pool
	mu   sync.Mutex
	seen map[string][]any // by text: the arguments of the first call
}

// TraceQueryStart implements pgx.QueryTracer.
func (s *Statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if !strings.HasPrefix(q.SQL, "/* ") {
		return ctx
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.seen[q.SQL]; !known {
		s.seen[q.SQL] = q.Args
	}
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (*Statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// shard finds the numbers of shards in a plan.
var shard = regexp.MustCompile(`"Relation Name": "\w+_shard_(\d+)"`)

// Shards explains each statement. It returns the numbers of the shards that each one reads, by the
// name in its comment. Citus runs a statement on one server only if this is the same shard of all
// tables.
func (s *Statements) Shards(tb testing.TB) map[string][]string {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	read := map[string][]string{}
	for sql, args := range s.seen {
		name, _, _ := strings.Cut(strings.TrimPrefix(sql, "/* "), " */")
		var plan string
		must(tb, "explain "+name, s.pool.QueryRow(tb.Context(), "EXPLAIN (FORMAT JSON) "+sql, args...).Scan(&plan))
		for _, found := range shard.FindAllStringSubmatch(plan, -1) {
			if !slices.Contains(read[name], found[1]) {
				read[name] = append(read[name], found[1])
			}
		}
	}
	return read
}
