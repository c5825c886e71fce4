package sample

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/money"
	"commerce/cart/price"
)

// WriteStores inserts stores with their products and coupons, or updates the rows
// with the same keys. It leaves other rows alone, and does not write rows that are
// already as given, so that they cause no notification. A store in a currency that
// the service does not know is an error, and nothing is written.
func WriteStores(ctx context.Context, tx pgx.Tx, stores []*store.Store, products map[int64][]*cart.Product, coupons map[int64][]*price.Coupon) error {
	var batch pgx.Batch
	for _, s := range stores {
		if _, known := money.Digits(s.Currency); !known {
			return fmt.Errorf("write store %d: unknown currency %q", s.ID, s.Currency)
		}
		queueStore(&batch, s)
		for _, p := range products[s.ID] {
			queueProduct(&batch, s.ID, p)
		}
		for _, c := range coupons[s.ID] {
			queueCoupon(&batch, s.ID, c)
		}
	}
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return fmt.Errorf("write %d stores: %w", len(stores), err)
	}
	return nil
}

func queueStore(batch *pgx.Batch, s *store.Store) {
	batch.Queue(upsert("stores", "id", "name, host, cart_url, currency, language, tax_ppm, prices_include_tax, country"),
		s.ID, s.Name, orNull(s.Host), orNull(s.CartURL), s.Currency, s.Locale, s.TaxRate, s.PricesIncludeTax, orNull(s.Country))
	for _, key := range s.PublicKeys {
		batch.Queue(upsert("publishable_keys", "key", "store_id"), key, s.ID)
	}
	for country, rates := range s.TaxRates {
		for class, rate := range rates {
			batch.Queue(upsert("tax_rates", "store_id, country, tax_class", "tax_ppm"), s.ID, country, class, rate)
		}
	}
	for i, m := range s.PaymentMethods {
		batch.Queue(upsert("payment_methods", "store_id, id", "name_en, name_ar, icon, enabled, position"),
			s.ID, m.ID, m.Name[locale.En], m.Name[locale.Ar], m.Icon, m.Enabled, i)
	}
}

func queueProduct(batch *pgx.Batch, storeID int64, p *cart.Product) {
	var url *string
	alt := ""
	if p.Image != nil {
		url, alt = &p.Image.URL, p.Image.Alt
	}
	batch.Queue(upsert("products", "store_id, id",
		"name, names, slug, type, active, price, original_price, tax_ppm, tax_class, stock, min_quantity, max_quantity, step, max_per_cart, image_url, image_alt"),
		storeID, p.ID, p.Name.Own, translations(p.Name), p.Slug, p.Type, p.Active, p.Price, p.OriginalPrice, p.TaxRate, cmp.Or(p.TaxClass, store.StandardTax),
		p.Stock, p.MinQuantity, p.MaxQuantity, max(p.Step, 1), p.MaxPerCart, url, alt)
	for _, n := range p.Plans {
		batch.Queue(upsert("plans", "store_id, id", "product_id, duration, price, label, labels, active"),
			storeID, n.ID, p.ID, n.Duration, n.Price, orNull(n.Label.Own), translations(n.Label), !n.Retired)
	}
	for i, f := range p.Fields {
		batch.Queue(upsert("fields", "store_id, product_id, name", "required, position"),
			storeID, p.ID, f.Name, f.Required, i)
		for j, o := range f.Options {
			batch.Queue(upsert("field_options", "store_id, product_id, field, code", "name, names, price, position"),
				storeID, p.ID, f.Name, o.Code, o.Name.Own, translations(o.Name), o.Price, j)
		}
	}
}

// translations returns an object also for none, because the columns are not nullable.
func translations(n locale.Name) map[locale.Locale]string {
	if n.Others == nil {
		return map[locale.Locale]string{}
	}
	return n.Others
}

// queueCoupon writes a coupon, and makes its list of products as given.
func queueCoupon(batch *pgx.Batch, store int64, c *price.Coupon) {
	var rate, amount any
	if c.Kind == price.Percent {
		rate = c.Rate
	} else {
		amount = c.Amount
	}
	batch.Queue(upsert("coupons", "store_id, code", "name, names, automatic, combines, rate_ppm, amount, minimum, min_quantity, starts_at, expires_at, max_uses, max_uses_customer"),
		store, c.Code, orNull(c.Name.Own), translations(c.Name), c.Automatic, c.Combines, rate, amount, c.Minimum, c.MinQuantity, orNull(c.Starts), orNull(c.Expires), c.MaxUses, c.MaxUsesCustomer)
	batch.Queue("DELETE FROM coupon_products WHERE (store_id, code) = ($1, $2) AND product_id <> ALL (coalesce($3::bigint[], '{}'))",
		store, c.Code, c.Products)
	batch.Queue("INSERT INTO coupon_products (store_id, code, product_id) SELECT $1, $2, unnest($3::bigint[]) ON CONFLICT DO NOTHING",
		store, c.Code, c.Products)
}

// WriteCouponUses inserts or updates the orders that used coupons, and no others.
func WriteCouponUses(ctx context.Context, tx pgx.Tx, uses []CouponUse) error {
	var batch pgx.Batch
	for _, u := range uses {
		batch.Queue(upsert("coupon_uses", "store_id, order_id, code", "customer"), u.Store, u.Order, u.Code, orNull(u.Customer))
	}
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return fmt.Errorf("write %d uses of coupons: %w", len(uses), err)
	}
	return nil
}

// upsert returns a statement that inserts a row, or updates the other columns of the row
// with the same key. It does not update a row that already has these values. Its
// arguments are the columns of key, then the others.
func upsert(table, key, others string) string {
	columns, changed := strings.Split(key+", "+others, ", "), strings.Split(others, ", ")
	places := make([]string, len(columns))
	for i := range columns {
		places[i] = fmt.Sprintf("$%d", i+1)
	}
	held, excluded := strings.Join(changed, ", held."), strings.Join(changed, ", excluded.")
	return fmt.Sprintf(`INSERT INTO %s AS held (%s) VALUES (%s) ON CONFLICT (%s) DO UPDATE SET (%s) = ROW (excluded.%s)
		WHERE (held.%s) IS DISTINCT FROM (excluded.%s)`,
		table, strings.Join(columns, ", "), strings.Join(places, ", "), key, others, excluded, held, excluded)
}

func orNull[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}
