package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions"
	"commerce/subscriptions/postgres"
)

// dataPage returns docs/data.md.
func dataPage(t *testing.T) string { return source(t, "docs/data.md") }

// codeUnder returns the code blocks of a language below a heading of a page, up to the next
// heading.
func codeUnder(t *testing.T, page, heading, language string) (blocks []string) {
	t.Helper()
	_, section, found := strings.Cut(page, "# "+heading+"\n")
	assert.Require(t, found, "the page has no section %q", heading)
	section, _, _ = strings.Cut(section, "\n#")
	for _, block := range strings.Split(section, "```"+language+"\n")[1:] {
		code, _, _ := strings.Cut(block, "\n```")
		blocks = append(blocks, code)
	}
	assert.Require(t, len(blocks) != 0, "section %q has no %s", heading, language)
	return blocks
}

// seen is what a merchant sees of a subscription at a time.
func seen(s *subscriptions.Subscription, now time.Time) string {
	scheduled := ""
	if s.Scheduled != nil {
		scheduled = fmt.Sprintf(", then plan %d", s.Scheduled.ID)
	}
	return fmt.Sprintf("%s, active %t, expired %t, %d days, renews %t, plan %d%s at %d",
		s.Status, s.GrantsAccess(now), s.HasExpired(now), s.DaysRemaining(now), s.PaymentMethod() != nil, s.Variant.ID, scheduled, s.Price)
}

// The example of docs/data.md, as it is written there.
func TestDataPage_ExampleShowsWhatItSays(t *testing.T) {
	t.Parallel()
	url, page := ephemeral.Migrated(t), dataPage(t)
	db := writer(t, url)
	source := postgres.New(postgres.Config{Pool: ephemeral.OpenPool(t, url, connect.PostgresConfig{})})
	_, example, _ := strings.Cut(page, "\n## A worked example\n")
	example, _, _ = strings.Cut(example, "\n## ")
	assert.Equal(t, strings.Count(example, "\n### "), 13, "steps of the example, which are those of this test")
	assert.Equal(t, strings.Count(example, "```sql"), 13, "blocks of SQL")
	changed := 0
	for _, step := range []struct{ section, at, want string }{
		{"A new store", "", ""},
		{"A product with two plans", "", ""},
		{"A game card, and a coupon for it", "", ""},
		{"A customer subscribes", "2026-01-01", "active, active true, expired false, 31 days, renews true, plan 401 at 4900"},
		{"A renewal", "2026-02-01", "active, active true, expired false, 28 days, renews true, plan 401 at 4900"},
		{"A plan change is scheduled", "2026-02-10", "active, active true, expired false, 19 days, renews true, plan 401, then plan 402 at 4900"},
		{"The plan change is applied", "2026-03-01", "active, active true, expired false, 365 days, renews true, plan 402 at 49000"},
		{"A pause", "2026-04-10", "paused, active false, expired false, 334 days, renews true, plan 402 at 49000"},
		{"The end of the pause", "2026-05-02", "active, active true, expired false, 334 days, renews true, plan 402 at 49000"},
		{"A failed payment", "2027-04-07", "past_due, active true, expired false, 0 days, renews true, plan 402 at 49000"},
		{"A failed payment", "2027-04-08", "past_due, active false, expired false, 0 days, renews true, plan 402 at 49000"},
		{"The payment succeeds", "2027-04-04", "active, active true, expired false, 363 days, renews true, plan 402 at 49000"},
		{"A cancellation at the end of the period", "2027-09-01", "active, active true, expired false, 213 days, renews false, plan 402 at 49000"},
		{"The expiry", "2028-04-01", "expired, active false, expired true, 0 days, renews false, plan 402 at 49000"},
	} {
		for _, sql := range codeUnder(t, page, step.section, "sql") {
			change(t, db, sql)
		}
		if step.at == "" {
			continue
		}
		now := assert.Must(time.Parse(time.DateOnly, step.at))(t)
		s, err := source.Get(t.Context(), 7, 9001, "en")
		assert.Require(t, err == nil, "%s: %v", step.section, err)
		assert.Equal(t, seen(s, now), step.want, "%s, on %s", step.section, step.at)
		assert.That(t, s.Product.Name.Own == "Club" && s.Card.LastFour == "4242", "%s: %+v", step.section, s)
		stamp := count(t, db, "SELECT changed_in::text::int FROM subscriptions")
		assert.That(t, stamp != changed, "%s: changed_in is still %d", step.section, stamp)
		changed = stamp
	}
}

