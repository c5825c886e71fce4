package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/jackc/pgx/v5"

	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

const (
	subscriptionsGuide = "docs/subscriptions.md"
	connectors         = "docs/connectors" // the files to which it links
)

// reader follows the guide with a service on Postgres.
type reader struct {
	terminal
	*service
}

func newReader(t *testing.T) *reader {
	t.Helper()
	s := startServe(t, ephemeral.Redis(t))
	const lent = "$(curl -s $BASE/playground/demo.json | jq -r .api_token)" // by the demo only
	dir := t.TempDir()
	assert.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(repository, connectors))))
	return &reader{terminal{dir: dir, url: s.url, replace: strings.NewReplacer(lent, "'"+s.api+"'")}, s}
}

// follow runs a script of the connectors, in the environment of the first example.
func (r *reader) follow(t *testing.T, script string) {
	t.Helper()
	r.terminal.run(t, examplesOf(t, subscriptionsGuide)[0].script+"sh "+script)
}

// listed returns what the service has, as ids and states, newest first.
func (r *reader) listed(t *testing.T) []string {
	t.Helper()
	return strings.Fields(r.terminal.run(t, examplesOf(t, subscriptionsGuide)[0].script+
		`curl -sSf "$BASE/subscriptions?per_page=100" -H "Authorization: Bearer $TOKEN" | jq -r '.data.data[] | "\(.id)\(.status)"'`))
}

// A copier is a file of the guide that keeps a copy.
type copier struct {
	run    func()
	copied func() []string // IDs and states, newest first
	number func() []string // of the copy; nil: it copies everything each time
}

// ofSQL is a copier into tables, which query reads.
func ofSQL(run func(), query func(sql string) []string) copier {
	return copier{
		run:    run,
		copied: func() []string { return query("SELECT id || (body ->> 'status') FROM subscriptions ORDER BY id DESC") },
		number: func() []string { return query("SELECT copy || '' FROM sync") },
	}
}

// script is sync.sh.
func (r *reader) script(t *testing.T) copier {
	return ofSQL(
		func() { r.follow(t, "sync.sh") },
		func(sql string) []string { return strings.Fields(r.terminal.run(t, `sqlite3 copy.db "`+sql+`"`)) },
	)
}

// sheet is sheets.gs, in Node.
func (r *reader) sheet(t *testing.T) copier {
	run := func() {
		said := r.terminal.run(t, examplesOf(t, subscriptionsGuide)[0].script+"node sheets.mjs; TOKEN=wrong node sheets.mjs")
		assert.Equal(t, said, "waits 7000 ms\nwaits 7000 ms\nThe script property TOKEN is not a valid API token of the store.\n", "printed")
	}
	const rows = `jq -r '[.rows[1:][] | select(.[0] != "")] | sort_by(-.[0])[] | "\(.[0])\(.[1])"' book.json`
	return copier{run: run, copied: func() []string { return strings.Fields(r.terminal.run(t, rows)) }}
}

// pipeline is copy.yaml. It does what Redpanda Connect does in one minute: the requests and the
// SQL are those of the file; its mappings are repeated here.
func (r *reader) pipeline(t *testing.T) copier {
	code := connector(t, "copy.yaml")
	var steps []any
	var create, cursor, url, authorization, write, goOn string
	for path, to := range map[string]any{
		"": &steps, "[0].sql_raw.init_statement": &create, "[0].sql_raw.query": &cursor,
		"[2].http.url": &url, "[2].http.headers.Authorization": &authorization, "[4].sql_raw.query": &write, "[5].sql_raw.query": &goOn,
	} {
		at := assert.Must(yaml.PathString("$.pipeline.processors[0].while.processors[0].try" + path))(t)
		assert.Succeeds(t, at.Read(strings.NewReader(code), to), "%s of copy.yaml", path)
	}
	assert.Require(t, len(steps) == 6, "%d steps", len(steps))
	db := ephemeral.OpenPool(t, ephemeral.Postgres(t), connect.PostgresConfig{Writable: true})
	assert.Must(db.Exec(t.Context(), create))(t)
	query := func(sql string) []string {
		return assert.Must(pgx.CollectRows(assert.Must(db.Query(t.Context(), sql))(t), pgx.RowTo[string]))(t)
	}
	run := func() {
		for more := true; more; {
			answer := r.ask(t, strings.ReplaceAll(url, "${! @after }", query(cursor)[0]), authorization)
			if answer.Code == "cursor_expired" {
				answer.Data = json.RawMessage(`{"data": [], "deleted": [], "has_more": true, "again": 1}`)
			}
			var page struct {
				More bool `json:"has_more"`
			}
			assert.NoError(t, json.Unmarshal(answer.Data, &page))
			assert.Must(db.Exec(t.Context(), write, string(answer.Data)))(t)
			assert.Must(db.Exec(t.Context(), goOn, page.More))(t)
			more = page.More
		}
	}
	return ofSQL(run, query)
}

