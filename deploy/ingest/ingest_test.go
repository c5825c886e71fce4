package ingest_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"commerce/deploy/ephemeral"
	"commerce/deploy/ingest"
)

func dial(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

// aStore returns the URL of a database with store 1, which has no products.
func aStore(t *testing.T) string {
	t.Helper()
	url := ephemeral.Migrated(t)
	exec(t, url, "INSERT INTO stores (id, name, currency) VALUES (1, 'Shop', 'SAR')")
	return url
}

func exec(t *testing.T, url, sql string) {
	t.Helper()
	if _, err := dial(t, url).Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// load imports files of both kinds, "" for none, to store 1.
func load(t *testing.T, url, products, subscriptions string) (map[string]int64, error) {
	t.Helper()
	var files []ingest.File
	if products != "" {
		files = append(files, ingest.Products("p", strings.NewReader(products)))
	}
	if subscriptions != "" {
		files = append(files, ingest.Subscriptions("s", strings.NewReader(subscriptions)))
	}
	conn := dial(t, url)
	counts, err := ingest.Import(t.Context(), conn, 1, files, ingest.Progress{})
	if closed := conn.Close(t.Context()); closed != nil { // its lock would make the next import wait
		t.Error(closed)
	}
	written := map[string]int64{}
	for _, c := range counts {
		if c.Rows > 0 {
			written[c.Table] = c.Rows
		}
	}
	return written, err
}

// faultsOf returns the faults of an import that must fail.
func faultsOf(t *testing.T, err error) (faults []string) {
	t.Helper()
	var all *ingest.Faults
	if !errors.As(err, &all) {
		t.Fatalf("got %v, want faults", err)
	}
	for _, f := range all.First {
		faults = append(faults, f.String())
	}
	return faults
}

const (
	aClub = `{"id":2,"name":"Club","slug":"club","type":"subscription","price":0,"original_price":0,"plans":[` +
		`{"id":21,"duration":"monthly","price":4900},{"id":22,"duration":"annually","price":49000,"label":"Year","labels":{"ar":"سنة"}}]}` + "\n"
	aBook = `{"id":1,"name":"Book","names":{"ar":"كتاب"},"slug":"book","type":"digital","active":false,"price":500,"original_price":600,` +
		`"stock":9,"min_quantity":2,"max_quantity":8,"step":2,"max_per_cart":8,"tax_ppm":0,"image_url":"https://x/y","image_alt":"A \\ \t\n\r book",` +
		`"fields":[{"name":"Region","required":true,"options":[{"code":"sa","name":"Saudi Arabia"},{"code":"us","name":"US","names":{"ar":"أمريكا"},"price":100}]},{"name":"Note"}]}` + "\n"
	aSubscription = `{"id":100,"status":"active","starts_at":"2026-01-01T00:00:00Z","ends_at":"2026-02-01T00:00:00Z",` +
		`"current_period_start":"2026-01-01T00:00:00Z","current_period_end":"2026-02-01T03:00:00.123456789+03:00","duration":"monthly","order_id":7,` +
		`"price_amount":4900,"currency":"SAR","product_id":2,"variant_id":21,"metadata":{"a":"b\\c\n"},` +
		`"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z",` +
		`"customer":{"id":5,"email":"Sara@example.com","phone":"0501112222","calling_code":"966"},"card":{"last_four":"4242","scheme":"visa"}}` + "\n"
)

func TestImport_WritesBothFilesOnce(t *testing.T) {
	t.Parallel()
	url := aStore(t)
	want := map[string]int64{
		"products": 2, "plans": 2, "fields": 2, "field_options": 2, "customers": 1, "saved_cards": 1, "subscriptions": 1,
	}
	for range 2 {
		written, err := load(t, url, aClub+aBook, aSubscription)
		if err != nil {
			t.Fatal(err, faultsOf(t, err))
		}
		if diff := cmp.Diff(want, written); diff != "" {
			t.Errorf("rows written (-want +got):\n%s", diff)
		}
		want = map[string]int64{}
	}
}

// A card without an ID is the customer's card with the same digits and scheme, or a new one.
func TestImport_FindsOrMakesCards(t *testing.T) {
	t.Parallel()
	url := aStore(t)
	exec(t, url, `INSERT INTO customers (store_id, id) VALUES (1, 5), (1, 6);
		INSERT INTO saved_cards (store_id, id, customer_id, last_four, scheme) VALUES (1, 30, 6, '4242', 'visa'), (1, 31, 5, '4242', 'visa')`)
	file := aSubscription +
		edit(t, aSubscription, `"id":100`, `"id":101`, "4242", "1111") +
		edit(t, aSubscription, `"id":100`, `"id":102`, "4242", "1111") +
		edit(t, aSubscription, `"id":100`, `"id":103`, `"last_four":"4242"`, `"id":40,"last_four":"2222"`) +
		edit(t, aSubscription, `"id":100`, `"id":104`, `,"card":{"last_four":"4242","scheme":"visa"}`, "")
	for range 2 {
		if _, err := load(t, url, aClub, file); err != nil {
			t.Fatal(err, faultsOf(t, err))
		}
	}
	rows, err := dial(t, url).Query(t.Context(), "SELECT coalesce(saved_card_id, 0) FROM subscriptions ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if diff := cmp.Diff([]int64{31, 1041, 1041, 40, 0}, got); err != nil || diff != "" {
		t.Errorf("%v, cards of the subscriptions (-want +got):\n%s", err, diff)
	}
}

// Fields may swap places, and go. A plan that the line does not have stays.
func TestImport_ReplacesFields(t *testing.T) {
	t.Parallel()
	url := aStore(t)
	plan := edit(t, aBook, `"fields"`, `"plans":[{"id":11,"duration":"monthly","price":1}],"fields"`)
	for _, file := range []string{
		plan,
		edit(t, aBook, `{"name":"Region"`, `{"name":"Note"},{"name":"Region"`, `,{"name":"Note"}]}`, "]}"),
		edit(t, aBook, `{"name":"Note"}`, `{"name":"Size"}`),
	} {
		if _, err := load(t, url, file, ""); err != nil {
			t.Fatal(err, faultsOf(t, err))
		}
	}
	var fields string
	var plans int
	err := dial(t, url).QueryRow(t.Context(), "SELECT string_agg(name, ' ' ORDER BY position), (SELECT count(*) FROM plans) FROM fields").Scan(&fields, &plans)
	if err != nil || fields != "Region Size" || plans != 1 {
		t.Errorf("%v: fields %s, %d plans, want Region Size, 1 plan", err, fields, plans)
	}
}

func TestImport_ConcurrentOnesTakeTurns(t *testing.T) {
	t.Parallel()
	url := aStore(t)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			line := edit(t, aSubscription, "4242", []string{"0000", "1111", "2222", "3333"}[i])
			if _, err := load(t, url, aClub+aBook, line); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	wantRows(t, url, 2, 2, 1, 4, 1)
}

// The first change of a subscription in a database, or after a promotion, records the timeline.
// Others that must record it too would wait for the import.
func TestImport_LetsOthersRecordTheTimeline(t *testing.T) {
	t.Parallel()
	url := aStore(t)
	if _, err := load(t, url, aClub, ""); err != nil {
		t.Fatal(err)
	}
	other, conn := dial(t, url), dial(t, url)
	files := []ingest.File{ingest.Subscriptions("s", strings.NewReader(aSubscription))}
	_, err := ingest.Import(t.Context(), conn, 1, files, ingest.Progress{
		Written: func(int64) {
			if _, err := other.Exec(t.Context(), "SET lock_timeout = '1s'; UPDATE api_tokens SET last_used_at = now()"); err != nil {
				t.Error(err)
			}
		},
	})
	if err != nil {
		t.Error(err)
	}
}

// A change of the tables between the checks and the writing fails the whole import.
func TestImport_IsRolledBackWhenAProductGoesMeanwhile(t *testing.T) {
	t.Parallel()
	url := aStore(t)
	if _, err := load(t, url, aClub, ""); err != nil {
		t.Fatal(err)
	}
	other := dial(t, url)
	conn := dial(t, url)
	_, err := ingest.Import(t.Context(), conn, 1, []ingest.File{ingest.Subscriptions("s", strings.NewReader(aSubscription))}, ingest.Progress{
		Writing: func(int64) {
			if _, err := other.Exec(t.Context(), "DELETE FROM products"); err != nil {
				t.Error(err)
			}
		},
	})
	if err == nil || !strings.Contains(err.Error(), "write subscriptions: ") {
		t.Errorf("got %v, want a failed write", err)
	}
	wantRows(t, url, 0, 0, 0, 0, 0)
}
