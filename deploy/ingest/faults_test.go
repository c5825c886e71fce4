package ingest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"commerce/deploy/ephemeral"
	"commerce/deploy/ingest"
)

// edit returns a line with one text replaced. It must be there.
func edit(t *testing.T, line string, replace ...string) string {
	t.Helper()
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(line, replace[i]) {
			t.Fatalf("%q is not in %s", replace[i], line)
		}
		line = strings.Replace(line, replace[i], replace[i+1], 1)
	}
	return line
}

func TestImport_NamesTheLineAndMemberOfEachFault(t *testing.T) {
	t.Parallel()
	url := aStore(t)
	exec(t, url, `
		INSERT INTO products (store_id, id, name, slug, type, price, original_price) VALUES (1, 9, 'Old', 'old', 'x', 0, 0);
		INSERT INTO plans (store_id, id, product_id, duration, price) VALUES (1, 91, 9, 'monthly', 1);
		INSERT INTO customers (store_id, id) VALUES (1, 6);
		INSERT INTO saved_cards (store_id, id, customer_id, last_four, scheme) VALUES (1, 60, 6, '0006', 'visa')`)
	club := func(replace ...string) string { return edit(t, aClub, replace...) }
	book := func(replace ...string) string { return edit(t, aBook, replace...) }
	sub := func(replace ...string) string {
		return aSubscription + edit(t, aSubscription, append(replace, `"id":100`, `"id":101`)...)
	}
	long := strings.Repeat(" ", 1<<20)
	for name, tc := range map[string]struct {
		products, subscriptions string
		want                    []string
	}{
		"no JSON":              {aClub + "x\n", "", []string{"p:2: must be a JSON object"}},
		"blank line":           {aClub + "\n" + aBook, "", []string{"p:2: is blank; each line must have an object"}},
		"cut line":             {aClub[:50], "", []string{"p:1: is not valid JSON: the line ends too early"}},
		"two objects":          {`{"id":1} {}`, "", []string{"p:1: is not valid JSON: there is more than one object on the line"}},
		"long line":            {aClub + "{" + long + "}\n" + "[]", "", []string{"p:2: has more than 1 MiB", "p:3: must be a JSON object"}},
		"invalid UTF-8":        {club("Club", "\xff"), "", []string{"p:1: name: is not valid JSON: invalid UTF-8"}},
		"member twice":         {club(`"id":2`, `"id":2,"id":3`), "", []string{"p:1: id: is there twice"}},
		"part's member twice":  {club(`"id":22`, `"id":22,"id":3`), "", []string{"p:1: plans[1].id: is there twice"}},
		"unknown member":       {club(`"slug"`, `"slag"`), "", []string{"p:1: slag: is not a known member"}},
		"unprintable member":   {club(`"slug"`, `"\u001b[2J"`), "", []string{`p:1: "\x1b[2J": is not a known member`}},
		"long member":          {club(`"slug"`, `"`+strings.Repeat("a", 5000)+`"`), "", []string{"p:1: " + strings.Repeat("a", 100) + "…: is not a known member"}},
		"the store":            {club(`"id":2`, `"store_id":1,"id":2`), "", []string{"p:1: store_id: is not a known member"}},
		"unknown in part":      {club(`"id":22`, `"product_id":2,"id":22`), "", []string{"p:1: plans[1].product_id: is not a known member"}},
		"two wrong types":      {club(`"price":0`, `"price":"0"`, `"Club"`, `5`), "", []string{"p:1: name: must be a text", "p:1: price: must be a number"}},
		"fraction":             {club(`"price":0`, `"price":0.5`), "", []string{"p:1: price: must be a whole number in digits"}},
		"more than 64 bits":    {club(`"price":0`, `"price":9223372036854775808`), "", []string{"p:1: price: must be a number of at most 64 bits"}},
		"text for a boolean":   {book(`"active":false`, `"active":"no"`), "", []string{"p:1: active: must be true or false"}},
		"U+0000":               {club("Club", `\u0000`), "", []string{"p:1: name: must not contain U+0000"}},
		"object for a list":    {`{"plans":{},"fields":[1]}`, "", []string{"p:1: plans: must be a list of objects", "p:1: fields[0]: must be an object"}},
		"null":                 {club(`"Club"`, "null"), "", []string{"p:1: name: is required"}},
		"missing":              {club(`"slug":"club",`, "", `"duration":"monthly",`, ""), "", []string{"p:1: slug: is required", "p:1: plans[0].duration: is required"}},
		"check of a product":   {aBook + club(`"original_price":0`, `"original_price":-1`), "", []string{"p:2: original_price: must be from price to 1000000000000"}},
		"check of a plan":      {club("annually", "weekly"), "", []string{"p:1: plans[1].duration: must be monthly, quarterly, semiAnnual, annually, biennial, quinquennial or decennial"}},
		"check of an option":   {book(`"us"`, `""`), "", []string{"p:1: fields[0].options[1].code: must have 1 to 255 characters"}},
		"translations":         {club(`"slug"`, `"names":{"fr":"Club"},"slug"`), "", []string{"p:1: names: must be an object of texts by language, en or ar, of 1 to 500 characters"}},
		"26 fields":            {club(`"slug"`, `"fields":[`+fields(26)+`],"slug"`), "", []string{"p:1: fields[25]: a product has at most 25 fields"}},
		"product twice":        {book() + book("Book", "Bock"), "", []string{"p:2: id: 1 is also on line 1"}},
		"plan twice":           {club(`"id":22`, `"id":21`), "", []string{"p:1: plans[1].id: 21 is also on line 1"}},
		"field twice":          {book(`"Note"`, `"Region"`), "", []string{"p:1: fields[1].name: is there twice"}},
		"option twice":         {book(`"us"`, `"sa"`), "", []string{"p:1: fields[0].options[1].code: is there twice"}},
		"plan in the store":    {club(`"id":21`, `"id":91`), "", []string{"p:1: plans[0].id: 91 is a plan of product 9 in the store"}},
		"no customer":          {aClub, `{"id":1}`, []string{"s:1: customer: is required"}},
		"period":               {aClub, sub("2026-02-01T03:00:00.123456789+03:00", "2026-01-01T00:00:00Z"), []string{"s:2: current_period_end: must be after current_period_start"}},
		"status":               {aClub, sub(`"active"`, `"paused"`), []string{"s:2: paused_at: must be set while status is paused, and only then", "s:2: paused_remaining_days: must be set while status is paused, and only then"}},
		"no time":              {aClub, sub("2026-02-01T00:00:00Z", "2026-02-30T00:00:00Z"), []string{"s:2: ends_at: must be a time as in RFC 3339, such as 2026-01-31T09:30:00Z"}},
		"early time":           {aClub, sub("2026-02-01T00:00:00Z", "0001-01-01T00:00:00+01:00"), []string{"s:2: ends_at: must be in the years 1 to 9999"}},
		"unsettled updated_at": {aClub, sub(`"updated_at":"2026-01-01T00:00:00Z",`, ""), []string{"s:2: updated_at: is required"}},
		"list as metadata":     {aClub, sub(`{"a":"b\\c\n"}`, "[]"), []string{"s:2: metadata: must be an object"}},
		"metadata's number":    {aClub, sub(`"b\\c\n"`, "1e999999"), []string{"s:2: metadata: cannot be stored: value overflows numeric format"}},
		"metadata's U+0000":    {aClub, sub(`"b\\c\n"`, `"\u0000"`), []string{"s:2: metadata: cannot be stored: unsupported Unicode escape sequence"}},
		"currency's form":      {aClub, sub("SAR", "sar"), []string{"s:2: currency: must be an ISO 4217 code of three capital letters"}},
		"unknown currency":     {aClub, sub("SAR", "XYZ"), []string{"s:2: currency: XYZ is not a known currency"}},
		"customer's check":     {aClub, sub(`"966"`, `"+966"`, `"id":5`, `"id":7`), []string{"s:2: customer.calling_code: must be empty, or 1 to 4 digits without leading zeros"}},
		"card's check":         {aClub, sub("4242", "424"), []string{"s:2: card.last_four: must have 4 digits"}},
		"subscription twice":   {aClub, aSubscription + aSubscription, []string{"s:2: id: 100 is also on line 1"}},
		"two customers":        {aClub, sub("Sara@", "sara@"), []string{"s:2: customer.email: differs from line 1, which has the same id"}},
		"two cards":            {aClub, edit(t, aSubscription+edit(t, aSubscription, `"id":100`, `"id":101`, `"last_four":"4242"`, `"id":3,"last_four":"1111"`), `{"last_four"`, `{"id":3,"last_four"`), []string{"s:2: card.last_four: differs from line 1, which has the same id"}},
		"another's card":       {aClub, sub(`"last_four"`, `"id":60,"last_four"`), []string{"s:2: card.id: 60 is a card of customer 6 in the store"}},
		"no product":           {"", edit(t, aSubscription), []string{"s:1: product_id: there is no product 2 in the files or the store", "s:1: variant_id: there is no plan 21 in the files or the store"}},
		"plan of another":      {aClub, sub(`"variant_id":21`, `"variant_id":91`), []string{"s:2: variant_id: 91 is a plan of product 9"}},
		"scheduled of another": {aClub, sub(`"variant_id":21`, `"variant_id":21,"scheduled_variant_id":91`), []string{"s:2: scheduled_variant_id: 91 is a plan of product 9"}},
		"unread product":       {"[]", aSubscription, []string{"p:1: must be a JSON object"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, url, tc.products, tc.subscriptions)
			if diff := cmp.Diff(tc.want, faultsOf(t, err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	wantRows(t, url, 1, 1, 1, 1, 0)
}

func fields(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{"name":"f%d"}`, i))
	}
	return strings.Join(all, ",")
}

// wantRows compares the numbers of rows of products, plans, customers, cards and
// subscriptions.
func wantRows(t *testing.T, url string, want ...int) {
	t.Helper()
	got := make([]int, 5)
	err := dial(t, url).QueryRow(t.Context(), `SELECT (SELECT count(*) FROM products), (SELECT count(*) FROM plans),
		(SELECT count(*) FROM customers), (SELECT count(*) FROM saved_cards), (SELECT count(*) FROM subscriptions)`).
		Scan(&got[0], &got[1], &got[2], &got[3], &got[4])
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, rows of products, plans, customers, cards, subscriptions (-want +got):\n%s", err, diff)
	}
}

func TestImport_RefusesAnEmptyFile(t *testing.T) {
	t.Parallel()
	conn := dial(t, aStore(t))
	_, err := ingest.Import(t.Context(), conn, 1, []ingest.File{ingest.Products("p", strings.NewReader(""))}, ingest.Progress{})
	if diff := cmp.Diff([]string{"p:1: the file is empty"}, faultsOf(t, err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestImport_NeedsTheStore(t *testing.T) {
	t.Parallel()
	if _, err := load(t, ephemeral.Migrated(t), aClub, ""); !errors.Is(err, ingest.ErrNoStore) {
		t.Errorf("got %v, want %v", err, ingest.ErrNoStore)
	}
}

// JSON that is nested too deeply for the server's stack is a fault, or is stored.
func TestImport_SurvivesDeepMetadata(t *testing.T) {
	t.Parallel()
	deep := edit(t, aSubscription, `"b\\c\n"`, strings.Repeat("[", 9000)+strings.Repeat("]", 9000))
	if _, err := load(t, aStore(t), aClub, deep); err != nil {
		if diff := cmp.Diff([]string{"s:1: metadata: must have at most 16384 bytes"}, faultsOf(t, err)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestImport_KeepsTheFirst100FaultsAndCountsAll(t *testing.T) {
	t.Parallel()
	url := aStore(t)
	var file strings.Builder
	for i := range 12_345 {
		fmt.Fprintf(&file, `{"id":%d,"name":"P","slug":"p","type":"x","price":-1,"original_price":0}`+"\n", i+1)
	}
	_, err := load(t, url, file.String(), "")
	got := faultsOf(t, err)
	if len(got) != 100 || got[99] != "p:100: price: must be from 0 to 100000000000" || err.Error() != "12345 faults" {
		t.Errorf("%v: %d faults are listed, the last is %q", err, len(got), got[len(got)-1])
	}
	wantRows(t, url, 0, 0, 0, 0, 0)
}

// Each constraint has a sentence, so that a fault does not show SQL.
func TestFaults_HaveASentenceForEachConstraint(t *testing.T) {
	t.Parallel()
	rows, err := dial(t, ephemeral.Migrated(t)).Query(t.Context(), `
		SELECT conname FROM pg_constraint WHERE contype = 'c' AND conrelid = ANY (ARRAY['products', 'plans', 'fields',
			'field_options', 'customers', 'saved_cards', 'subscriptions']::regclass[]) ORDER BY conname`)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(names, ingest.Sentences()); diff != "" {
		t.Errorf("sentences (-constraint +sentence):\n%s", diff)
	}
}
