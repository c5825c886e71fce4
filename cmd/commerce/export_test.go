package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/cmd/internal/cli"
	"commerce/deploy/ephemeral"
)

// threePages gives store 1 three pages of changes, with texts that are hard to cut.
const threePages = `
INSERT INTO subscriptions (store_id, id, customer_id, calling_code, status, external_customer_id, starts_at, ends_at,
		current_period_start, current_period_end, duration, order_id, price_amount, currency, product_id, variant_id, metadata)
	SELECT 1, 100000 + i, 1001, '966', 'active', 'عميل "' || i || E'"\r\nnext,\nrow,', now(), now(), now(),
		now() + interval '30 days', 'monthly', i, 2000, 'SAR', 4, 41, '{"ملاحظة": "a,b\n\"c\""}'
	FROM generate_series(1, 2200) i`

func bigStore(t *testing.T) (url string, db *pgxpool.Pool) {
	t.Helper()
	url = seeded(t)
	db = writer(t, url)
	change(t, db, threePages)
	return url, db
}

// exported runs an export of store 1 that must succeed, and returns its output.
func exported(t *testing.T, url string, args ...string) string {
	t.Helper()
	return onDatabase(t, url, append([]string{"subscriptions", "export", "--store", "1"}, args...)...)
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// cursors are those of all next lines. They differ between exports of the same data, since
// they have a position in the server's log.
var cursors = regexp.MustCompile(`(?m)^(next,|\{"next":")([A-Za-z0-9_-]+)`)

func withoutCursors(export string) string { return cursors.ReplaceAllString(export, "$1") }

func lastCursor(export string) string {
	all := cursors.FindAllStringSubmatch(export, -1)
	return all[len(all)-1][2]
}

// An export that was cut at any byte and is then repeated is the same as one without a cut.
func TestExport_ContinuesAFileThatWasCutAnywhere(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	url, db := bigStore(t)
	ephemeral.Settle(t, db)
	for _, format := range []string{"ndjson", "csv"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "export")
			export := func() string {
				t.Helper()
				exported(t, url, "--output", file, "--format", format)
				return read(t, file)
			}
			whole := export()
			if n := len(cursors.FindAllString(whole, -1)); n != 3 {
				t.Fatalf("%d pages, want 3", n)
			}
			if again := export(); again != whole {
				t.Errorf("repeated without changes, the file has %d bytes instead of %d", len(again), len(whole))
			}
			for name, at := range cuts(whole) {
				write(t, file, whole[:at])
				if diff := cmp.Diff(withoutCursors(whole), withoutCursors(export())); diff != "" {
					t.Errorf("cut %s, at %d (-whole +continued):\n%.2000s", name, at, diff)
				}
			}
		})
	}
}

// cuts returns places to cut an export: of every kind, and random ones.
func cuts(export string) map[string]int {
	pages := cursors.FindAllStringIndex(export, -1)
	first, second := pages[0], pages[1]
	text := first[1] + strings.Index(export[first[1]:], "عميل")
	at := map[string]int{
		"everything":                    0,
		"in the first line":             5,
		"after the first line":          strings.Index(export, "\n") + 1,
		"in the first next line":        first[1] - 3,
		"before the first line break":   first[1],
		"after the first page":          first[1] + strings.Index(export[first[1]:], "\n") + 1,
		"in a character":                text + 1,
		"in a later next line":          second[0] + 3,
		"in a later cursor":             second[1] - 3,
		"only the last line break":      len(export) - 1,
		"half of the export":            len(export) / 2,
		"after a line in a later page":  text + strings.Index(export[text:], "\nrow") + 1,
		"in the last line of the whole": len(export) - 10,
	}
	for i := range 6 {
		at[fmt.Sprint("at random ", i)] = rand.IntN(len(export))
	}
	if utf8.ValidString(export[:at["in a character"]]) {
		panic("this is not in a character")
	}
	return at
}

