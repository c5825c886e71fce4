package auth_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth"
	"commerce/auth/lastknown"
	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
	"commerce/deploy/sample"
)

// knownCurrency replaces money.Known, which this package must not import.
func knownCurrency(code string) bool { return code != "XYZ" }

// clock is a clock that only the test moves. Loads in the background read it too.
type clock struct{ ns atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(1_800_000_000, c.ns.Load()) }
func (c *clock) forward(d time.Duration) { c.ns.Add(int64(d)) }

// storesDatabase is a database with the sample's stores, and a directory over it.
type storesDatabase struct {
	stores *auth.PostgresStores
	pool   *pgxpool.Pool // the directory's
	admin  *pgxpool.Pool
	clock  clock // of the directory
}

func newStoresDatabase(t *testing.T) *storesDatabase {
	t.Helper()
	url := ephemeral.Migrated(t)
	d := &storesDatabase{}
	d.pool = ephemeral.OpenPool(t, url, connect.PostgresConfig{})
	d.admin = ephemeral.OpenPool(t, url, connect.PostgresConfig{Writable: true})
	d.stores = auth.NewPostgresStores(auth.PostgresStoresConfig{
		DB: d.pool, KnownCurrency: knownCurrency, Log: slog.New(slog.DiscardHandler), Now: d.clock.now,
		Patience: ephemeral.Patience(10 * time.Second),
	})
	assert.NoError(t, pgx.BeginFunc(t.Context(), d.admin, func(tx pgx.Tx) error {
		return sample.WriteStores(t.Context(), tx, sample.Stores(), nil, nil)
	}))
	return d
}

// exec changes the database and advances the directory's clock a little.
func (d *storesDatabase) exec(t *testing.T, sql string) {
	t.Helper()
	_, err := d.admin.Exec(t.Context(), sql)
	assert.Require(t, err == nil, "%s: %v", sql, err)
	d.clock.forward(time.Millisecond)
}

func TestStoreDirectories_GiveTheSameAnswers(t *testing.T) {
	t.Parallel()
	for name, directory := range map[string]auth.StoreDirectory{
		"memory": auth.NewMemoryStores(knownCurrency, sample.Stores()...), "postgres": newStoresDatabase(t).stores,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testDirectory(t, directory)
		})
	}
}

func testDirectory(t *testing.T, d auth.StoreDirectory) {
	t.Helper()
	for _, wanted := range sample.Stores() {
		for range 2 { // the second time from the cache
			byID, err := d.ByID(t.Context(), wanted.ID)
			diff := cmp.Diff(wanted, byID)
			assert.That(t, err == nil && diff == "", "ByID(%d): error %v (-want +got):\n%s", wanted.ID, err, diff)
			byKey, err := d.ByPublicKey(t.Context(), wanted.PublicKeys[0])
			diff = cmp.Diff(wanted, byKey)
			assert.That(t, err == nil && diff == "", "ByPublicKey(%s): error %v (-want +got):\n%s", wanted.PublicKeys[0], err, diff)
			for _, host := range []string{"localhost", "LocalHost:8080", "localhost."} {
				byHost, err := d.ByHost(t.Context(), host)
				assert.That(t, err == nil && byHost.ID == 1, "ByHost(%s): %v, %v", host, byHost, err)
			}
		}
	}
	for name, find := range map[string]func(context.Context) (*store.Store, error){
		"an unknown ID":   func(ctx context.Context) (*store.Store, error) { return d.ByID(ctx, 999) },
		"no id":           func(ctx context.Context) (*store.Store, error) { return d.ByID(ctx, 0) },
		"an unknown key":  func(ctx context.Context) (*store.Store, error) { return d.ByPublicKey(ctx, "pk_none") },
		"an unknown host": func(ctx context.Context) (*store.Store, error) { return d.ByHost(ctx, "shop.example") },
		"no host":         func(ctx context.Context) (*store.Store, error) { return d.ByHost(ctx, "") },
		"a wrong host":    func(ctx context.Context) (*store.Store, error) { return d.ByHost(ctx, "\xff:80") },
		"no key":          func(ctx context.Context) (*store.Store, error) { return d.ByPublicKey(ctx, "") },
		"one of two":      d.Sole,
	} {
		store, err := find(t.Context())
		assert.That(t, errors.Is(err, auth.ErrNoStore) && store == nil, "store by %s: %v, %v, want ErrNoStore", name, store, err)
	}
}

