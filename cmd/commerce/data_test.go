package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions"
	"commerce/subscriptions/figures"
	"commerce/subscriptions/suite"
)

func dataPage(t *testing.T) string { return source(t, "docs/data.md") }

// codeUnder returns the code blocks of a language in a section of a page.
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

func patientSource(t *testing.T, url string) suite.Postgres {
	t.Helper()
	return suite.Patient(ephemeral.OpenPool(t, url, connect.PostgresConfig{}))
}

// The example of docs/data.md, as it is written there.
func TestDataPage_ExampleShowsWhatItSays(t *testing.T) {
	t.Parallel()
	url, page := ephemeral.Migrated(t), dataPage(t)
	db := writer(t, url)
	source := patientSource(t, url)
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
	s := assert.Must(patientSource(t, url).Get(t.Context(), 7, 9001, "en"))(t)
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
	change(t, db, codeUnder(t, page, "What recording changes costs", "sql")[0])
	for sql, want := range map[string]bool{
		"UPDATE subscriptions SET id = id":                           false,
		"UPDATE subscriptions SET order_id = order_id + 1":           true,
		"UPDATE subscriptions SET changed_in = pg_current_xact_id()": true,
		"UPDATE saved_cards SET last_four = '4321'":                  true,
	} {
		assert.Equal(t, stamped(sql), want, "%s, where updates without a new value are skipped: changed_in was set", sql)
	}
	_, err := db.Exec(t.Context(), "DELETE FROM stores")
	assert.That(t, err != nil, "a store with subscriptions was deleted")
	change(t, db, "TRUNCATE subscriptions")
	wantCounts(t, db, map[string]int{"SELECT id FROM deleted_subscriptions": 9001})
	change(t, db, "DELETE FROM stores")
}

// Whatever changed without triggers, figures and histories are those of the rows again.
func TestDataPage_RepairsWhatTriggersMissed(t *testing.T) {
	t.Parallel()
	url, page := ephemeral.Migrated(t), dataPage(t)
	db, source := writer(t, url), patientSource(t, url)
	for _, section := range []string{"A new store", "A product with two plans", "A customer subscribes"} {
		change(t, db, codeUnder(t, page, section, "sql")[0])
	}
	change(t, db, `CREATE TABLE more AS TABLE subscriptions; UPDATE more SET id = 1, saved_card_id = NULL;
		INSERT INTO subscriptions SELECT (jsonb_populate_record(more, jsonb_build_object('id', i))).* FROM more, generate_series(1, 9) i`)
	change(t, db, `BEGIN; ALTER TABLE subscriptions DISABLE TRIGGER ALL;
		UPDATE subscriptions SET price_amount = 1000 WHERE id IN (1, 2); UPDATE subscriptions SET saved_card_id = NULL WHERE id = 9001;
		DELETE FROM subscriptions WHERE id IN (3, 4); UPDATE subscriptions SET id = 33 WHERE id = 5;
		INSERT INTO subscriptions SELECT (jsonb_populate_record(more, '{"id": 10, "status": "expired", "changed_in": "3"}')).* FROM more;
		ALTER TABLE subscriptions ENABLE TRIGGER ALL; COMMIT;
		UPDATE subscriptions SET current_period_end = '2030-01-01' WHERE id IN (2, 10)`) // without a new price
	repair := strings.Split(codeUnder(t, page, "What turns triggers off", "sql")[0], ";")
	for range 2 { // the second one records nothing
		for _, sql := range repair {
			change(t, db, sql)
		}
		movements, err := source.Movements(t.Context(), 7)
		assert.NoError(t, err)
		metrics := assert.Must(figures.Measure(movements, time.Now()))(t)
		last := metrics.Series[0].Months[len(metrics.Series[0].Months)-1]
		assert.Equal(t, last.Subscriptions, int64(count(t, db, "SELECT count(*) FROM subscriptions WHERE status = 'active'")), "subscriptions")
		assert.Equal(t, int(last.MRR), count(t, db, "SELECT sum(price_amount)::int FROM subscriptions WHERE status = 'active'"), "MRR")
		wantCounts(t, db, map[string]int{
			"SELECT count(*) FROM deleted_subscriptions WHERE id IN (3, 4, 5)":                                                         3,
			"SELECT count(*) FROM subscription_states WHERE subscription_id IN (3, 4, 5) AND (status IS NULL) = (card_scheme IS NULL)": 3,
			"SELECT count(*) FROM subscription_states WHERE subscription_id = 2":                                                       2,
			"SELECT count(*) FROM subscription_states WHERE subscription_id IN (10, 33) AND first":                                     2,
			"SELECT count(*) FROM subscription_states WHERE subscription_id = 9001 AND card_scheme = ''":                               1,
		})
	}
}