// A repeated export adds what the stream after its last cursor has.
func TestExport_AddsWhatHasChangedSince(t *testing.T) {
	t.Parallel()
	url, db := bigStore(t)
	ephemeral.Settle(t, db)
	for _, format := range []string{"ndjson", "csv"} {
		file := filepath.Join(t.TempDir(), "export")
		exported(t, url, "--output", file, "--format", format)
		whole := read(t, file)
		change(t, db, "UPDATE subscriptions SET order_id = order_id + 1 WHERE store_id = 1 AND id > 102100")
		change(t, db, "DELETE FROM subscriptions WHERE store_id = 1 AND id = (SELECT max(id) FROM subscriptions WHERE store_id = 1)")
		ephemeral.Settle(t, db)
		if says := exported(t, url, "--output", file, "--format", format); !strings.Contains(says, " changes to "+file) {
			t.Errorf("printed %q", says)
		}
		since := exported(t, url, "--after", lastCursor(whole), "--format", format)
		if format == "csv" {
			_, since, _ = strings.Cut(since, "\n") // its header
		}
		if !strings.Contains(since, "deleted") {
			t.Errorf("%s: the deletion is not in %s", format, since)
		}
		added, ok := strings.CutPrefix(read(t, file), whole)
		if diff := cmp.Diff(withoutCursors(since), withoutCursors(added)); diff != "" || !ok {
			t.Errorf("%s: kept: %v, added (-stream +file):\n%s", format, ok, diff)
		}
	}
}

func TestExport_WritesToStandardOutput(t *testing.T) {
	t.Parallel()
	url, db := bigStore(t)
	ephemeral.Settle(t, db)
	file := filepath.Join(t.TempDir(), "export")
	exported(t, url, "--output", file, "--language", "ar")
	for _, output := range [][]string{nil, {"--output", "-"}} {
		args := append([]string{"subscriptions", "export", "--store=1", "--language=ar"}, output...)
		got := ended(t, program(t, []string{"DATABASE_URL=" + url}, args...))
		if got.status != 0 || got.errors != "" {
			t.Errorf("%v: status %d, %q", output, got.status, got.errors)
		}
		if diff := cmp.Diff(withoutCursors(read(t, file)), withoutCursors(got.out)); diff != "" {
			t.Errorf("%v (-file +standard output):\n%.2000s", output, diff)
		}
	}
}

// interrupting is a standard output that interrupts the command when a page arrives.
type interrupting struct {
	bytes.Buffer
	interrupt context.CancelFunc
}

func (i *interrupting) Write(page []byte) (int, error) {
	i.interrupt()
	return i.Buffer.Write(page)
}

func TestExport_EndsWithThePageWhenItIsInterrupted(t *testing.T) {
	t.Parallel()
	url, db := bigStore(t)
	ephemeral.Settle(t, db)
	ctx, interrupt := context.WithCancel(t.Context())
	out := &interrupting{interrupt: interrupt}
	c := exportCommand{Database: databaseSettings{URL: url}, Store: 1, Format: "ndjson"}
	err := c.Run(ctx, cli.NewOutput(out, &bytes.Buffer{}))
	cut := out.String()
	if n := len(cursors.FindAllString(cut, -1)); n != 1 || !strings.HasSuffix(cut, "\"}\n") {
		t.Fatalf("%d pages, the last %q; want one", n, cut[len(cut)-10:])
	}
	if want := "interrupted: to go on, add --after " + lastCursor(cut); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	whole := exported(t, url)
	if rest := exported(t, url, "--after", lastCursor(cut)); withoutCursors(cut+rest) != withoutCursors(whole) {
		t.Errorf("%d bytes and %d after the cursor are not the %d of the whole", len(cut), len(rest), len(whole))
	}
}

