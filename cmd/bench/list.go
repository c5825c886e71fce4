package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
)

// benchList measures the subscription list on a million rows, of which one store
// has a tenth.
func benchList(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("list", flag.ContinueOnError)
	rows := flags.Int("rows", 1_000_000, "subscriptions")
	rounds := flags.Int("rounds", 7, "how often each request takes its turn")
	turn := flags.Duration("turn", 2*time.Second, "how long a turn is")
	database := flags.String("database", "", "a database that was filled before; it is left as it is")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b, err := newListBench(ctx, *database, *rows)
	if err != nil {
		return err
	}
	defer b.close()
	cases, err := b.cases(ctx)
	if err != nil {
		return err
	}
	results := make([]load, len(cases))
	for range *rounds {
		for i, c := range cases {
			l, err := b.turn(ctx, c, *turn)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			results[i].add(l)
		}
	}
	return report(cases, results)
}

// listBench is a filled database, the service on it and the floor beside it.
type listBench struct {
	dir     string
	db      *pgx.Conn
	drop    func() error
	service *process
	floor   *process
	token   string
}

func newListBench(ctx context.Context, database string, rows int) (b *listBench, err error) {
	b = &listBench{drop: func() error { return nil }}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return b, err
	}
	binary, err := build(ctx, b.dir)
	if err != nil {
		return b, err
	}
	if database == "" {
		if database, err = b.fill(ctx, binary, rows); err != nil {
			return b, err
		}
	}
	if b.db, err = pgx.Connect(ctx, database); err != nil {
		return b, err
	}
	settings := []string{
		"DATABASE_URL=" + database, "REDIS_URL=" + os.Getenv("TEST_REDIS_URL"),
		"JWT_SECRET=nobody signs anything in this benchmark", "TRUSTED_PROXIES=127.0.0.1",
	}
	if b.token, err = call(ctx, binary, settings, "token", "store", "--store", "1", "--name", "bench"); err != nil {
		return b, err
	}
	if b.service, err = start(ctx, settings, "/openapi.yaml", binary, "serve"); err != nil {
		return b, err
	}
	self, err := os.Executable()
	if err != nil {
		return b, err
	}
	b.floor, err = start(ctx, settings, "/", self, "floor-list")
	return b, err
}

// fill makes a database with that many subscriptions, and drops it in the end.
func (b *listBench) fill(ctx context.Context, binary string, rows int) (database string, err error) {
	server := os.Getenv("TEST_POSTGRES_URL")
	if server == "" {
		return "", errors.New("TEST_POSTGRES_URL names no Postgres: run `make bench`, or go run ./deploy/ephemeral/run -- go run ./cmd/bench")
	}
	admin, err := pgx.Connect(ctx, server)
	if err != nil {
		return "", err
	}
	defer admin.Close(ctx)
	name := "bench_" + strconv.Itoa(os.Getpid())
	if _, err := admin.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	b.drop = func() error {
		admin, err := pgx.Connect(context.WithoutCancel(ctx), server)
		if err != nil {
			return err
		}
		defer admin.Close(ctx)
		_, err = admin.Exec(context.WithoutCancel(ctx), "DROP DATABASE "+name+" WITH (FORCE)")
		return err
	}
	u, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	settings := []string{"DATABASE_URL=" + u.String()}
	if _, err := call(ctx, binary, settings, "migrate", "up"); err != nil {
		return "", err
	}
	_, err = call(ctx, binary, settings, "seed", "--subscriptions", strconv.Itoa(rows))
	return u.String(), err
}

func (b *listBench) close() {
	for _, p := range []*process{b.service, b.floor} {
		if p != nil {
			p.stop()
		}
	}
	if b.db != nil {
		_ = b.db.Close(context.Background())
	}
	if err := b.drop(); err != nil {
		fmt.Fprintln(os.Stderr, "bench: drop the database:", err)
	}
	_ = os.RemoveAll(b.dir)
}

// listCase is one request, what its CPU is measured against, and how much of that
// it may take.
type listCase struct {
	name    string
	server  *process
	request request

	against  string // another case; "" for none
	most     float64
	database bool // it is Postgres' CPU that is compared
}

