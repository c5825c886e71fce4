package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

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
