package sample

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"commerce/cart"
)

// queueCoupon queues the statements that write a coupon and make its list of products as
// given.
func queueCoupon(batch *pgx.Batch, store int64, c *cart.Coupon) {
	var rate, amount *int64
	if c.Kind == cart.Percent {
		rate = &c.Rate
	} else {
		amount = (*int64)(&c.Amount)
	}
	batch.Queue(upsert("coupons", "store_id, code", "rate_ppm, amount, minimum, starts_at, expires_at, max_uses, max_uses_customer"),
		store, c.Code, rate, amount, c.Minimum, timeOrNull(c.Starts), timeOrNull(c.Expires), c.MaxUses, c.MaxUsesCustomer)
	batch.Queue("DELETE FROM coupon_products WHERE (store_id, code) = ($1, $2) AND product_id <> ALL (coalesce($3::bigint[], '{}'))",
		store, c.Code, c.Products)
	batch.Queue("INSERT INTO coupon_products (store_id, code, product_id) SELECT $1, $2, unnest($3::bigint[]) ON CONFLICT DO NOTHING",
		store, c.Code, c.Products)
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// WriteCouponUses inserts the orders that used coupons, or updates those that exist. It
// leaves other rows alone.
func WriteCouponUses(ctx context.Context, tx pgx.Tx, uses []CouponUse) error {
	var batch pgx.Batch
	for _, u := range uses {
		var customer *string
		if u.Customer != "" {
			customer = &u.Customer
		}
		batch.Queue(upsert("coupon_uses", "store_id, order_id, code", "customer"), u.Store, u.Order, u.Code, customer)
	}
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return fmt.Errorf("write %d uses of coupons: %w", len(uses), err)
	}
	return nil
}
