package main

import (
	"context"
	"net/url"

	"commerce/cmd/bench/results"
)

// filters are lists with a filter that many rows match. The e-mail address, the phone and
// the external ID are those with the most rows.
func (b *listBench) filters(ctx context.Context) ([]testCase, error) {
	var email, phone, external string
	err := b.db.QueryRow(ctx, `SELECT email, calling_code || national_phone FROM customers c WHERE store_id = 1 AND id > 1000000
		ORDER BY (SELECT count(*) FROM subscriptions s WHERE s.store_id = 1 AND s.customer_id = c.id) DESC LIMIT 1`).Scan(&email, &phone)
	if err != nil {
		return nil, err
	}
	err = b.db.QueryRow(ctx, `SELECT external_customer_id FROM subscriptions WHERE store_id = 1 AND external_customer_id IS NOT NULL
		GROUP BY external_customer_id ORDER BY count(*) DESC, external_customer_id LIMIT 1`).Scan(&external)
	if err != nil {
		return nil, err
	}
	page1 := results.Comparison{Cost: results.CPU, Of: firstPage}
	bounded := page1
	bounded.AtMost = new(1.1)
	return []testCase{
		b.ours("by status", "?status=active", bounded),
		b.ours("by two statuses", "?status=active,past_due", bounded),
		b.ours("by external ID", "?externalCustomerId="+url.QueryEscape(external), bounded),
		b.ours("by calling code", "?customerCountryCode=966", bounded),
		b.ours("by e-mail", "?customerEmail="+url.QueryEscape(email), bounded),
		b.ours("by phone", "?customerPhone="+phone, page1),
		b.ours("by status and calling code", "?status=active&customerCountryCode=966", bounded),
	}, nil
}
