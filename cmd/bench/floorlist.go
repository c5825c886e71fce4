package main

import (
	"context"
	"os"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// floorRow is a row of 25 columns of subscriptions, in the order of floorSQL.
type floorRow struct {
	ID                 int64      `json:"id"`
	StoreID            int64      `json:"store_id"`
	CustomerID         int64      `json:"customer_id"`
	CallingCode        string     `json:"calling_code"`
	Status             string     `json:"status"`
	ExternalCustomerID *string    `json:"external_customer_id"`
	StartsAt           time.Time  `json:"starts_at"`
	EndsAt             time.Time  `json:"ends_at"`
	CurrentPeriodStart time.Time  `json:"current_period_start"`
	CurrentPeriodEnd   time.Time  `json:"current_period_end"`
	TrialEndsAt        *time.Time `json:"trial_ends_at"`
	CancelAtPeriodEnd  bool       `json:"cancel_at_period_end"`
	CanceledAt         *time.Time `json:"canceled_at"`
	PausedAt           *time.Time `json:"paused_at"`
	NextRetryAt        *time.Time `json:"next_retry_at"`
	GraceEndsAt        *time.Time `json:"grace_ends_at"`
	Duration           string     `json:"duration"`
	OrderID            int64      `json:"order_id"`
	PriceAmount        int64      `json:"price_amount"`
	Currency           string     `json:"currency"`
	ProductID          int64      `json:"product_id"`
	VariantID          int64      `json:"variant_id"`
	SavedCardID        *int64     `json:"saved_card_id"`
	CreatedAt          time.Time  `json:"created_at"`
	UpdatedAt          time.Time  `json:"updated_at"`
}

const floorSQL = `SELECT id, store_id, customer_id, calling_code, status, external_customer_id,
	starts_at, ends_at, current_period_start, current_period_end, trial_ends_at, cancel_at_period_end, canceled_at,
	paused_at, next_retry_at, grace_ends_at, duration, order_id, price_amount, currency, product_id, variant_id,
	saved_card_id, created_at, updated_at
	FROM subscriptions WHERE store_id = $1 ORDER BY id DESC LIMIT 15`

// floorList responds with the newest 15 rows of one store, without authentication. It
// uses Gin, pgx and encoding/json.
func floorList(ctx context.Context) (handle, error) {
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return nil, err
	}
	return func(c *gin.Context) (any, error) {
		rows, err := pool.Query(c.Request.Context(), floorSQL, 1)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowToStructByPos[floorRow])
	}, nil
}
