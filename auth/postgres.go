package auth

import (
	"context"
	"fmt"
	"log/slog"
	"time"
	"unsafe"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/cause"
	"commerce/auth/lastknown"
	"commerce/auth/pgread"
	"commerce/auth/store"
)

type PostgresStoresConfig struct {
	DB *pgxpool.Pool

	// KnownCurrency reports whether the decimals of a currency are known. Required: a
	// store in any other currency is an error.
	KnownCurrency func(code string) bool

	// See lastknown.Config.
	Patience time.Duration
	Shown    func(delay time.Duration)
	Log      *slog.Logger
	Now      func() time.Time
}

// PostgresStores is the directory of the stores in the database. It caches them: a
// change is visible within a second, or immediately after Invalidate. A cached store
// remains available while the database is unreachable.
type PostgresStores struct {
	directory
	db    *pgxpool.Pool
	cache *lastknown.Cache[storeKey, *store.Store]
}

var _ StoreDirectory = (*PostgresStores)(nil)

// storeMemory is the maximum size of the cache in bytes, about 50,000 stores.
const storeMemory = 32 << 20

func NewPostgresStores(c PostgresStoresConfig) *PostgresStores {
	s := &PostgresStores{db: c.DB}
	s.directory = directory{s.find, c.KnownCurrency}
	s.cache = lastknown.New(lastknown.Config[storeKey, *store.Store]{
		Name: "stores", Server: cause.Postgres(c.DB.Config().ConnConfig), Source: lastknown.Each(s.load), Log: c.Log, Now: c.Now,
		MaxWeight: storeMemory, Weigh: storeWeight, MaxLoads: 4, Patience: c.Patience, Shown: c.Shown,
	})
	return s
}

// Invalidate takes a message from the database's channel (see deploy/migrations).
// Stores change so rarely that a change of one reloads all.
func (s *PostgresStores) Invalidate(message string) {
	if message == "store" {
		s.cache.ExpireAll()
	}
}

// InvalidateAll reloads every store. Call it when messages may have been lost.
func (s *PostgresStores) InvalidateAll() { s.cache.ExpireAll() }

func (s *PostgresStores) Stats() lastknown.Stats { return s.cache.Stats() }

func (s *PostgresStores) find(ctx context.Context, key storeKey) (found *store.Store, err error) {
	err = s.cache.Get(ctx, []storeKey{key}, func(_ storeKey, cached *store.Store) { found = cached })
	return found, err
}

// selectStore returns payment methods as the JSON of store.PaymentMethod.
const selectStore = `/* store */
SELECT s.id, s.name, coalesce(s.host, ''), coalesce(s.cart_url, ''), s.currency, s.language, s.tax_ppm, s.prices_include_tax, coalesce(s.country, ''),
	ARRAY(SELECT k.key FROM publishable_keys k WHERE k.store_id = s.id ORDER BY k.key),
	(SELECT json_agg(json_build_object('id', m.id, 'icon', m.icon, 'enabled', m.enabled,
			'name', json_strip_nulls(json_build_object('en', m.name_en, 'ar', nullif(m.name_ar, '')))) ORDER BY m.position, m.id)
		FROM payment_methods m WHERE m.store_id = s.id),
	(SELECT json_object_agg(r.country, r.rates)
		FROM (SELECT country, json_object_agg(tax_class, tax_ppm) AS rates FROM tax_rates WHERE store_id = s.id GROUP BY country) r)
FROM stores s
WHERE s.id = `

func (s *PostgresStores) load(ctx context.Context, key storeKey) (*store.Store, bool, error) {
	began := time.Now()
	id, args := `(SELECT min(id) FROM (SELECT id FROM stores LIMIT 2) two HAVING count(*) = 1)`, []any(nil)
	switch {
	case key.publicKey != "":
		id, args = `(SELECT store_id FROM publishable_keys WHERE key = $1)`, []any{key.publicKey}
	case key.host != "":
		id, args = `(SELECT id FROM stores WHERE host = $1)`, []any{key.host}
	case key.id != 0:
		id, args = `$1`, []any{key.id}
	}
	loaded, err := pgread.Rows(ctx, s.db, scanStore, selectStore+id, args...)
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("select store: %w", cause.OfPostgres(s.db, began, err))
	case len(loaded) == 0:
		return nil, false, nil
	}
	return loaded[0], true, nil
}

func scanStore(row pgx.CollectableRow) (*store.Store, error) {
	var s store.Store
	return &s, row.Scan(&s.ID, &s.Name, &s.Host, &s.CartURL, &s.Currency, &s.Locale,
		&s.TaxRate, &s.PricesIncludeTax, &s.Country, &s.PublicKeys, &s.PaymentMethods, &s.TaxRates)
}

func storeWeight(key storeKey, s *store.Store) uint32 {
	size := len(key.publicKey) + len(key.host)
	if s == nil {
		return uint32(size)
	}
	size += int(unsafe.Sizeof(*s)) + len(s.Name) + len(s.Host) + len(s.CartURL)
	for _, key := range s.PublicKeys {
		size += len(key)
	}
	const mapOfTwoTexts, mapOfTwoRates = 200, 250
	size += len(s.TaxRates) * mapOfTwoRates
	for _, m := range s.PaymentMethods {
		size += int(unsafe.Sizeof(m)) + mapOfTwoTexts + len(m.ID) + len(m.Icon)
		for _, name := range m.Name {
			size += len(name)
		}
	}
	return uint32(size)
}
