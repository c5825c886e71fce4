package torture

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"commerce/deploy/ephemeral"
	"commerce/deploy/migrations"
)

// The products that these tests add to the sample data of store 1. They have no fields and
// unlimited stock.
const (
	firstProduct = 1001
	lastProduct  = 1200
)

// catalog returns the URL of a new database with the sample data and these products.
func catalog(t testing.TB) string {
	t.Helper()
	program := commerce.compiled(t)
	return ephemeral.PostgresFrom(t, "torture_"+migrations.Digest(), func(ctx context.Context, url string) error { return stock(ctx, program, url) })
}

// stock adds the sample data and these products to a database.
func stock(ctx context.Context, program, url string) error {
	for _, command := range [][]string{{"migrate", "up"}, {"seed"}} {
		if _, err := execute(program, []string{"DATABASE_URL=" + url}, command...); err != nil {
			return err
		}
	}
	db, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	_, err = db.Exec(ctx, `
		INSERT INTO products (store_id, id, name, slug, type, price, original_price)
		SELECT 1, id, 'Product ' || id, 'product-' || id, 'digital', 1000, 1000 FROM generate_series($1::bigint, $2) id`,
		firstProduct, lastProduct)
	return err
}
