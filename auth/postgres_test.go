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
		Patience: 10 * time.Second, // enough for a busy machine
	})
	err := pgx.BeginFunc(t.Context(), d.admin, func(tx pgx.Tx) error {
		return sample.WriteStores(t.Context(), tx, sample.Stores(), nil, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// exec changes the database and advances the directory's clock a little.
func (d *storesDatabase) exec(t *testing.T, sql string) {
	t.Helper()
	if _, err := d.admin.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
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
			if diff := cmp.Diff(wanted, byID); err != nil || diff != "" {
				t.Errorf("ByID(%d): error %v (-want +got):\n%s", wanted.ID, err, diff)
			}
			byKey, err := d.ByPublicKey(t.Context(), wanted.PublicKeys[0])
			if diff := cmp.Diff(wanted, byKey); err != nil || diff != "" {
				t.Errorf("ByPublicKey(%s): error %v (-want +got):\n%s", wanted.PublicKeys[0], err, diff)
			}
		}
	}
	for name, find := range map[string]func(context.Context) (*store.Store, error){
		"an unknown ID":  func(ctx context.Context) (*store.Store, error) { return d.ByID(ctx, 999) },
		"no id":          func(ctx context.Context) (*store.Store, error) { return d.ByID(ctx, 0) },
		"an unknown key": func(ctx context.Context) (*store.Store, error) { return d.ByPublicKey(ctx, "pk_none") },
		"no key":         func(ctx context.Context) (*store.Store, error) { return d.ByPublicKey(ctx, "") },
		"one of two":     d.Sole,
	} {
		if store, err := find(t.Context()); !errors.Is(err, auth.ErrNoStore) || store != nil {
			t.Errorf("store by %s: %v, %v, want ErrNoStore", name, store, err)
		}
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
			if err == nil || errors.Is(err, auth.ErrNoStore) || !strings.Contains(err.Error(), `store 2: unknown currency "XYZ"`) {
				t.Errorf("%s: %v, want an error that names the store and its currency", name, err)
			}
		}
		if _, err := directory.ByID(t.Context(), 1); err != nil {
			t.Errorf("%s: another store: %v", name, err)
		}
	}
	d.exec(t, "UPDATE stores SET currency = 'XCG' WHERE id = 2")
	d.stores.Invalidate("store")
	if store, err := d.stores.ByID(t.Context(), 2); err != nil || store.Currency != "XCG" {
		t.Errorf("with a known currency: %+v, %v", store, err)
	}
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
		if (step.sole == 0) != errors.Is(err, auth.ErrNoStore) || (store != nil && store.ID != step.sole) {
			t.Errorf("%s: sole store %v, %v, want %d", step.change, store, err, step.sole)
		}
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
		if _, err := d.stores.ByPublicKey(t.Context(), "pk_demo"); err != nil {
			t.Fatal(err)
		}
		d.exec(t, "UPDATE stores SET tax_ppm = tax_ppm + 1 WHERE id = 1")
		step.invalidate()
		d.clock.forward(step.wait)
		store, err := d.stores.ByPublicKey(t.Context(), "pk_demo")
		if wanted := int64(150_001 + i); err != nil || store.TaxRate != wanted {
			t.Errorf("step %d: tax %v, %v, want %d", i, store, err, wanted)
		}
	}
}

func TestPostgresStores_ReadNullColumns(t *testing.T) {
	t.Parallel()
	d := newStoresDatabase(t)
	d.exec(t, `INSERT INTO stores (id, name, currency) VALUES (7, 'Bare', 'SAR')`)
	got, err := d.stores.ByID(t.Context(), 7)
	wanted := &store.Store{ID: 7, Name: "Bare", Currency: "SAR", Locale: locale.En, PricesIncludeTax: true, PublicKeys: []string{}}
	if diff := cmp.Diff(wanted, got); err != nil || diff != "" {
		t.Errorf("bare store: error %v (-want +got):\n%s", err, diff)
	}
	d.exec(t, `INSERT INTO payment_methods (store_id, id, name_en, position) VALUES (7, 'cash', 'Cash', 0)`)
	d.stores.Invalidate("store")
	d.clock.forward(time.Millisecond)
	got, err = d.stores.ByID(t.Context(), 7)
	methods := []store.PaymentMethod{{ID: "cash", Name: locale.Text{locale.En: "Cash"}, Enabled: true}}
	if err != nil || !cmp.Equal(methods, got.PaymentMethods) {
		t.Errorf("payment methods %v, %v, want %v", got, err, methods)
	}
}

func TestPostgresStores_ServeCachedStoresWhilePostgresIsDown(t *testing.T) {
	t.Parallel()
	d := newStoresDatabase(t)
	known, err := d.stores.ByPublicKey(t.Context(), "pk_demo")
	if err != nil {
		t.Fatal(err)
	}
	d.pool.Close()
	d.clock.forward(time.Hour)
	if got, err := d.stores.ByPublicKey(t.Context(), "pk_demo"); err != nil || got != known {
		t.Errorf("known store: %v, %v, want as before", got, err)
	}
	for i := range 3 {
		if got, err := d.stores.ByPublicKey(t.Context(), "pk_"+strconv.Itoa(i)); !errors.Is(err, lastknown.ErrUnknown) {
			t.Errorf("unknown key: %v, %v, want ErrUnknown", got, err)
		}
	}
}
