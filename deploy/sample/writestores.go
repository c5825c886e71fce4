package sample

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/money"
)

// WriteStores inserts stores with their products and coupons, or updates the rows
// with the same keys. It leaves other rows alone, and does not write rows that are
// already as given, so that they cause no notification. A store in a currency that
// the service does not know is an error, and nothing is written.
func WriteStores(ctx context.Context, tx pgx.Tx, stores []*store.Store, products map[int64][]*cart.Product, coupons map[int64][]*cart.Coupon) error {
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
	batch.Queue(upsert("stores", "id", "name, currency, language, tax_ppm, prices_include_tax"),
		s.ID, s.Name, s.Currency, s.Locale, s.TaxRate, s.PricesIncludeTax)
	for _, key := range s.PublicKeys {
		batch.Queue(upsert("publishable_keys", "key", "store_id"), key, s.ID)
	}
	for i, m := range s.PaymentMethods {
		batch.Queue(upsert("payment_methods", "store_id, id", "name_en, name_ar, icon, enabled, position"),
			s.ID, m.ID, m.Name[locale.En], m.Name[locale.Ar], m.Icon, m.Enabled, i)
	}
}

func queueProduct(batch *pgx.Batch, store int64, p *cart.Product) {
	var url *string
	alt := ""
	if p.Image != nil {
		url, alt = &p.Image.URL, p.Image.Alt
	}
	batch.Queue(upsert("products", "store_id, id",
		"name, names, slug, type, active, price, original_price, tax_ppm, stock, min_quantity, max_quantity, step, max_per_cart, image_url, image_alt"),
		store, p.ID, p.Name.Own, translations(p.Name), p.Slug, p.Type, p.Active, p.Price, p.OriginalPrice, p.TaxRate,
		p.Stock, p.MinQuantity, p.MaxQuantity, max(p.Step, 1), p.MaxPerCart, url, alt)
	for _, n := range p.Plans {
		batch.Queue(upsert("plans", "store_id, id", "product_id, duration, price, label, labels"),
			store, n.ID, p.ID, n.Duration, n.Price, label(n.Label), translations(n.Label))
	}
	for i, f := range p.Fields {
		batch.Queue(upsert("fields", "store_id, product_id, name", "required, position"),
			store, p.ID, f.Name, f.Required, i)
		for j, o := range f.Options {
			batch.Queue(upsert("field_options", "store_id, product_id, field, code", "name, names, price, position"),
				store, p.ID, f.Name, o.Code, o.Name.Own, translations(o.Name), o.Price, j)
		}
	}
}

// label returns the text of a plan's label in the store's language, nil for none.
func label(n locale.Name) *string {
	if n.Own == "" {
		return nil
	}
	return &n.Own
}

// translations returns an object also for none, because the columns are not nullable.
func translations(n locale.Name) map[locale.Locale]string {
	if n.Others == nil {
		return map[locale.Locale]string{}
	}
	return n.Others
}
