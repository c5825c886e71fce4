package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/jackc/pgx/v5"
)

// benchList measures the subscription list of a store that has a tenth of a million
// rows.
func benchList(ctx context.Context, o options) (results, error) {
	s, err := newStage(o)
	if err != nil {
		return results{}, err
	}
	defer s.close()
	cases, err := listCases(ctx, s)
	if err != nil {
		return results{}, err
	}
	return measure(ctx, o, "list", cases)
}

// listCases starts the service, the floor, and a second service with a database of its
// own. The first page of the second service follows that of the first one.
func listCases(ctx context.Context, s *stage) ([]testCase, error) {
	binary, err := s.service(ctx)
	if err != nil {
		return nil, err
	}
	first, err := newListBench(ctx, s, binary, s.options.database)
	if err != nil {
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
	return slices.Insert(cases, 2, testCase{
		"page 1 [against]", second.service, same(second.url(), second.header()),
		[]comparison{{of: "floor-list", cost: serverCost}, {of: "page 1", cost: serverCost}},
	}), nil
}

// listBench is a database with data, the service and a floor.
type listBench struct {
	db      *pgx.Conn
	service *server
	floor   *server
	token   string
}

// newListBench starts a service on a filled database; "" fills one.
func newListBench(ctx context.Context, s *stage, binary, database string) (b *listBench, err error) {
	if database == "" {
		if database, err = s.database(ctx, binary, s.rows); err != nil {
			return nil, err
		}
	}
	b = &listBench{}
	if b.db, err = pgx.Connect(ctx, database); err != nil {
		return nil, err
	}
	s.ends = append(s.ends, func() error { return b.db.Close(context.WithoutCancel(ctx)) })
	redis, err := s.redis(ctx)
	if err != nil {
		return nil, err
	}
	settings := serviceSettings(database, redis)
	if b.token, err = call(ctx, binary, settings, "token", "store", "--store", "1", "--name", "bench"); err != nil {
		return nil, err
	}
	service, err := s.http(ctx, settings, "/openapi.yaml", binary, "serve")
	if err != nil {
		return nil, err
	}
	floor, err := s.floor(ctx, settings, "floor-list")
	b.service, b.floor = &server{service, b.sessions}, &server{floor, b.sessions}
	return b, err
}

func (b *listBench) url() string { return b.service.url + "/subscriptions" }

func (b *listBench) header() http.Header {
	return http.Header{"Authorization": {"Bearer " + b.token}}
}

func (b *listBench) cases(ctx context.Context) ([]testCase, error) {
	header, list := b.header(), b.url()
	link, err := nextPage(ctx, list+"?page=999", header)
	if err != nil {
		return nil, err
	}
	var email, phone string
	err = b.db.QueryRow(ctx, `SELECT email, calling_code || national_phone FROM customers c WHERE store_id = 1 AND id > 1000000
		ORDER BY (SELECT count(*) FROM subscriptions s WHERE s.store_id = 1 AND s.customer_id = c.id) DESC LIMIT 1`).Scan(&email, &phone)
	if err != nil {
		return nil, err
	}
	ours := func(name, rawURL string, by comparison) testCase {
		return testCase{name, b.service, same(rawURL, header), []comparison{by}}
	}
	page1 := comparison{of: "page 1", cost: serverCost}
	return []testCase{
		{name: "floor-list", server: b.floor, clients: same(b.floor.url+"/subscriptions", http.Header{})},
		ours("page 1", list, comparison{"floor-list", 1.1, serverCost}),
		ours("page 1000 by link", link, comparison{"page 1", 1.2, serverCost}),
		ours("page 1000 by number", list+"?page=1000", comparison{"page 1", 6, storeCost}),
		ours("by e-mail", list+"?customerEmail="+url.QueryEscape(email), page1),
		ours("by phone", list+"?customerPhone="+phone, page1),
		ours("by calling code", list+"?customerCountryCode=966", page1),
	}, nil
}

// nextPage requests a page and returns its link to the next page.
func nextPage(ctx context.Context, rawURL string, header http.Header) (string, error) {
	made, err := http.NewRequestWithContext(ctx, http.MethodGet, rawURL, nil)
	if err != nil {
		return "", err
	}
	made.Header = header
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
		return "", fmt.Errorf("no link to a next page at %s: %s (%v)", rawURL, response.Status, err)
	}
	return page.Data.Next, nil
}

// sessions returns the process ids of the database's other sessions.
func (b *listBench) sessions(ctx context.Context) ([]int, error) {
	rows, err := b.db.Query(ctx, "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int])
}
