package sample

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"commerce/subscriptions"
)

const (
	byID           = "store_id, id" // the primary key of each of these tables
	ofCustomer     = "email, phone, calling_code"
	ofCard         = "customer_id, last_four, scheme"
	ofSubscription = "customer_id, calling_code, status, external_customer_id, " +
		"starts_at, ends_at, current_period_start, current_period_end, trial_ends_at, " +
		"cancel_at_period_end, canceled_at, paused_at, paused_remaining_days, next_retry_at, grace_ends_at, " +
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
		s.CancelAtPeriodEnd, orNull(s.CanceledAt), orNull(s.PausedAt), pausedDays, orNull(s.NextRetryAt), orNull(s.GraceEndsAt),
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

// continueAfter makes Postgres give higher ids than last to new cards and subscriptions.
func continueAfter(batch *pgx.Batch, last int64) {
	for _, table := range []string{"saved_cards", "subscriptions"} {
		batch.Queue("SELECT setval(pg_get_serial_sequence($1, 'id'), greatest(nextval(pg_get_serial_sequence($1, 'id')), $2))", table, last)
	}
}
