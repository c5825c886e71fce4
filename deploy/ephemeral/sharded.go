//go:build unix

package ephemeral

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
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

// likeCitus are the functions of Citus that deploy/postgres/citus.sql calls. Instead of shards on
// other servers, a distributed table gets hash partitions. A plan then shows whether a
// statement needs one shard or all.
const likeCitus = `
	CREATE FUNCTION create_reference_table(name text) RETURNS void LANGUAGE plpgsql AS 'BEGIN END';
	CREATE FUNCTION create_distributed_table(name text, key text, colocate_with text, shard_count int DEFAULT 64) RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		EXECUTE format('ALTER TABLE %I RENAME TO undistributed', name);
		EXECUTE format('CREATE TABLE %I (LIKE undistributed INCLUDING ALL) PARTITION BY HASH (%I)', name, key);
		FOR i IN 0..7 LOOP
			EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS 8, REMAINDER %s)', name || '_shard_' || i, name, i);
		END LOOP;
		DROP TABLE undistributed CASCADE;
	END $$;`

// ShardedPool returns a pool, which can write, for a database with the schema of a sharded one,
// without foreign keys between distributed tables. Each table that script distributes, the path
// of deploy/postgres/citus.sql, has hash partitions by store. The pool's statements are collected.
func ShardedPool(tb testing.TB, script string) (*pgxpool.Pool, *Statements) {
	tb.Helper()
	text, err := os.ReadFile(script)
	must(tb, "read script", err)
	sum := fnv.New64a()
	sum.Write([]byte(likeCitus))
	sum.Write(text)
	name := fmt.Sprintf("sharded_%s_%x", migrations.Digest(), sum.Sum64())
	url := PostgresFrom(tb, name, func(ctx context.Context, url string) error {
		up := func(m *migrations.Migrator) error { _, err := m.UpSharded(ctx); return err }
		if err := withMigrator(url, up); err != nil {
			return err
		}
		return query(ctx, url, func(conn *pgx.Conn) error {
			_, err := conn.PgConn().Exec(ctx, likeCitus+string(text)).ReadAll()
			return err
		})
	})
	s := &Statements{pool: OpenPool(tb, url, connect.PostgresConfig{StatementTimeout: -1}), seen: map[string][]any{}}
	return OpenPool(tb, url, connect.PostgresConfig{Writable: true, MaxConns: 4, StatementTimeout: -1, Tracer: s}), s
}

// Statements collects the statements of a pool, to check what they need of a sharded database.
type Statements struct {
	pool *pgxpool.Pool
	mu   sync.Mutex
	seen map[string][]any // by text: the arguments of the first call
}

// TraceQueryStart implements pgx.QueryTracer.
func (s *Statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.seen[q.SQL]; !known {
		s.seen[q.SQL] = q.Args
	}
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (*Statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// partition finds the partitions in a plan: their tables and numbers.
var partition = regexp.MustCompile(`"Relation Name": "(\w+)_shard_(\d+)"`)

// Shards explains each statement whose text begins with a comment, as all of the service's do.
// It returns the numbers of the shards that each one reads, by the name in its comment and by
// table. Citus runs a statement on one server only if this is the same shard of all tables.
func (s *Statements) Shards(tb testing.TB) map[string]map[string][]string {
	tb.Helper()
	s.mu.Lock()
	seen := maps.Clone(s.seen)
	s.mu.Unlock()
	read := map[string]map[string][]string{}
	for sql, args := range seen {
		comment, isOurs := strings.CutPrefix(sql, "/* ")
		if !isOurs {
			continue
		}
		name, _, _ := strings.Cut(comment, " */")
		if read[name] == nil {
			read[name] = map[string][]string{}
		}
		var plan string
		must(tb, "explain "+name, s.pool.QueryRow(tb.Context(), "EXPLAIN (FORMAT JSON) "+sql, args...).Scan(&plan))
		for _, found := range partition.FindAllStringSubmatch(plan, -1) {
			if table, shard := found[1], found[2]; !slices.Contains(read[name][table], shard) {
				read[name][table] = append(read[name][table], shard)
			}
		}
	}
	return read
}
