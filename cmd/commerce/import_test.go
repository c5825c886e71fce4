package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/cart/catalog"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions"
)

// written writes a file and returns its path.
func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// oasis returns a database with the store of docs/data.md, and the page's lines.
func oasis(t *testing.T) (url, products, subscriptions string) {
	t.Helper()
	url = ephemeral.Migrated(t)
	page := dataPage(t)
	change(t, writer(t, url), codeUnder(t, page, "A new store", "sql")[0])
	return url, codeUnder(t, page, "Lines of products", "json")[0], codeUnder(t, page, "Lines of subscriptions", "json")[0]
}

func count(t *testing.T, db *pgxpool.Pool, sql string) (n int) {
	t.Helper()
	if err := db.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// The lines of docs/data.md become what merchants and shoppers see. A repeated import
// changes nothing, a changed line changes its row.
func TestImport_ShowsWhatTheFilesHave(t *testing.T) {
	t.Parallel()
	url, products, subs := oasis(t)
	db := writer(t, url)
	args := strings.Fields(strings.NewReplacer(
		" products.ndjson", " "+written(t, "products.ndjson", products), " subscriptions.ndjson", " "+written(t, "subscriptions.ndjson", subs),
	).Replace(commandUnder(t, "docs/data.md", "Importing files")))
	if got, want := onDatabase(t, url, args...), "rows written: products 1, plans 2, fields 1, field_options 2, subscriptions 1, customers 1, saved_cards 1\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	stamp := count(t, db, "SELECT changed_in::text::int FROM subscriptions")
	if got, want := onDatabase(t, url, args...), "rows written: products 0, plans 0, fields 0, field_options 0, subscriptions 0, customers 0, saved_cards 0\n"; got != want {
		t.Errorf("printed %q again, want %q", got, want)
	}
	if again := count(t, db, "SELECT changed_in::text::int FROM subscriptions"); again != stamp {
		t.Errorf("changed_in was %d and is %d after the same import", stamp, again)
	}

	pool := ephemeral.OpenPool(t, url, connect.PostgresConfig{})
	s, err := subscriptions.NewPostgres(subscriptions.PostgresConfig{Pool: pool}).Get(t.Context(), 7, 9001, "en")
	if err != nil {
		t.Fatal(err)
	}
	want := "active, active true, expired false, 31 days, renews true, plan 401 at 4900"
	if got := seen(s, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)); got != want || s.Product.Name.Own != "Club" || string(s.Metadata) != `{"campaign": "spring"}` {
		t.Errorf("got %s of %+v, want %s", got, s, want)
	}
	sold, err := catalog.NewPostgres(pool).Products(t.Context(), 7, []int64{40})
	if err != nil || len(sold[40].Plans) != 2 || len(sold[40].Fields) != 1 || len(sold[40].Fields[0].Options) != 2 {
		t.Errorf("%v, the catalog has %+v", err, sold[40])
	}

	fewer := strings.Replace(products, `, {"code": "ae", "name": "UAE", "price": 500}`, "", 1)
	paused := strings.NewReplacer(`"active"`, `"paused", "paused_at": "2026-01-05T00:00:00Z", "paused_remaining_days": 27`, `"966"`, `"971"`).Replace(subs)
	onDatabase(t, url, "import", "--store", "7", "--products", written(t, "p", fewer), "--subscriptions", written(t, "s", paused))
	if n := count(t, db, "SELECT count(*) FROM field_options"); n != 1 {
		t.Errorf("%d options, want 1", n)
	}
	if n := count(t, db, "SELECT count(*) FROM subscriptions WHERE status = 'paused' AND calling_code = '971'"); n != 1 {
		t.Error("the subscription was not changed")
	}
	if n := count(t, db, "INSERT INTO saved_cards (store_id, customer_id, last_four, scheme) VALUES (7, 300, '1111', 'mada') RETURNING id"); n != 2 {
		t.Errorf("the next card is %d, want 2", n)
	}
}

