package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"commerce/auth/cause"
	"commerce/cart"
)

const selectCoupon = `/* coupon */
SELECT rate_ppm, amount, minimum, starts_at, expires_at, max_uses, max_uses_customer,
	(SELECT array_agg(p.product_id ORDER BY p.product_id)
		FROM coupon_products p WHERE (p.store_id, p.code) = ($1, c.code))
FROM coupons c
WHERE c.store_id = $1 AND c.code = $2`

// Coupon implements service.Coupons.
func (c *Postgres) Coupon(ctx context.Context, store int64, code string) (*cart.Coupon, error) {
	coupon := cart.Coupon{Code: code, Kind: cart.Fixed}
	began := time.Now()
	err := c.db.QueryRow(ctx, selectCoupon, store, code).Scan(
		(*zeronull.Int8)(&coupon.Rate), (*zeronull.Int8)(&coupon.Amount), &coupon.Minimum,
		(*zeronull.Timestamptz)(&coupon.Starts), (*zeronull.Timestamptz)(&coupon.Expires),
		&coupon.MaxUses, &coupon.MaxUsesCustomer, &coupon.Products)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("select coupon of store %d: %w", store, cause.OfPostgres(c.db, began, err))
	}
	if coupon.Rate != 0 {
		coupon.Kind = cart.Percent
	}
	coupon.Starts, coupon.Expires = coupon.Starts.UTC(), coupon.Expires.UTC()
	return &coupon, nil
}

// The counts read only the index coupon_uses_by_customer.
const (
	countUses         = `/* coupon_uses */ SELECT count(*) FROM (SELECT FROM coupon_uses WHERE store_id = $1 AND code = $2 LIMIT $3) u`
	countCustomerUses = `/* coupon_uses_customer */ SELECT count(*) FROM (SELECT FROM coupon_uses WHERE store_id = $1 AND code = $2 AND customer = $4 LIMIT $3) u`
)

// Uses implements service.Coupons.
func (c *Postgres) Uses(ctx context.Context, store int64, code, customer string, limit int64) (n int64, err error) {
	sql, args := countUses, []any{store, code, limit}
	if customer != "" {
		sql, args = countCustomerUses, append(args, customer)
	}
	began := time.Now()
	if err := c.db.QueryRow(ctx, sql, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("count uses of a coupon of store %d: %w", store, cause.OfPostgres(c.db, began, err))
	}
	return n, nil
}
