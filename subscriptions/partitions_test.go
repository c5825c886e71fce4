package subscriptions_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"commerce/auth/locale"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
	"commerce/deploy/sample"
	"commerce/subscriptions"
	"commerce/subscriptions/postgres"
	"commerce/subscriptions/suite"
)

// Everything that the schema has for subscriptions, and the rows with their stamps, survive the
// partitioning.
func TestPartitions_KeepRowsIndexesKeysAndTriggers(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	pool := ephemeral.OpenPool(t, url, connect.PostgresConfig{Writable: true, MaxConns: 2, StatementTimeout: -1})
	suite.Fill(t, pool, suite.SampleData())
	described := func() []string {
		t.Helper()
		rows := assert.Must(pool.Query(t.Context(), `
			SELECT conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'subscriptions'::regclass AND conparentid = 0
			UNION ALL SELECT tgname || ' ' || tgtype || ' ' || tgfoid::regproc || ' ' || tgenabled::text FROM pg_trigger
				WHERE tgrelid = 'subscriptions'::regclass AND NOT tgisinternal
			UNION ALL SELECT replace(pg_get_indexdef(indexrelid), ' ON ONLY ', ' ON ') FROM pg_index WHERE indrelid = 'subscriptions'::regclass
			UNION ALL SELECT attname || ' ' || attidentity::text || attnotnull FROM pg_attribute WHERE attrelid = 'subscriptions'::regclass AND attnum > 0
			UNION ALL SELECT s::text FROM subscriptions s
			UNION ALL SELECT 'next id ' || pg_sequence_last_value(pg_get_serial_sequence('subscriptions', 'id')::regclass)
			UNION ALL SELECT DISTINCT 'options ' || reloptions::text FROM pg_class WHERE relkind = 'r' AND relname ~ '^subscriptions(_\d+)?$'
			ORDER BY 1`))(t)
		return assert.Must(pgx.CollectRows(rows, pgx.RowTo[string]))(t)
	}
	before := described()
	assert.NoError(t, suite.Partition(t.Context(), url, suite.PartitionsScript(t)))
	assert.Equal(t, described(), before, "(-before +after)")
	tag := assert.Must(pool.Exec(t.Context(), "SELECT FROM pg_inherits WHERE inhparent = 'subscriptions'::regclass"))(t)
	assert.Equal(t, tag.RowsAffected(), 64, "partitions")
}

// BenchmarkPartitions compares pages of 15 rows of 200,000 in 64 partitions with the same rows
// in one table. Both take turns, so that other load affects both alike.
func BenchmarkPartitions(b *testing.B) {
	const rows, stores, turn = 200_000, 199, 200 // of the stores with about 900 rows
	sources := make([]suite.Postgres, 2)
	for i, url := range []string{ephemeral.Migrated(b), suite.Partitioned(b)} {
		pool := suite.PlanningOnce(b, url)
		assert.NoError(b, pgx.BeginFunc(b.Context(), pool, func(tx pgx.Tx) error {
			return sample.WriteStores(b.Context(), tx, sample.Stores(), sample.Products(), nil)
		}))
		assert.NoError(b, sample.NewGenerator(rows, suite.Now).Write(b.Context(), pool, func(int) {}))
		sources[i] = suite.NewPostgres(postgres.Config{Pool: pool, Budget: time.Minute, Wait: time.Minute})
	}
	for name, q := range map[string]subscriptions.Query{
		"list":      {Limit: 16},
		"filtered":  {Limit: 16, Filter: subscriptions.Filter{Statuses: subscriptions.SetOf(subscriptions.Active), CallingCode: "966"}},
		"by number": {Limit: 16, Skip: 600},
	} {
		b.Run(name, func(b *testing.B) {
			q.Language = locale.En
			var took [2]time.Duration
			pages := 0
			for b.Loop() {
				for i, source := range sources {
					began := time.Now()
					for n := range turn {
						page, err := source.List(b.Context(), int64(1001+n%stores), q)
						assert.Require(b, err == nil && len(page) == q.Limit, "%v %v", len(page), err)
					}
					took[i] += time.Since(began)
				}
				pages += turn
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(took[0].Microseconds())/float64(pages), "µs/page-plain")
			b.ReportMetric(float64(took[1].Microseconds())/float64(pages), "µs/page-partitioned")
			b.ReportMetric(float64(took[1])/float64(took[0]), "ratio")
		})
	}
}
