package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"

	"commerce/cmd/bench/results"
)

// firstPage is the case that other lists are compared with, and deepPage the page whose cost has
// a target.
const firstPage, deepPage = "page 1", 1000

// benchList measures the subscription list of a store that has a tenth of all rows. The first
// page of a second service follows that of the first one.
func benchList(ctx context.Context, s *stage) (results.Benchmark, error) {
	shops, err := openShops(ctx, s, s.rows)
	if err != nil {
		return results.Benchmark{}, err
	}
	own := shops[0]
	floor, err := openFloor(ctx, s, "floor-list", own)
	if err != nil {
		return results.Benchmark{}, err
	}
	all := []testCase{floor, own.list(firstPage, "", comparison{floor.name, serverCPU(), 0.95}, comparison{floor.name, cpu(), 1})}
	for _, shop := range shops[1:] {
		all = append(all, shop.list(firstPage+shop.label, "", cpuOf(firstPage, 0)...))
	}
	for _, more := range []func(context.Context) ([]testCase, error){own.pages, own.filters, own.poll} {
		cases, err := more(ctx)
		if err != nil {
			return results.Benchmark{}, err
		}
		all = append(all, cases...)
	}
	return measure(ctx, s.options, all...)
}

// list is a list with a query.
func (s *shop) list(name, query string, compared ...comparison) testCase {
	return testCase{name: name, server: s.server, clients: same(s.url+"/subscriptions"+query, s.merchant), compared: compared}
}

// pages are the deep pages that exist, reached by the link of the page before and by number.
func (s *shop) pages(ctx context.Context) ([]testCase, error) {
	var all []testCase
	for _, page := range []int{10, 100, deepPage, 6000} {
		link, err := s.linkAfter(ctx, fmt.Sprintf("%s/subscriptions?page=%d", s.url, page-1))
		if err != nil {
			return nil, err
		}
		if link == "" {
			break
		}
		linked, numbered := comparison{firstPage, cpu(), 0}, comparison{firstPage, storeCPU(), 0}
		if page == deepPage {
			linked.atMost, numbered.atMost = 1.05, 6
		}
		skipping := s.list(fmt.Sprintf("page %d by number", page), fmt.Sprintf("?page=%d", page), numbered)
		if page > deepPage { // the service reads one deep page of a store at a time
			skipping.connections = 1
		}
		all = append(all, s.list(fmt.Sprintf("page %d by link", page), strings.TrimPrefix(link, s.url+"/subscriptions"), linked), skipping)
	}
	return all, nil
}

// linkAfter reads a page, and returns its link to the next page, "" if it is the last one. It
// does not decode the rows: that could take as long as the service takes for them.
func (s *shop) linkAfter(ctx context.Context, page string) (link string, err error) {
	response, err := s.open(ctx, http.MethodGet, strings.TrimPrefix(page, s.url), s.merchant, nil)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	const member = `"next_page_url":`
	at := bytes.LastIndex(body, []byte(member)) // rows come before it
	if response.StatusCode != http.StatusOK || at < 0 {
		return "", fmt.Errorf("not a page of subscriptions: %s", response.Status)
	}
	err = json.NewDecoder(bytes.NewReader(body[at+len(member):])).Decode(&link)
	return link, err
}

// filters are lists with a filter that many rows match. The e-mail address, the phone and
// the external ID are those with the most rows.
func (s *shop) filters(ctx context.Context) ([]testCase, error) {
	db, err := pgx.Connect(ctx, s.database)
	if err != nil {
		return nil, err
	}
	defer db.Close(ctx)
	var email, phone, external string
	err = db.QueryRow(ctx, `SELECT email, calling_code || national_phone FROM customers c WHERE store_id = 1 AND id > 1000000
		ORDER BY (SELECT count(*) FROM subscriptions s WHERE s.store_id = 1 AND s.customer_id = c.id) DESC LIMIT 1`).Scan(&email, &phone)
	if err != nil {
		return nil, err
	}
	err = db.QueryRow(ctx, `SELECT external_customer_id FROM subscriptions WHERE store_id = 1 AND external_customer_id IS NOT NULL
		GROUP BY external_customer_id ORDER BY count(*) DESC, external_customer_id LIMIT 1`).Scan(&external)
	if err != nil {
		return nil, err
	}
	bounded := comparison{firstPage, cpu(), 1.1}
	return []testCase{
		s.list("by status", "?status=active", bounded),
		s.list("by external ID", "?externalCustomerId="+url.QueryEscape(external), bounded),
		s.list("by calling code", "?customerCountryCode=966", bounded),
		s.list("by e-mail", "?customerEmail="+url.QueryEscape(email), bounded),
		s.list("by phone", "?customerPhone="+phone, bounded),
		s.list("by status and calling code", "?status=active&customerCountryCode=966", bounded),
	}, nil
}

// poll asks for changes when there is nothing new.
func (s *shop) poll(ctx context.Context) ([]testCase, error) {
	_, head, err := s.stream(ctx, ndjson())
	return []testCase{s.list("changes, nothing new", "/changes?after="+url.QueryEscape(head), cpuOf(firstPage, 0.5)...)}, err
}