// Of two subscriptions that are inserted, the import is not new.
func TestDataPage_ImportsWhatExistedBefore(t *testing.T) {
	t.Parallel()
	url, page := ephemeral.Migrated(t), dataPage(t)
	db := writer(t, url)
	for _, section := range []string{"A new store", "A product with two plans", "A customer subscribes", "Importing subscriptions"} {
		change(t, db, codeUnder(t, page, section, "sql")[0])
	}
	metrics := assert.Must(figures.Measure(assert.Must(patientSource(t, url).Movements(t.Context(), 7))(t), time.Now()))(t)
	months := metrics.Series[0].Months
	assert.Equal(t, months[len(months)-1].Moves, figures.Moves{figures.New: {Amount: 4900, Subscriptions: 1}, figures.Imported: {Amount: 4083, Subscriptions: 1}}, "moves")
	wantCounts(t, db, map[string]int{"SELECT id FROM subscriptions WHERE imported": 9000})
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

// catalogFiles are the files of docs/data.md: its products, and what the page does not show.
func catalogFiles(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"products.csv":      codeUnder(t, dataPage(t), "Loading a catalog", "csv")[0] + "\n",
		"plans.csv":         "id,product_id,duration,price\n401,40,monthly,4900\n402,40,annually,49000\n",
		"fields.csv":        "product_id,name,required,position\n41,Region,true,0\n41,Name,,1\n",
		"field_options.csv": "product_id,field,code,name,price,position\n41,Region,sa,السعودية,,0\n41,Region,ae,UAE,500,1\n",
	}
}

// loadCatalog runs the command of docs/data.md beside the files, and returns what psql prints.
func loadCatalog(t *testing.T, url string, files map[string]string) (string, error) {
	t.Helper()
	dir, page := t.TempDir(), dataPage(t)
	command := codeUnder(t, page, "Loading a catalog", "sh")[0]
	files["catalog.sql"] = source(t, "deploy/postgres/catalog.sql")
	for name, text := range files {
		assert.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	psql := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(command, "postgres://localhost/commerce", "'"+url+"'", 1))
	psql.Dir = dir
	printed, err := psql.CombinedOutput()
	return string(printed), err
}

func oasis(t *testing.T) (string, *pgxpool.Pool) {
	t.Helper()
	url := ephemeral.Migrated(t)
	db := writer(t, url)
	change(t, db, codeUnder(t, dataPage(t), "A new store", "sql")[0])
	return url, db
}

