package main

import (
	"context"
	"net/http"
	"slices"

	"github.com/jackc/pgx/v5"

	"commerce/cmd/bench/results"
)

// benchList measures the subscription list of a store that has a tenth of a million
// rows.
func benchList(ctx context.Context, s *stage) (results.Benchmark, error) {
	cases, err := listCases(ctx, s)
	if err != nil {
		return results.Benchmark{}, err
	}
	b, err := measure(ctx, s.options, "list", "Postgres", cases)
	b.Curves = []results.Curve{pageCurve(b)}
	return b, err
}

// listCases starts the service, the floors, and a second service with a database of its
// own. The first page of the second service follows that of the first one.
func listCases(ctx context.Context, s *stage) ([]testCase, error) {
	first, err := newListBench(ctx, s, s.binary, s.options.database)
	if err != nil {
		return nil, err
	}
	if err := first.startFloors(ctx, s); err != nil {
		return nil, err
	}
	cases, err := first.cases(ctx)
	if err != nil || s.against == "" {
		return cases, err
	}
	second, err := newListBench(ctx, s, s.against, "")
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(cases, func(c testCase) bool { return c.name == firstPage })
	return slices.Insert(cases, i+1, testCase{
		name: firstPage + " [against]", server: second.service, clients: same(second.url(), second.header()),
		compared: cpuOf(firstPage, 0),
	}), nil
}

// listBench is a database with data, the service and a floor.
type listBench struct {
	db           *pgx.Conn
	settings     []string
	service      *server
	floor        *server
	floorUsualGC *server // with Go's default collector
	token        string
	rows         int // of the store
}

// newListBench starts a service on a filled database; "" fills one.
func newListBench(ctx context.Context, s *stage, binary, database string) (*listBench, error) {
	if database == "" {
		var err error
		if database, err = s.database(ctx, binary, s.rows); err != nil {
			return nil, err
		}
	}
	b := &listBench{}
	if err := b.connect(ctx, s, database); err != nil {
		return nil, err
	}
	return b, b.serve(ctx, s, binary, database)
}

// connect connects to the database and counts the store's rows.
func (b *listBench) connect(ctx context.Context, s *stage, database string) (err error) {
	if b.db, err = pgx.Connect(ctx, database); err != nil {
		return err
	}
	s.ends = append(s.ends, func() error { return b.db.Close(context.WithoutCancel(ctx)) })
	return b.db.QueryRow(ctx, "SELECT count(*) FROM subscriptions WHERE store_id = 1").Scan(&b.rows)
}

// serve starts the service.
func (b *listBench) serve(ctx context.Context, s *stage, binary, database string) error {
	redis, err := s.redis(ctx)
	if err != nil {
		return err
	}
	b.settings = serviceSettings(database, redis)
	if b.token, err = call(ctx, binary, b.settings, "token", "store", "--store", "1", "--name", "bench"); err != nil {
		return err
	}
	service, err := s.http(ctx, b.settings, responds("/openapi.yaml"), binary, "serve")
	b.service = &server{service, b.sessions}
	return err
}

// startFloors starts the floors on the service's database.
func (b *listBench) startFloors(ctx context.Context, s *stage) error {
	floor, err := s.floor(ctx, b.settings, "floor-list")
	if err != nil {
		return err
	}
	usual, err := s.floor(ctx, b.settings, "floor-list"+withDefaultGC)
	b.floor, b.floorUsualGC = &server{floor, b.sessions}, &server{usual, b.sessions}
	return err
}

func (b *listBench) url() string { return b.service.url + "/subscriptions" }

func (b *listBench) header() http.Header {
	return http.Header{"Authorization": {"Bearer " + b.token}}
}

// firstPage is the case that other lists are compared with.
const firstPage = "page 1"

func (b *listBench) cases(ctx context.Context) ([]testCase, error) {
	floor := same(b.floor.url+"/subscriptions", http.Header{})
	usual := same(b.floorUsualGC.url+"/subscriptions", http.Header{})
	all := []testCase{
		{name: "floor-list", server: b.floor, clients: floor},
		{name: "floor-list" + withDefaultGC, server: b.floorUsualGC, clients: usual},
		b.ours(firstPage, "", results.Comparison{Cost: results.ServerCPU, Of: "floor-list", AtMost: new(0.95)},
			results.Comparison{Cost: results.CPU, Of: "floor-list"}),
	}
	pages, err := b.pages(ctx)
	if err != nil {
		return nil, err
	}
	filters, err := b.filters(ctx)
	if err != nil {
		return nil, err
	}
	poll, err := b.poll(ctx)
	return slices.Concat(all, pages, filters, []testCase{poll}), err
}

// ours is a list with a query.
func (b *listBench) ours(name, query string, compared ...results.Comparison) testCase {
	return testCase{name: name, server: b.service, clients: same(b.url()+query, b.header()), compared: compared}
}

// sessions returns the process ids of the database's other sessions.
func (b *listBench) sessions(ctx context.Context) ([]int, error) {
	rows, err := b.db.Query(ctx, "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int])
}
