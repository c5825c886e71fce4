package catalog

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/cause"
	"commerce/auth/locale"
	"commerce/cart"
	"commerce/cart/money"
	"commerce/cart/period"
)

// Postgres reads the catalog from the database, with a query per call. Put a Cache in
// front of it.
type Postgres struct{ db *pgxpool.Pool }

// NewPostgres returns a catalog that reads from db.
func NewPostgres(db *pgxpool.Pool) *Postgres { return &Postgres{db: db} }

// selectProducts compares each store_id with $1, so that a database that is sharded by store
// reads each table on one shard.
const selectProducts = `/* products */
SELECT p.id, p.name, nullif(p.names, '{}'), p.slug, p.type, p.active, p.price, p.original_price, p.tax_ppm,
	p.stock, p.min_quantity, p.max_quantity, p.step, p.max_per_cart, p.image_url, p.image_alt,
	(SELECT json_agg(json_build_object('id', n.id, 'duration', n.duration, 'price', n.price,
			'label', n.label, 'labels', nullif(n.labels, '{}')) ORDER BY n.id)
		FROM plans n WHERE (n.store_id, n.product_id) = ($1, p.id)),
	(SELECT json_agg(json_build_object('name', f.name, 'required', f.required, 'options',
			(SELECT json_agg(json_build_object('code', o.code, 'name', o.name, 'names', nullif(o.names, '{}'), 'price', o.price)
					ORDER BY o.position, o.code)
				FROM field_options o WHERE (o.store_id, o.product_id, o.field) = ($1, f.product_id, f.name))
		) ORDER BY f.position)
		FROM fields f WHERE (f.store_id, f.product_id) = ($1, p.id))
FROM products p
WHERE p.store_id = $1 AND p.id = ANY($2)`

// The JSON of plans and fields that selectProducts returns.
type (
	planRow struct {
		ID       int64
		Duration period.Duration
		Price    money.Amount
		Label    string
		Labels   map[locale.Locale]string
	}
	fieldRow struct {
		Name     string
		Required bool
		Options  []optionRow
	}
	optionRow struct {
		Code, Name string
		Names      map[locale.Locale]string
		Price      money.Amount
	}
)

// Products implements service.Catalog with one query.
func (c *Postgres) Products(ctx context.Context, store int64, ids []int64) (map[int64]*cart.Product, error) {
	began := time.Now()
	rows, err := c.db.Query(ctx, selectProducts, store, ids)
	if err != nil {
		return nil, fmt.Errorf("select products of store %d: %w", store, cause.OfPostgres(c.db, began, err))
	}
	list, err := pgx.CollectRows(rows, scanProduct)
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
	var (
		p      cart.Product
		image  cart.Image
		url    *string
		plans  []planRow
		fields []fieldRow
	)
	err := row.Scan(&p.ID, &p.Name.Own, &p.Name.Others, &p.Slug, &p.Type, &p.Active, &p.Price, &p.OriginalPrice, &p.TaxRate,
		&p.Stock, &p.MinQuantity, &p.MaxQuantity, &p.Step, &p.MaxPerCart, &url, &image.Alt, &plans, &fields)
	if err != nil {
		return nil, err
	}
	if url != nil {
		image.URL = *url
		p.Image = &image
	}
	for _, plan := range plans {
		p.Plans = append(p.Plans, cart.Plan{
			ID: plan.ID, Duration: plan.Duration, Price: plan.Price, Label: locale.Name{Own: plan.Label, Others: plan.Labels},
		})
	}
	for _, f := range fields {
		field := cart.Field{Name: f.Name, Required: f.Required}
		for _, o := range f.Options {
			field.Options = append(field.Options, cart.Option{Code: o.Code, Name: locale.Name{Own: o.Name, Others: o.Names}, Price: o.Price})
		}
		p.Fields = append(p.Fields, field)
	}
	return &p, nil
}