type answered struct {
	Code string
	Data json.RawMessage
}

// ask gets a URL that contains the guide's variables.
func (r *reader) ask(t *testing.T, url, authorization string) (a answered) {
	t.Helper()
	printed := r.terminal.run(t, examplesOf(t, subscriptionsGuide)[0].script+fmt.Sprintf("curl -s %q -H %q", url, "Authorization: "+authorization))
	assert.NoError(t, json.Unmarshal([]byte(printed), &a))
	return a
}

func connector(t *testing.T, file string) string {
	t.Helper()
	return string(assert.Must(os.ReadFile(filepath.Join(repository, connectors, file)))(t))
}

func TestSubscriptionsGuide_CopiesFollowChangesAndStartAgain(t *testing.T) {
	slow(t)
	r := newReader(t)
	assert.NoError(t, os.CopyFS(r.terminal.dir, os.DirFS("testdata/connectors")))
	copiers := map[string]copier{"sync.sh": r.script(t), "copy.yaml": r.pipeline(t), "sheets.gs": r.sheet(t)}
	for _, step := range []struct{ name, sql string }{
		{"first copy", ""},
		{"changes", `
			UPDATE subscriptions SET status = 'expired' WHERE (store_id, id) = (1, 5001);
			DELETE FROM subscriptions WHERE (store_id, id) = (1, 5003);
			INSERT INTO subscriptions (store_id, id, customer_id, calling_code, status, starts_at, ends_at, current_period_start,
				current_period_end, duration, order_id, price_amount, currency, product_id, variant_id, external_customer_id)
			SELECT 1, 6000, 1001, '966', 'active', now(), now(), now(), '2027-01-31 10:00Z', 'monthly', 7, 2000, 'SAR', 4, 41, '=1+1'`},
		{"nothing", ""},
		{"a restored backup, in which a deletion is not known", `
			DELETE FROM subscriptions WHERE (store_id, id) = (1, 5004);
			DELETE FROM deleted_subscriptions;
			DELETE FROM subscription_timelines;
			SELECT mark_timeline()`},
	} {
		if step.sql != "" {
			r.change(t, step.sql)
		}
		for name, c := range copiers {
			c.run()
			assert.Equal(t, c.copied(), r.listed(t), "%s: %s, compared with the list", name, step.name)
		}
	}
	for name, c := range copiers {
		rows := c.copied()
		assert.That(t, len(rows) == 47 && rows[0] == "6000active", "%s: copied %q", name, rows)
		assert.That(t, c.number == nil || slices.Equal(c.number(), []string{"2"}), "%s: number of the copy: the second, after the backup", name)
	}
	printed := r.terminal.run(t, `jq -c '.triggers, (.rows[] | select(.[0] == 6000) | .[3, 9])' book.json`)
	assert.Equal(t, printed, "[\"fill\"]\n\"=1+1\"\n\"2027-01-31 10:00:00\"\n", "triggers, and cells that sheets.gs has written")
}