func TestStoreDirectories_RefuseAStoreInAnUnknownCurrency(t *testing.T) {
	t.Parallel()
	odd := *sample.Stores()[1]
	odd.Currency = "XYZ"
	d := newStoresDatabase(t)
	d.exec(t, "UPDATE stores SET currency = 'XYZ' WHERE id = 2")
	for name, directory := range map[string]auth.StoreDirectory{
		"memory": auth.NewMemoryStores(knownCurrency, sample.Stores()[0], &odd), "postgres": d.stores,
	} {
		_, byID := directory.ByID(t.Context(), 2)
		_, byKey := directory.ByPublicKey(t.Context(), odd.PublicKeys[0])
		for _, err := range []error{byID, byKey} {
			assert.That(t, err != nil && !errors.Is(err, auth.ErrNoStore) && strings.Contains(err.Error(), `store 2: unknown currency "XYZ"`),
				"%s: %v, want an error that names the store and its currency", name, err)
		}
		_, err := directory.ByID(t.Context(), 1)
		assert.That(t, err == nil, "%s: another store: %v", name, err)
	}
	d.exec(t, "UPDATE stores SET currency = 'XCG' WHERE id = 2")
	d.stores.Invalidate("store")
	store, err := d.stores.ByID(t.Context(), 2)
	assert.That(t, err == nil && store.Currency == "XCG", "with a known currency: %+v, %v", store, err)
}

func TestPostgresStores_SoleFollowsTheNumberOfStores(t *testing.T) {
	t.Parallel()
	d := newStoresDatabase(t)
	for _, step := range []struct {
		change string
		sole   int64 // 0: none
	}{
		{"DELETE FROM stores WHERE id = 1", 2},
		{"DELETE FROM stores", 0},
		{"INSERT INTO stores (id, name, currency) VALUES (5, 'Shop', 'KWD')", 5},
		{"INSERT INTO stores (id, name, currency) VALUES (6, 'Shop', 'KWD')", 0},
	} {
		d.exec(t, step.change)
		d.stores.Invalidate("store")
		d.clock.forward(time.Millisecond)
		store, err := d.stores.Sole(t.Context())
		assert.That(t, (step.sole == 0) == errors.Is(err, auth.ErrNoStore) && (store == nil || store.ID == step.sole),
			"%s: sole store %v, %v, want %d", step.change, store, err, step.sole)
	}
}

func TestPostgresStores_ShowAChangeAfterInvalidateOrWithinASecond(t *testing.T) {
	t.Parallel()
	d := newStoresDatabase(t)
	for i, step := range []struct {
		invalidate func()
		wait       time.Duration
	}{
		{func() { d.stores.Invalidate("store") }, time.Millisecond},
		{d.stores.InvalidateAll, time.Millisecond},
		{func() {}, 700 * time.Millisecond},
	} {
		assert.Must(d.stores.ByPublicKey(t.Context(), "pk_demo"))(t)
		d.exec(t, "UPDATE stores SET tax_ppm = tax_ppm + 1 WHERE id = 1")
		step.invalidate()
		d.clock.forward(step.wait)
		store, err := d.stores.ByPublicKey(t.Context(), "pk_demo")
		wanted := int64(150_001 + i)
		assert.That(t, err == nil && store.TaxRate == wanted, "step %d: tax %v, %v, want %d", i, store, err, wanted)
	}
}

func TestPostgresStores_ReadNullColumns(t *testing.T) {
	t.Parallel()
	d := newStoresDatabase(t)
	d.exec(t, `INSERT INTO stores (id, name, currency) VALUES (7, 'Bare', 'SAR')`)
	got, err := d.stores.ByID(t.Context(), 7)
	wanted := &store.Store{ID: 7, Name: "Bare", Currency: "SAR", Locale: locale.En, PricesIncludeTax: true, PublicKeys: []string{}}
	diff := cmp.Diff(wanted, got)
	assert.That(t, err == nil && diff == "", "bare store: error %v (-want +got):\n%s", err, diff)
	d.exec(t, `INSERT INTO payment_methods (store_id, id, name_en, position) VALUES (7, 'cash', 'Cash', 0)`)
	d.exec(t, `ALTER TABLE stores ALTER name TYPE varchar(255)`) // the statement must be prepared again
	d.stores.Invalidate("store")
	d.clock.forward(time.Millisecond)
	got, err = d.stores.ByID(t.Context(), 7)
	methods := []store.PaymentMethod{{ID: "cash", Name: locale.Text{locale.En: "Cash"}, Enabled: true}}
	assert.That(t, err == nil && cmp.Equal(methods, got.PaymentMethods), "payment methods %v, %v, want %v", got, err, methods)
}

func TestPostgresStores_ServeCachedStoresWhilePostgresIsDown(t *testing.T) {
	t.Parallel()
	d := newStoresDatabase(t)
	known := assert.Must(d.stores.ByPublicKey(t.Context(), "pk_demo"))(t)
	d.pool.Close()
	d.clock.forward(time.Hour)
	got, err := d.stores.ByPublicKey(t.Context(), "pk_demo")
	assert.That(t, err == nil && got == known, "known store: %v, %v, want as before", got, err)
	for i := range 3 {
		got, err := d.stores.ByPublicKey(t.Context(), "pk_"+strconv.Itoa(i))
		assert.That(t, errors.Is(err, lastknown.ErrUnknown), "unknown key: %v, %v, want ErrUnknown", got, err)
	}
}
