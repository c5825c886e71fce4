package suite

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart/period"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
	"commerce/deploy/migrations"
	"commerce/deploy/sample"
	"commerce/subscriptions"
)

// now is the clock of all tests.
var Now = time.Date(2025, 11, 20, 10, 0, 0, 123456000, time.UTC)

// data is the content of a source.
type Data struct {
	Customers []subscriptions.Customer
	All       []subscriptions.Subscription
}

func SampleData() Data { return Data{sample.Customers(), sample.Subscriptions(Now)} }

// Filled returns a pool for a database with the data, and its stores and products.
func Filled(t testing.TB, d Data) *pgxpool.Pool {
	t.Helper()
	pool := ephemeral.MigratedPool(t)
	Fill(t, pool, d)
	return pool
}

// Fill writes the data, and its stores and products, into an empty database.
func Fill(t testing.TB, pool *pgxpool.Pool, d Data) {
	t.Helper()
	assert.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return errors.Join(writeCatalog(t.Context(), tx, d), sample.WriteSubscriptions(t.Context(), tx, d.Customers, d.All))
	}))
	ephemeral.Settle(t, pool)
}

// writeCatalog writes what the subscriptions refer to.
func writeCatalog(ctx context.Context, tx pgx.Tx, d Data) error {
	var batch pgx.Batch
	for _, s := range Stores() {
		batch.Queue("INSERT INTO stores (id, name, currency, language) VALUES ($1, $2, $3, $4)", s.ID, s.Name, s.Currency, string(s.Locale))
	}
	for _, s := range d.All {
		batch.Queue(`INSERT INTO products (store_id, id, name, names, slug, type, price, original_price) VALUES ($1, $2, $3, coalesce($4, '{}'::jsonb), $5, $6, 0, 0)
			ON CONFLICT DO NOTHING`, s.StoreID, s.Product.ID, s.Product.Name.Own, s.Product.Name.Others, s.Product.Slug, s.Product.Type)
		for _, v := range []*subscriptions.Variant{&s.Variant, s.Scheduled} {
			if v != nil {
				batch.Queue(`INSERT INTO plans (store_id, id, product_id, duration, price) VALUES ($1, $2, $3, $4, $5)
					ON CONFLICT DO NOTHING`, s.StoreID, v.ID, s.Product.ID, string(v.Duration), int64(v.Price))
			}
		}
	}
	return tx.SendBatch(ctx, &batch).Close()
}

// Stores returns the sample's stores, and two whose currencies have no and three decimals.
func Stores() []*store.Store {
	return append(sample.Stores(),
		&store.Store{ID: 3, Name: "Tokyo", Currency: "JPY", Locale: locale.En},
		&store.Store{ID: 4, Name: "Kuwait", Currency: "KWD", Locale: locale.Ar},
	)
}