// What the page says about the game card and its coupon, of the page's own requests.
func TestDataPage_ExampleSellsWhatItSays(t *testing.T) {
	t.Parallel()
	url, page := ephemeral.Migrated(t), dataPage(t)
	db := writer(t, url)
	store := codeUnder(t, page, "A new store", "sql")[0]
	change(t, db, strings.ReplaceAll(store, "pk_oasis", "pk_demo")) // what call sends
	change(t, db, codeUnder(t, page, "A game card, and a coupon for it", "sql")[0])
	requests := regexp.MustCompile("`POST (/cart/[a-z]+)` with(?: the body)? `([^`]+)`[^.`]* SAR ([0-9.]+[0-9])").FindAllStringSubmatch(page, -1)
	assert.Require(t, len(requests) == 2, "the page shows %d requests with amounts, want 2", len(requests))
	i, token := startServe(t, url), ""
	for n, want := range []string{"subtotal", "discount_amount"} {
		a := i.mustCall(t, token, "POST", requests[n][1], requests[n][2])
		token = a.Data.CartToken
		amount := `"` + want + `":` + strings.TrimSuffix(requests[n][3], ".00")
		assert.That(t, strings.Contains(a.Body, amount+","), "%q: no %s in %s", requests[n], amount, a.Body)
	}
}

// The statements of everyday changes, after the example has sold a subscription.
func TestDataPage_EverydayChangesDoWhatItSays(t *testing.T) {
	t.Parallel()
	url, page := ephemeral.Migrated(t), dataPage(t)
	db := writer(t, url)
	example := []string{"A new store", "A product with two plans", "A game card, and a coupon for it", "A customer subscribes"}
	for _, section := range example {
		change(t, db, codeUnder(t, page, section, "sql")[0])
	}
	for range 2 { // all are safe to repeat, except that restocking adds again
		for _, sql := range codeUnder(t, page, "Everyday changes", "sql") {
			change(t, db, sql)
		}
	}
	wantCounts(t, db, map[string]int{
		"SELECT price FROM products WHERE id = 41":               1500,
		"SELECT stock FROM products WHERE id = 41":               5 + 2*20,
		"SELECT count(*) FROM products WHERE id = 41 AND active": 0,
		"SELECT price FROM plans WHERE id = 401":                 5900,
		"SELECT id FROM plans WHERE NOT active":                  401,
	})
	_, err := db.Exec(t.Context(), "DELETE FROM plans WHERE id = 401")
	assert.That(t, err != nil, "a plan with a subscription was deleted")
	source := postgres.New(postgres.Config{Pool: ephemeral.OpenPool(t, url, connect.PostgresConfig{})})
	s := assert.Must(source.Get(t.Context(), 7, 9001, "en"))(t)
	assert.That(t, s.Variant.ID == 401 && s.Price == 4900 && s.Product.Name.Own == "Club",
		"the subscription of the retired plan is %+v", s)
}

func TestDataPage_FindsTheOldestTransaction(t *testing.T) {
	t.Parallel()
	db := writer(t, ephemeral.Migrated(t))
	tx := assert.Must(db.Begin(t.Context()))(t)
	defer func() { _ = tx.Rollback(t.Context()) }()
	assert.Must(tx.Exec(t.Context(), "INSERT INTO stores (id, name, currency) VALUES (1, 'S', 'SAR')"))(t)
	queries := codeUnder(t, dataPage(t), "Long transactions", "sql")
	for i, want := range []bool{true, false} { // other tests may have older ones, but none prepared
		rows := assert.Must(db.Query(t.Context(), queries[i]))(t)
		found := rows.Next()
		rows.Close()
		assert.NoError(t, rows.Err())
		assert.Equal(t, found, want, "%s finds one", queries[i])
	}
}