func TestExport_RefusesAndKeepsAFileThatItCannotContinue(t *testing.T) {
	t.Parallel()
	url := seeded(t)
	for name, content := range map[string]string{
		"is not an export of subscriptions":    "my notes\n",
		"is an export in another format":       exported(t, url, "--format", "csv"),
		"is an export of another store":        onDatabase(t, url, "subscriptions", "export", "--store", "2"),
		"no longer known, .* with a new file$": exported(t, seeded(t)), // of another database
	} {
		file := filepath.Join(t.TempDir(), "export")
		write(t, file, content)
		got := ended(t, program(t, []string{"DATABASE_URL=" + url}, "subscriptions", "export", "--store=1", "--output", file))
		if got.status == 0 || got.out != "" || !regexp.MustCompile("(?m)"+name).MatchString(got.errors) {
			t.Errorf("%s: %+v", name, got)
		}
		if read(t, file) != content {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

func TestExport_StartsWithAnEmptyFile(t *testing.T) {
	t.Parallel()
	url := seeded(t)
	ephemeral.Settle(t, writer(t, url))
	file := filepath.Join(t.TempDir(), "export")
	write(t, file, "")
	exported(t, url, "--output", file)
	if n := strings.Count(read(t, file), `{"subscription":`); n != 48 {
		t.Errorf("%d subscriptions, want 48", n)
	}
}

func TestExport_RefusesAFileThatAnotherExportWrites(t *testing.T) {
	t.Parallel()
	url := seeded(t)
	file := filepath.Join(t.TempDir(), "export")
	lock := flock.New(file)
	if ok, err := lock.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	defer lock.Close()
	got := ended(t, program(t, []string{"DATABASE_URL=" + url}, "subscriptions", "export", "--store=1", "--output", file))
	if got.status != 2 || !strings.Contains(got.errors, "in use by another export") {
		t.Errorf("%+v", got)
	}
}

func TestExport_NamesAWrongArgument(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	for call, want := range map[string]string{
		"":                                  "--store: is required",
		"--store=0":                         "--store: must be",
		"--store=99":                        "--store: there is no store 99",
		"--store=1 --format=xml":            `--format: "xml" is not one of`,
		"--store=1 --after=x":               "--after: is not a cursor of store 1",
		"--store=1 --language=fr":           `--language: "fr" is not one of`,
		"--store=1 --output=" + os.DevNull:  "--output: " + os.DevNull + " is not a file",
		"--store=1 --output=/missing/dir/x": "--output: open /missing/dir/x",
	} {
		if strings.Contains(call, "--output") {
			change(t, writer(t, url), "INSERT INTO stores (id, name, currency, language) VALUES (1, 'x', 'SAR', 'en') ON CONFLICT DO NOTHING")
		}
		args := append([]string{"subscriptions", "export"}, strings.Fields(call)...)
		got := ended(t, program(t, []string{"DATABASE_URL=" + url}, args...))
		if got.status != 2 || got.out != "" || strings.Count(got.errors, "\n") != 1 || !strings.Contains(got.errors, want) {
			t.Errorf("%q: %+v, want 2 and %q", call, got, want)
		}
	}
}

// A later cursor of the file decides, not the one that the export began with.
func TestExport_CanBeginAfterACursor(t *testing.T) {
	t.Parallel()
	url := seeded(t)
	db := writer(t, url)
	ephemeral.Settle(t, db)
	after := lastCursor(exported(t, url))
	file := filepath.Join(t.TempDir(), "export")
	for id := 5001; id <= 5002; id++ {
		change(t, db, fmt.Sprintf("UPDATE subscriptions SET order_id = order_id + 1 WHERE store_id = 1 AND id = %d", id))
		ephemeral.Settle(t, db)
		exported(t, url, "--output", file, "--after", after)
	}
	found := regexp.MustCompile(`"subscription":\{"id":(\d+)`).FindAllStringSubmatch(read(t, file), -1)
	if len(found) != 2 || found[0][1] != "5001" || found[1][1] != "5002" {
		t.Errorf("the file has %v, want 5001 and 5002", found)
	}
}