// SixStates returns one subscription per state, numbered in order. Each nullable member is
// null in at least one of them, and not null in another.
func SixStates() Data {
	name := locale.Name{Own: "Pro membership", Others: map[locale.Locale]string{locale.Ar: "العضوية الاحترافية"}}
	product := subscriptions.Product{ID: 4, Name: name, Slug: "pro-membership", Type: "subscription"}
	monthly := subscriptions.Variant{ID: 41, Duration: period.Monthly, Price: 2500}
	yearly := subscriptions.Variant{ID: 42, Duration: period.Annually, Price: 20000}
	start := time.Date(2025, 11, 6, 8, 30, 15, 250000000, time.UTC)
	of := func(id int64, status subscriptions.Status) subscriptions.Subscription {
		return subscriptions.Subscription{
			ID: id, StoreID: 1, CustomerID: 1001, Status: status, StartsAt: start, EndsAt: start.AddDate(0, 1, 0),
			PeriodStart: start, PeriodEnd: start.AddDate(0, 1, 0), Duration: period.Monthly, OrderID: 900 + id,
			Price: 2000, Currency: "SAR", Product: product, Variant: monthly,
			Card: &subscriptions.Card{LastFour: "4242", Scheme: "visa"}, CreatedAt: start, UpdatedAt: start.Add(time.Microsecond),
		}
	}
	trialing, active, pastDue := of(1, subscriptions.Trialing), of(2, subscriptions.Active), of(3, subscriptions.PastDue)
	paused, canceled, expired := of(4, subscriptions.Paused), of(5, subscriptions.Canceled), of(6, subscriptions.Expired)

	trialing.TrialEndsAt = start.AddDate(0, 0, 14)
	trialing.PeriodEnd, trialing.EndsAt = trialing.TrialEndsAt, trialing.TrialEndsAt
	active.ExternalCustomerID = "crm-7"
	// Postgres does not keep the order of members; it returns this one.
	active.Metadata = []byte(`{"seats": 3, "nested": {"list": [1, 2.50, null]}, "campaign": "رمضان"}`)
	active.Scheduled = &yearly
	pastDue.PeriodEnd = Now.Add(-time.Hour)
	pastDue.EndsAt, pastDue.NextRetryAt, pastDue.GraceEndsAt = pastDue.PeriodEnd, Now.Add(23*time.Hour), Now.AddDate(0, 0, 3)
	paused.PausedAt, paused.PausedRemainingDays = Now.AddDate(0, 0, -4), 20
	canceled.CancelAtPeriodEnd, canceled.CanceledAt, canceled.CancellationReason = true, Now.AddDate(0, 0, -2), "Zu teuer, \"sorry\""
	expired.StartsAt, expired.PeriodStart = start.AddDate(0, -3, 0), start.AddDate(0, -3, 0)
	expired.PeriodEnd, expired.EndsAt, expired.Card = start.AddDate(0, -2, 0), start.AddDate(0, -2, 0), nil
	customers := []subscriptions.Customer{{StoreID: 1, ID: 1001, Email: "Sara@Example.com", Phone: "501234567", CallingCode: "966"}}
	return Data{customers, []subscriptions.Subscription{trialing, active, pastDue, paused, canceled, expired}}
}

// Many returns n subscriptions of store 1.
func Many(n int) []subscriptions.Subscription {
	all := make([]subscriptions.Subscription, n)
	sample := SampleData().All
	for i := range all {
		all[i] = sample[i%40]
		all[i].StoreID, all[i].ID = 1, int64(i+1)
	}
	return all
}

// Partitioned returns the URL of an empty database whose subscriptions have 64 partitions.
func Partitioned(t testing.TB) string {
	t.Helper()
	script := PartitionsScript(t)
	sum := fnv.New64a()
	sum.Write(script)
	name := fmt.Sprintf("partitioned_%s_%x", migrations.Digest(), sum.Sum64())
	return ephemeral.PostgresFrom(t, name, func(ctx context.Context, url string) error {
		if err := ephemeral.Migrate(ctx, url); err != nil {
			return err
		}
		return Partition(ctx, url, script)
	})
}

// PartitionsScript is deploy/postgres/partitions.sql, whichever package runs the test.
func PartitionsScript(t testing.TB) []byte {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	return assert.Must(os.ReadFile(filepath.Join(filepath.Dir(here), "../../deploy/postgres/partitions.sql")))(t)
}

// Partition runs the script in a transaction.
func Partition(ctx context.Context, url string, script []byte) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.PgConn().Exec(ctx, "BEGIN; "+string(script)+" COMMIT").ReadAll()
	return err
}

// PlanningOnce returns a pool that plans as the service's pool for lists does.
func PlanningOnce(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	return ephemeral.OpenPool(t, url, connect.PostgresConfig{
		Writable: true, MaxConns: 4, StatementTimeout: -1, Settings: map[string]string{"plan_cache_mode": "force_generic_plan"},
	})
}

// InTwoStores returns the data of store 1 also for store 2.
func InTwoStores(d Data) Data {
	for _, c := range d.Customers {
		c.StoreID = 2
		d.Customers = append(d.Customers, c)
	}
	for _, s := range d.All {
		s.StoreID = 2
		d.All = append(d.All, s)
	}
	return d
}