// The list of what turns triggers off, for changed_in and deletions.
func TestDataPage_TriggersFireAsItSays(t *testing.T) {
	t.Parallel()
	url, page := ephemeral.Migrated(t), dataPage(t)
	db := writer(t, url)
	for _, section := range []string{"A new store", "A product with two plans", "A customer subscribes"} {
		change(t, db, codeUnder(t, page, section, "sql")[0])
	}
	stamped := func(sql string) bool {
		t.Helper()
		const stamp = "SELECT changed_in::text::int FROM subscriptions"
		before := count(t, db, stamp)
		change(t, db, sql)
		return count(t, db, stamp) != before
	}
	for sql, want := range map[string]bool{
		"UPDATE subscriptions SET id = id WHERE store_id = 7":                                           true,
		"UPDATE saved_cards SET last_four = '1234'":                                                     true,
		"UPDATE saved_cards SET last_four = last_four":                                                  false,
		"BEGIN; SET LOCAL session_replication_role = replica; UPDATE subscriptions SET id = id; COMMIT": true,
		`BEGIN; ALTER TABLE subscriptions DISABLE TRIGGER stamp; UPDATE subscriptions SET id = id;
			ALTER TABLE subscriptions ENABLE ALWAYS TRIGGER stamp; COMMIT`: false,
	} {
		assert.Equal(t, stamped(sql), want, "%s: changed_in was set", sql)
	}
	_, err := db.Exec(t.Context(), "DELETE FROM stores")
	assert.That(t, err != nil, "a store with subscriptions was deleted")
	change(t, db, "TRUNCATE subscriptions")
	wantCounts(t, db, map[string]int{"SELECT id FROM deleted_subscriptions": 9001})
	change(t, db, "DELETE FROM stores")
}

// Each column of the tables is on the page, which says whether it can be omitted.
func TestDataPage_DescribesEachColumn(t *testing.T) {
	t.Parallel()
	page := dataPage(t)
	rows, err := writer(t, ephemeral.Migrated(t)).Query(t.Context(), `
		SELECT table_name, column_name, is_nullable = 'YES' OR column_default IS NOT NULL OR is_identity = 'YES' OR is_generated = 'ALWAYS'
			OR column_name = 'changed_in' -- a trigger sets it
		FROM information_schema.columns WHERE table_schema = 'public' AND column_name NOT IN ('store_id', 'id')
			AND table_name IN ('stores', 'publishable_keys', 'payment_methods', 'products', 'plans', 'fields', 'field_options',
				'coupons', 'coupon_products', 'coupon_uses', 'customers', 'saved_cards', 'subscriptions', 'api_tokens')`)
	assert.NoError(t, err)
	var table, column string
	var optional bool
	saysOptional := regexp.MustCompile(`(?i)\b(default|null|generated|computed)\b`)
	done, err := pgx.ForEachRow(rows, []any{&table, &column, &optional}, func() error {
		_, list, _ := strings.Cut(page, "\n`"+table+"`:\n\n- ")
		list, _, _ = strings.Cut(list, "\n\n")
		for entry := range strings.SplitSeq(list, "\n- ") {
			if names, meaning, _ := strings.Cut(entry, ": "); strings.Contains(names, "`"+column+"`") {
				assert.Equal(t, saysOptional.MatchString(meaning), optional,
					"docs/data.md does not say correctly whether %s.%s can be omitted: %s", table, column, meaning)
				return nil
			}
		}
		t.Errorf("docs/data.md does not describe %s.%s", table, column)
		return nil
	})
	assert.That(t, err == nil && done.RowsAffected() >= 50, "%d columns, %v", done.RowsAffected(), err)
}
