package catalog_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"commerce/cart/catalog"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/deploy/sample"
)

// In a database that is sharded by store, every statement reads one shard, which is the same
// one of each table, and gives the same answers.
func TestSharded_ReadsOneShardAndGivesTheSameCatalog(t *testing.T) {
	t.Parallel()
	pool, statements := ephemeral.ShardedPool(t, "../../deploy/postgres/citus.sql")
	assert.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if err := sample.WriteStores(t.Context(), tx, sample.Stores(), sample.Products(), sample.Coupons(noon)); err != nil {
			return err
		}
		return sample.WriteCouponUses(t.Context(), tx, sample.CouponUses())
	}))
	read := func(c *catalog.Postgres) (all []any) {
		t.Helper()
		add := func(what any, err error) {
			t.Helper()
			assert.NoError(t, err)
			all = append(all, what)
		}
		add(c.Products(t.Context(), 1, []int64{1, 2, 3, 4, 5, 6, 7}))
		for _, coupon := range sample.Coupons(noon)[1] {
			add(c.Coupon(t.Context(), 1, coupon.Code))
			add(c.Uses(t.Context(), 1, coupon.Code, "", 100))
			add(c.Uses(t.Context(), 1, coupon.Code, "1001", 100))
		}
		return all
	}
	assert.Equal(t, read(catalog.NewPostgres(pool)), read(catalog.NewPostgres(newDatabase(t).pool)), "(-plain +sharded)")
	shards := statements.Shards(t)
	for _, statement := range []string{"products", "coupon", "coupon_uses", "coupon_uses_customer"} {
		assert.That(t, len(shards[statement]) != 0, "statement %s reads no distributed table: %v", statement, shards)
	}
	for statement, numbers := range shards {
		assert.That(t, len(numbers) <= 1, "%s reads several shards: %v", statement, numbers)
	}
}
