package suite

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/problem"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions/postgres"
)

// Setting is a server on which histories happen one after another.
type Setting struct {
	T        *testing.T
	Primary  *ephemeral.Server
	Standbys []*ephemeral.Standby
	Writes   *pgxpool.Pool
	Source   Postgres // of the primary
}

func NewSetting(t *testing.T, settings ...string) *Setting {
	t.Helper()
	primary := ephemeral.StartPostgres(t, settings...)
	assert.NoError(t, ephemeral.Migrate(t.Context(), primary.URL))
	h := SettingOf(t, primary, primary.URL)
	Fill(t, h.Writes, InTwoStores(SixStates()))
	Exec(t, h.Writes, "CHECKPOINT") // a crash must not lose these rows, whatever synchronous_commit is
	return h
}

// SettingOf returns a setting on a database of a server.
func SettingOf(t *testing.T, primary *ephemeral.Server, url string) *Setting {
	t.Helper()
	return &Setting{T: t, Primary: primary, Writes: WritesTo(t, url), Source: SourceOf(t, url)}
}

func (h *Setting) AddStandby(settings ...string) Postgres {
	h.T.Helper()
	standby := ephemeral.StartStandby(h.T, h.Primary, settings...)
	h.Standbys = append(h.Standbys, standby)
	return SourceOf(h.T, standby.URL)
}

// WritesTo returns a pool for writers, who do not wait long for each other.
func WritesTo(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	return ephemeral.OpenPool(t, url, connect.PostgresConfig{
		Writable: true, MaxConns: Writers + 2, StatementTimeout: -1,
		Settings: map[string]string{"lock_timeout": "500ms"},
	})
}

func SourceOf(t *testing.T, url string) Postgres {
	t.Helper()
	pool := ephemeral.OpenPool(t, url, connect.PostgresConfig{MaxConns: 8, StatementTimeout: -1})
	return NewPostgres(postgres.Config{Pool: pool, Budget: SettleLimit, Wait: SettleLimit})
}

// Settle waits until all transactions that have begun have ended, and the standbys have them.
func (h *Setting) Settle(ctx context.Context) error {
	if err := h.SettlePrimary(ctx); err != nil {
		return err
	}
	h.CatchUp()
	return nil
}

// CatchUp waits until the standbys have what the primary has.
func (h *Setting) CatchUp() {
	h.T.Helper()
	for _, standby := range h.Standbys {
		standby.CatchUp(h.Primary)
	}
}

func (h *Setting) SettlePrimary(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, SettleLimit)
	defer cancel()
	var last uint64
	if err := h.Writes.QueryRow(ctx, "SELECT pg_current_xact_id()").Scan(&last); err != nil {
		return err
	}
	for ended := false; !ended; time.Sleep(time.Millisecond) {
		err := h.Writes.QueryRow(ctx, "SELECT pg_snapshot_xmin(pg_current_snapshot()) > $1", last).Scan(&ended)
		if err != nil {
			return err
		}
	}
	return nil
}

// Has reports whether an error is one for the caller, with a code.
func Has(err error, code problem.Code) bool {
	known, ok := errors.AsType[*problem.Error](err)
	return ok && known.Code == code
}

func IsUnavailable(err error) bool { return Has(err, problem.Unavailable) }

// IsMissing reports whether an error is that of a subscription that does not exist.
func IsMissing(err error) bool { return Has(err, problem.SubscriptionNotFound) }

var SettleLimit = ephemeral.Patience(30 * time.Second)

// Writers is how many change a setting at the same time.
const Writers = 8

// InsertOne inserts a subscription with an ID into store 1, or gives it another price.
const InsertOne = `
	INSERT INTO subscriptions (store_id, id, customer_id, calling_code, status, starts_at, ends_at, current_period_start,
		current_period_end, duration, order_id, price_amount, currency, product_id, variant_id, saved_card_id)
	VALUES (1, $1, 1001, '966', 'active', now(), now(), now(),
		now() + interval '1 month', 'monthly', 1, $2, 'SAR', 4, 41, (SELECT min(id) FROM saved_cards WHERE store_id = 1))
	ON CONFLICT (store_id, id) DO UPDATE SET price_amount = excluded.price_amount`