func TestSubscriptionsGuide_PowerQueryParses(t *testing.T) {
	slow(t)
	dir := installPackages(t, "connectors")
	assert.NoError(t, os.WriteFile(filepath.Join(dir, "subscriptions.pq"), []byte(connector(t, "subscriptions.pq")), 0o600))
	node := command(t, "node", "parse.mjs")
	node.Dir = dir
	said, err := node.CombinedOutput()
	assert.That(t, err == nil, "node parse.mjs: %v\n%s", err, said)
}

// The script for dlt names parameters and members that the call has.
func TestSubscriptionsGuide_ScriptForDltFitsTheCall(t *testing.T) {
	slow(t)
	r, code := newReader(t), connector(t, "commerce_copy.py")
	params := regexp.MustCompile(`"path": "(.+)",\n\s+"params": \{"(\w+)": (\d+), "(\w+)": after\}`).FindStringSubmatch(code)
	assert.Require(t, params != nil, "the script sends other parameters:\n%s", code)
	var page map[string]any
	assert.NoError(t, json.Unmarshal(r.ask(t, fmt.Sprintf("$BASE/%s?%s=%s", params[1], params[2], params[3]), "Bearer $TOKEN").Data, &page))
	named := regexp.MustCompile(`(?:page\["|"data\.)(\w+)"`).FindAllStringSubmatch(code, -1)
	assert.That(t, len(named) == 5, "the script names %q", named)
	for _, member := range named {
		_, exists := page[member[1]]
		assert.That(t, exists, "a page has no %s", member[1])
	}
	next := r.ask(t, fmt.Sprintf("$BASE/%s?%s=%s", params[1], params[4], page["next"]), "Bearer $TOKEN")
	assert.That(t, next.Code == "", "the next page: %s", next.Code)
}

// cutting cuts the first stream of a handler in its second page.
type cutting struct {
	http.ResponseWriter
	first bool // the first page is written
}

func (c *cutting) Write(p []byte) (int, error) {
	if !c.first {
		c.first = bytes.Contains(p, []byte(`"next":`))
		return c.ResponseWriter.Write(p)
	}
	_, _ = c.ResponseWriter.Write(p[:len(p)/2])
	c.Flush()
	panic(http.ErrAbortHandler)
}

func (c *cutting) Flush() { c.ResponseWriter.(http.Flusher).Flush() }

func TestSubscriptionsGuide_ExportGoesOnAfterACut(t *testing.T) {
	slow(t)
	r := newReader(t)
	r.change(t, `
		INSERT INTO subscriptions (store_id, id, customer_id, calling_code, status, starts_at, ends_at, current_period_start,
			current_period_end, duration, order_id, price_amount, currency, product_id, variant_id)
		SELECT 1, 10000 + i, 1001, '966', 'active', now(), now(), now(), now() + interval '1 day', 'monthly', i, 2000, 'SAR', 4, 41
		FROM generate_series(1, 2500) i`)
	streams := make(chan string, 9) // the cursors from which they began
	proxy := proxyTo(t, r.service.url)
	r.terminal.url = serveGateway(t, func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/subscriptions/changes" {
			q.Header.Del("Accept-Encoding") // so that cutting sees the cursors
			streams <- q.URL.Query().Get("after")
			if len(streams) == 1 {
				w = &cutting{ResponseWriter: w}
			}
		}
		proxy.ServeHTTP(w, q)
	})
	r.follow(t, "export.sh")
	assert.That(t, len(streams) == 2 && <-streams == "" && <-streams != "", "the second download does not go on after the first")
	printed := r.terminal.run(t, `jq -r '.subscription.id // empty' export.ndjson | sort -u | wc -l; jq -c 'keys[0]' export.ndjson | sort | uniq -c`)
	const want = "2548\n      3 \"next\"\n   2548 \"subscription\"\n"
	assert.Equal(t, strings.TrimLeft(printed, " "), want, "subscriptions and lines of the file")
	whole, err := os.ReadFile(filepath.Join(r.terminal.dir, "export.ndjson"))
	assert.That(t, err == nil && bytes.Contains(whole[bytes.LastIndexByte(whole[:len(whole)-1], '\n'):], []byte(`{"next":`)), "the file does not end with a cursor (%v)", err)
}
