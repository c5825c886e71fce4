package sample

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"commerce/subscriptions"
	"commerce/subscriptions/history"
)

const (
	byID           = "store_id, id" // the primary key of each of these tables
	ofCustomer     = "email, phone, calling_code"
	ofCard         = "customer_id, last_four, scheme"
	ofSubscription = "customer_id, calling_code, status, external_customer_id, " +
		"starts_at, ends_at, current_period_start, current_period_end, trial_ends_at, " +
		"cancel_at_period_end, canceled_at, cancellation_reason, paused_at, paused_remaining_days, next_retry_at, grace_ends_at, " +
		"duration, order_id, price_amount, currency, product_id, variant_id, scheduled_variant_id, " +
		"saved_card_id, metadata, created_at, updated_at"
)

func customerRow(c subscriptions.Customer) []any {
	return []any{c.StoreID, c.ID, orNull(c.Email), orNull(c.Phone), c.CallingCode}
}

func cardRow(s *subscriptions.Subscription) []any {
	return []any{s.StoreID, s.ID, s.CustomerID, s.Card.LastFour, s.Card.Scheme}
}

func subscriptionRow(s *subscriptions.Subscription, callingCode string) []any {
	var pausedDays, scheduled, saved any
	if s.Status == subscriptions.Paused {
		pausedDays = s.PausedRemainingDays
	}
	if s.Scheduled != nil {
		scheduled = s.Scheduled.ID
	}
	if s.Card != nil {
		saved = s.ID
	}
	return []any{
		s.StoreID, s.ID, s.CustomerID, callingCode, string(s.Status), orNull(s.ExternalCustomerID),
		s.StartsAt, s.EndsAt, s.PeriodStart, s.PeriodEnd, orNull(s.TrialEndsAt),
		s.CancelAtPeriodEnd, orNull(s.CanceledAt), orNull(s.CancellationReason), orNull(s.PausedAt), pausedDays, orNull(s.NextRetryAt), orNull(s.GraceEndsAt),
		string(s.Duration), s.OrderID, int64(s.Price), s.Currency, s.Product.ID, s.Variant.ID, scheduled,
		saved, s.Metadata, s.CreatedAt, s.UpdatedAt,
	}
}

// WriteSubscriptions inserts customers and subscriptions, or updates the rows with
// the same ids. A subscription's card gets the subscription's id. The stores,
// products and plans must exist.
func WriteSubscriptions(ctx context.Context, tx pgx.Tx, customers []subscriptions.Customer, all []subscriptions.Subscription) error {
	var batch pgx.Batch
	codes := map[[2]int64]string{} // by store and customer
	for _, c := range customers {
		codes[[2]int64{c.StoreID, c.ID}] = c.CallingCode
		batch.Queue(upsert("customers", byID, ofCustomer), customerRow(c)...)
	}
	var last int64
	for i := range all {
		s := &all[i]
		last = max(last, s.ID)
		if s.Card != nil {
			batch.Queue(upsert("saved_cards", byID, ofCard), cardRow(s)...)
		}
		batch.Queue(upsert("subscriptions", byID, ofSubscription), subscriptionRow(s, codes[[2]int64{s.StoreID, s.CustomerID}])...)
	}
	continueAfter(&batch, last)
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return fmt.Errorf("write %d subscriptions of %d customers: %w", len(all), len(customers), err)
	}
	return nil
}

// WritePast replaces what is recorded about the past of subscriptions, after WriteSubscriptions. The
// last state of each must be what it is now. Numbers are not read. A sharded database records nothing.
func WritePast(ctx context.Context, tx pgx.Tx, all []history.Past) error {
	var records bool
	if err := tx.QueryRow(ctx, "SELECT to_regclass('subscription_states') IS NOT NULL").Scan(&records); err != nil || !records {
		return err
	}
	var batch pgx.Batch
	for _, p := range all {
		batch.Queue("DELETE FROM subscription_states WHERE store_id = $1 AND subscription_id = $2", p.StoreID, p.ID)
	}
	for p, s := range history.InOrder(all) {
		batch.Queue(insertState, stateRow(p, s)...)
	}
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return fmt.Errorf("write the past of %d subscriptions: %w", len(all), err)
	}
	return nil
}

const insertState = `INSERT INTO subscription_states (store_id, subscription_id, recorded_at, first, was_bearing, status, variant_id,
	price_amount, currency, duration, cancel_at_period_end, card_last_four, card_scheme, period_start, period_end, cancellation_reason)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`

func stateRow(p *history.Past, s *history.State) []any {
	row := []any{p.StoreID, p.ID, s.At, s.Baseline, s.WasBearing}
	if s.Deleted {
		return append(row, make([]any, 11)...)
	}
	var card subscriptions.Card
	if s.Card != nil {
		card = *s.Card
	}
	return append(row, string(s.Status), s.VariantID, int64(s.Price), s.Currency, string(s.Duration), s.CancelAtPeriodEnd,
		card.LastFour, card.Scheme, s.PeriodStart, s.PeriodEnd, orNull(s.CancellationReason))
}

// continueAfter makes Postgres give higher ids than last to new cards and subscriptions.
func continueAfter(batch *pgx.Batch, last int64) {
	for _, table := range []string{"saved_cards", "subscriptions"} {
		batch.Queue("SELECT setval(pg_get_serial_sequence($1, 'id'), greatest(nextval(pg_get_serial_sequence($1, 'id')), $2))", table, last)
	}
}