// A catalog is loaded twice, with a sale and changes in between.
func TestDataPage_LoadsACatalog(t *testing.T) {
	t.Parallel()
	url, db := oasis(t)
	files := catalogFiles(t)
	more := map[string]*strings.Builder{"products.csv": {}, "plans.csv": {}, "fields.csv": {}}
	for i := range 50_000 {
		fmt.Fprintf(more["products.csv"], "%d,Product %[1]d,,p%[1]d,digital,100,100,\n", 1000+i)
		fmt.Fprintf(more["plans.csv"], "%d,%[1]d,monthly,100\n", 1000+i)
		fmt.Fprintf(more["fields.csv"], "%d,Email,true,0\n", 1000+i)
	}
	for name, rows := range more {
		files[name] += rows.String()
	}
	load := func() {
		t.Helper()
		printed, err := loadCatalog(t, url, files)
		assert.Require(t, err == nil && printed == "", "%v: %s", err, printed)
	}
	load()
	change(t, db, "UPDATE products SET stock = stock - 2 WHERE id = 41")
	written := count(t, db, "SELECT max(xmin::text::bigint) FROM products")
	load()
	assert.Equal(t, count(t, db, "SELECT max(xmin::text::bigint) FROM products"), written,
		"rows that do not differ were written again")
	files["products.csv"] = strings.Replace(files["products.csv"], "2000,2500,5", "1500,2500,5", 1)
	files["fields.csv"] = strings.Replace(files["fields.csv"], "true,0\n41,Name,,1\n", "false,1\n41,Color,,0\n", 1)
	load()
	wantCounts(t, db, map[string]int{
		"SELECT count(*) FROM products":                             50_002,
		"SELECT count(*) FROM plans":                                50_002,
		"SELECT count(*) FROM fields":                               50_002,
		"SELECT count(*) FROM field_options":                        2,
		"SELECT price FROM products WHERE id = 41":                  1500,
		"SELECT stock FROM products WHERE id = 41":                  3,
		"SELECT position FROM fields WHERE name = 'Region'":         1,
		"SELECT count(*) FROM fields WHERE name = 'Name'":           0,
		"SELECT count(*) FROM products WHERE names->>'en' = 'Club'": 1,
	})
}

// The table of the page, and every other kind of fault.
func TestDataPage_ListsTheFaultsOfACatalogAndWritesNothing(t *testing.T) {
	t.Parallel()
	url, db := oasis(t)
	load := func(name, text string) string {
		t.Helper()
		files := catalogFiles(t)
		files[name] += text
		printed, err := loadCatalog(t, url, files)
		assert.That(t, err != nil, "%q was accepted", text)
		return printed
	}
	files := catalogFiles(t)
	files["plans.csv"] = "id,product_id,duration,price\n401,40,monthly,-1\n402,49,weekly,49000\n"
	printed, _ := loadCatalog(t, url, files)
	assert.Equal(t, strings.Split(printed, "\n(3 rows)")[0], codeUnder(t, dataPage(t), "Loading a catalog", "text")[0],
		"-page +printed")
	for _, c := range []struct{ file, text, want string }{
		{"products.csv", "41,P,,p,digital,1,1,\n", "|    4 | id "},
		{"products.csv", "42,,,p,digital,1,1,\n", "|    4 | name "},
		{"products.csv", `42,P,"{""xx"": ""P""}",p,digital,1,1,` + "\n", "|    4 | names "},
		{"products.csv", "42,P,,p,digital,2,-1,\n", "|    4 | original_price "},
		{"products.csv", "9007199254740992,P,,p,digital,1,1,\n", "product id is a safe integer"},
		{"products.csv", "42,P,,p,digital,1,1,many\n", "line 4, column stock"},
		{"products.csv", "42,P\n", "line 4: "},
		{"fields.csv", "41,Size,,0\n", "|    4 | product_id, position "},
		{"fields.csv", "49,Size,,0\n", "is no product"},
		{"fields.csv", "41,1,,2\n", "field name is no position"},
		{"field_options.csv", "41,Size,s,Small,,0\n", "(store_id, product_id, field)=(7, 41, Size) is not present"},
	} {
		printed := load(c.file, c.text)
		assert.That(t, strings.Contains(printed, c.want), "%s with %q prints %s, want %q", c.file, c.text, printed, c.want)
	}
	wantCounts(t, db, map[string]int{"SELECT count(*) FROM products": 0})
	assert.Must(loadCatalog(t, url, catalogFiles(t)))(t)
	printed = load("plans.csv", "402,41,annually,49000\n")
	assert.That(t, strings.Contains(printed, "is not the product of this plan"), "a plan that moves prints %s", printed)
}