func TestImport_WritesNothingWithAFault(t *testing.T) {
	t.Parallel()
	url, products, line := oasis(t)
	var file strings.Builder
	for i := range 12 {
		last := strings.Replace(line, `"id": 9001`, fmt.Sprintf(`"id": %d`, 1+i), 1)
		if i == 11 {
			last = strings.Replace(last, `"current_period_end": "2026-02`, `"current_period_end": "2025-02`, 1)
		}
		file.WriteString(last + "\n")
	}
	command := program(t, []string{"DATABASE_URL=" + url}, "import", "--store", "7",
		"--products", written(t, "products.ndjson", products), "--subscriptions", "subscriptions.ndjson")
	command.Dir = filepath.Dir(written(t, "subscriptions.ndjson", file.String()))
	got := ended(t, command)
	if want := codeUnder(t, dataPage(t), "Importing files", "text")[0]; got.status != 1 || got.out != "" || got.errors != want+"\ncommerce: 1 fault; nothing was written\n" {
		t.Errorf("%+v, want status 1 and %q", got, want)
	}
	if n := count(t, writer(t, url), "SELECT (SELECT count(*) FROM products) + (SELECT count(*) FROM customers)"); n != 0 {
		t.Errorf("%d rows were written", n)
	}
}

func TestImport_ListsTheFirst100Faults(t *testing.T) {
	t.Parallel()
	url, _, _ := oasis(t)
	got := ended(t, program(t, []string{"DATABASE_URL=" + url}, "import", "--store", "7", "--products", written(t, "p", strings.Repeat("[]\n", 123))))
	want := "p:100: must be a JSON object\nand 23 more\nreferences between lines were not checked, because some lines cannot be read\n" +
		"commerce: 123 faults; nothing was written\n"
	if got.status != 1 || !strings.HasSuffix(got.errors, want) || strings.Count(got.errors, "must be a JSON object") != 100 {
		t.Errorf("%+v, want status 1 and %q", got, want)
	}
}

func TestImport_RefusesWrongSettings(t *testing.T) {
	t.Parallel()
	url, products, _ := oasis(t)
	file := written(t, "p", products)
	for args, says := range map[string]string{
		"--products " + file:                 "--store: is required",
		"--store 0 --products " + file:       "--store: must be at least 1",
		"--store 7":                          "--products or --subscriptions: is required",
		"--store 8 --products " + file:       "--store: there is no store 8",
		"--store 7 --products " + file + "x": "--products: open " + file + "x: no such file or directory",
	} {
		got := ended(t, program(t, []string{"DATABASE_URL=" + url}, append([]string{"import"}, strings.Fields(args)...)...))
		if got.status != 2 || !strings.HasSuffix(got.errors, "commerce: "+says+"\n") {
			t.Errorf("import %s: %+v, want status 2 and %q", args, got, says)
		}
	}
}

// An import that is killed while it writes leaves no rows and no temporary tables.
func TestImport_LeavesNothingWhenKilled(t *testing.T) {
	t.Parallel()
	url, products, subs := oasis(t)
	db := writer(t, url)
	lock, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), "LOCK TABLE saved_cards IN SHARE MODE"); err != nil {
		t.Fatal(err)
	}
	command := program(t, []string{"DATABASE_URL=" + url}, "import", "--store", "7", "--products", written(t, "p", products), "--subscriptions", written(t, "s", subs))
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	const importing = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'commerce import' AND datname = current_database()"
	until(t, func() bool {
		return count(t, db, importing+" AND wait_event_type = 'Lock' AND backend_xid IS NOT NULL") == 1
	})
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return count(t, db, importing) == 0 })
	left := []int{
		count(t, db, "SELECT count(*) FROM products"), count(t, db, "SELECT count(*) FROM customers"),
		count(t, db, "SELECT count(*) FROM subscriptions"), count(t, db, "SELECT count(*) FROM pg_class WHERE relname LIKE 'staged%'"),
	}
	if diff := cmp.Diff([]int{0, 0, 0, 0}, left); diff != "" {
		t.Errorf("products, customers, subscriptions, staged tables (-want +got):\n%s", diff)
	}
}

// until waits for a condition, for at most 15 seconds.
func until(t *testing.T, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > 15*time.Second {
			t.Fatal("the condition did not hold within 15 s")
		}
	}
}
