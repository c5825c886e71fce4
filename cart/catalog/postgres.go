package catalog

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/text/unicode/rangetable"

	"commerce/auth/cause"
	"commerce/auth/pgread"
	"commerce/cart"
	"commerce/cart/price"
)

// Postgres reads the catalog with a query per call. Put a Cache in front of it.
type Postgres struct{ db *pgxpool.Pool }

func NewPostgres(db *pgxpool.Pool) *Postgres { return &Postgres{db: db} }

// selectProducts returns plans and fields as the JSON of cart.Plan and cart.Field. It compares each
// store_id with $1, so that a database that is sharded by store reads each table on one shard.
const selectProducts = `/* products */
SELECT p.id, p.name, nullif(p.names, '{}'), p.slug, p.type, p.active, p.price, p.original_price, p.tax_ppm, p.tax_class,
	p.stock, p.min_quantity, p.max_quantity, p.step, p.max_per_cart, p.image_url, p.image_alt,
	(SELECT json_agg(json_build_object('id', n.id, 'duration', n.duration, 'price', n.price, 'retired', NOT n.active,
			'label', json_build_object('own', n.label, 'others', nullif(n.labels, '{}'))) ORDER BY n.id)
		FROM plans n WHERE (n.store_id, n.product_id) = ($1, p.id)),
	(SELECT json_agg(json_build_object('name', f.name, 'required', f.required, 'options',
			(SELECT json_agg(json_build_object('code', o.code, 'price', o.price,
					'name', json_build_object('own', o.name, 'others', nullif(o.names, '{}'))) ORDER BY o.position, o.code)
				FROM field_options o WHERE (o.store_id, o.product_id, o.field) = ($1, f.product_id, f.name))
		) ORDER BY f.position)
		FROM fields f WHERE (f.store_id, f.product_id) = ($1, p.id))
FROM products p
WHERE p.store_id = $1 AND p.id = ANY($2)`

// Products implements service.Catalog with one query.
func (c *Postgres) Products(ctx context.Context, store int64, ids []int64) (map[int64]*cart.Product, error) {
	began := time.Now()
	list, err := pgread.Rows(ctx, c.db, scanProduct, selectProducts, store, ids)
	if err != nil {
		return nil, fmt.Errorf("select products of store %d: %w", store, cause.OfPostgres(c.db, began, err))
	}
	products := make(map[int64]*cart.Product, len(list))
	for _, p := range list {
		products[p.ID] = p
	}
	return products, nil
}

func scanProduct(row pgx.CollectableRow) (*cart.Product, error) {
	var p cart.Product
	var image cart.Image
	err := row.Scan(&p.ID, &p.Name.Own, &p.Name.Others, &p.Slug, &p.Type, &p.Active, &p.Price, &p.OriginalPrice, &p.TaxRate, &p.TaxClass,
		&p.Stock, &p.MinQuantity, &p.MaxQuantity, &p.Step, &p.MaxPerCart,
		(*zeronull.Text)(&image.URL), &image.Alt, &p.Plans, &p.Fields)
	if err != nil {
		return nil, err
	}
	if image.URL != "" {
		p.Image = &image
	}
	return &p, nil
}

// selectCoupons compares the expression of the index coupons_by_key: the cart.CouponKey of a code, which the schema
// keeps in NFC, trimmed and without a to z. Without that index, as on an older schema, it reads all coupons of a store.
var selectCoupons = func() string {
	from, to := cart.CouponFolds()
	var spaces strings.Builder
	rangetable.Visit(unicode.White_Space, func(r rune) { spaces.WriteRune(r) })
	return fmt.Sprintf(`/* coupon */ `+couponColumns+`
WHERE c.store_id = $1 AND (CASE WHEN octet_length(code) = length(code) THEN code
	ELSE normalize(btrim(translate(code, '%s', '%s'), '%s')) END) COLLATE "C" = $2`, from, to, spaces.String())
}()

const couponColumns = `SELECT code, coalesce(name, ''), nullif(names, '{}'), automatic, combines, rate_ppm, amount, minimum, min_quantity,
	starts_at, expires_at, max_uses, max_uses_customer,
	(SELECT array_agg(p.product_id ORDER BY p.product_id)
		FROM coupon_products p WHERE (p.store_id, p.code) = ($1, c.code))
FROM coupons c`

// selectAutomatic reads the index automatic_coupons.
const selectAutomatic = `/* automatic_coupons */ ` + couponColumns + ` WHERE c.store_id = $1 AND c.automatic
	AND (c.expires_at IS NULL OR c.expires_at > now()) ORDER BY c.code COLLATE "C"`

func (c *Postgres) Automatic(ctx context.Context, store int64) ([]*price.Coupon, error) {
	began := time.Now()
	automatic, err := pgread.Rows(ctx, c.db, scanCoupon, selectAutomatic, store)
	if err != nil {
		return nil, fmt.Errorf("select automatic coupons of store %d: %w", store, cause.OfPostgres(c.db, began, err))
	}
	return automatic, nil
}

func (c *Postgres) CouponsByKey(ctx context.Context, store int64, key string) ([]*price.Coupon, error) {
	began := time.Now()
	alike, err := pgread.Rows(ctx, c.db, scanCoupon, selectCoupons, store, key)
	if err != nil {
		return nil, fmt.Errorf("select coupons of store %d: %w", store, cause.OfPostgres(c.db, began, err))
	}
	return alike, nil
}

func scanCoupon(row pgx.CollectableRow) (*price.Coupon, error) {
	coupon := price.Coupon{Kind: price.Fixed}
	err := row.Scan(&coupon.Code, &coupon.Name.Own, &coupon.Name.Others, &coupon.Automatic, &coupon.Combines,
		(*zeronull.Int8)(&coupon.Rate), (*zeronull.Int8)(&coupon.Amount), &coupon.Minimum, &coupon.MinQuantity,
		(*zeronull.Timestamptz)(&coupon.Starts), (*zeronull.Timestamptz)(&coupon.Expires),
		&coupon.MaxUses, &coupon.MaxUsesCustomer, &coupon.Products)
	if coupon.Rate != 0 {
		coupon.Kind = price.Percent
	}
	coupon.Starts, coupon.Expires = coupon.Starts.UTC(), coupon.Expires.UTC()
	return &coupon, err
}

// The counts read only the index coupon_uses_by_customer.
const (
	countUses         = `/* coupon_uses */ SELECT count(*) FROM (SELECT FROM coupon_uses WHERE store_id = $1 AND code = $2 LIMIT $3) u`
	countCustomerUses = `/* coupon_uses_customer */ SELECT count(*) FROM (SELECT FROM coupon_uses WHERE store_id = $1 AND code = $2 AND customer = $4 LIMIT $3) u`
)

func (c *Postgres) Uses(ctx context.Context, store int64, code, customer string, limit int64) (int64, error) {
	sql, args := countUses, []any{store, code, limit}
	if customer != "" {
		sql, args = countCustomerUses, append(args, customer)
	}
	began := time.Now()
	counts, err := pgread.Rows(ctx, c.db, pgx.RowTo[int64], sql, args...)
	if err != nil {
		return 0, fmt.Errorf("count uses of a coupon of store %d: %w", store, cause.OfPostgres(c.db, began, err))
	}
	return counts[0], nil
}