func (b *listBench) cases(ctx context.Context) ([]listCase, error) {
	header := http.Header{"Authorization": {"Bearer " + b.token}}
	ask := func(query string) request { return request{b.service.url + "/subscriptions" + query, header} }
	link, err := nextPage(ctx, ask("?page=999"))
	if err != nil {
		return nil, err
	}
	var email, phone string
	err = b.db.QueryRow(ctx, `SELECT email, calling_code || national_phone FROM customers c WHERE store_id = 1 AND id > 1000000
		ORDER BY (SELECT count(*) FROM subscriptions s WHERE s.store_id = 1 AND s.customer_id = c.id) DESC LIMIT 1`).Scan(&email, &phone)
	if err != nil {
		return nil, err
	}
	ours := func(name, query, against string, most float64, database bool) listCase {
		return listCase{name, b.service, ask(query), against, most, database}
	}
	cases := []listCase{
		{name: "floor", server: b.floor, request: request{b.floor.url + "/subscriptions", http.Header{}}},
		ours("page 1", "", "floor", 1.1, false),
		{"page 1000 by link", b.service, request{link, header}, "page 1", 1.2, false},
		ours("page 1000 by number", "?page=1000", "page 1", 6, true),
		ours("by e-mail", "?customerEmail="+url.QueryEscape(email), "page 1", 0, false),
		ours("by phone", "?customerPhone="+phone, "page 1", 0, false),
		ours("by calling code", "?customerCountryCode=966", "page 1", 0, false),
	}
	return cases, nil
}

// nextPage returns the link that an answer leads on with.
func nextPage(ctx context.Context, r request) (string, error) {
	made, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return "", err
	}
	made.Header = r.header
	response, err := http.DefaultClient.Do(made)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var page struct {
		Data struct {
			Next string `json:"next_page_url"`
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&page); err != nil || page.Data.Next == "" {
		return "", fmt.Errorf("no page follows %s: %s (%v)", r.url, response.Status, err)
	}
	return page.Data.Next, nil
}

// turn loads one case and measures what it costs.
func (b *listBench) turn(ctx context.Context, c listCase, d time.Duration) (load, error) {
	if _, err := put(ctx, c.request, d/10); err != nil { // connections, caches
		return load{}, err
	}
	sessions, err := b.sessions(ctx)
	if err != nil {
		return load{}, err
	}
	server, err := cpu(c.server.cmd.Process.Pid)
	database, err2 := cpu(sessions...)
	l, err3 := put(ctx, c.request, d)
	serverThen, err4 := cpu(c.server.cmd.Process.Pid)
	databaseThen, err5 := cpu(sessions...)
	l.server, l.database = serverThen-server, databaseThen-database
	return l, errors.Join(err, err2, err3, err4, err5)
}

// sessions are the processes that serve this database.
func (b *listBench) sessions(ctx context.Context) ([]int, error) {
	rows, err := b.db.Query(ctx, "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int])
}

func report(cases []listCase, results []load) error {
	byName := map[string]*load{}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\trequests/s\tp50 ms\tp99 ms\tserver CPU s/1000\tPostgres CPU s/1000\tratio\tat most\tof\t")
	for i, c := range cases {
		l := &results[i]
		byName[c.name] = l
		ratio, most := "", ""
		if base := byName[c.against]; base != nil {
			mine, its := l.perThousand(l.server), base.perThousand(base.server)
			if c.database {
				mine, its = l.perThousand(l.database), base.perThousand(base.database)
			}
			ratio = fmt.Sprintf("%.2f", mine.Seconds()/its.Seconds())
			if c.most > 0 {
				most = strconv.FormatFloat(c.most, 'g', -1, 64)
			}
		}
		fmt.Fprintf(table, "%s\t%.0f\t%.1f\t%.1f\t%.3f\t%.3f\t%s\t%s\t%s\t\n", c.name, l.rate(),
			l.percentile(0.5).Seconds()*1000, l.percentile(0.99).Seconds()*1000,
			l.perThousand(l.server).Seconds(), l.perThousand(l.database).Seconds(), ratio, cmp.Or(most, "-"), cmp.Or(c.against, "-"))
	}
	return table.Flush()
}
