package main

import (
	"context"
	"fmt"
	"strings"

	"commerce/cmd/bench/results"
)

// deepPage is the page whose cost has a target.
const deepPage = 1000

// deepPages are the pages to measure beyond the first one.
func deepPages() []int { return []int{10, 100, deepPage, 6000} }

func byLink(page int) string   { return fmt.Sprintf("page %d by link", page) }
func byNumber(page int) string { return fmt.Sprintf("page %d by number", page) }

// pages are the deep pages that exist, reached by the link of the page before and by number.
func (b *listBench) pages(ctx context.Context) ([]testCase, error) {
	var all []testCase
	for _, page := range deepPages() {
		if page*15 >= b.rows {
			break
		}
		link, err := nextPage(ctx, fmt.Sprintf("%s?page=%d", b.url(), page-1), b.header())
		if err != nil {
			return nil, err
		}
		linked := results.Comparison{Cost: results.CPU, Of: firstPage}
		numbered := results.Comparison{Cost: results.StoreCPU, Of: firstPage}
		if page == deepPage {
			linked.AtMost, numbered.AtMost = new(1.05), new(6.0)
		}
		skipping := b.ours(byNumber(page), fmt.Sprintf("?page=%d", page), numbered)
		if page > deepPage { // the service reads one deep page of a store at a time
			skipping.connections = 1
		}
		all = append(all, b.ours(byLink(page), strings.TrimPrefix(link, b.url()), linked), skipping)
	}
	return all, nil
}

// pageCurve is the cost of a page by its number.
func pageCurve(b results.Benchmark) results.Curve {
	curve := results.Curve{Name: "pages", X: "page number", Y: "CPU per page, service and Postgres (µs)"}
	for _, way := range []struct {
		name string
		of   func(int) string
	}{{"by number", byNumber}, {"by link", byLink}} {
		series := results.Series{Name: way.name}
		for _, page := range append([]int{1}, deepPages()...) {
			name := way.of(page)
			if page == 1 {
				name = firstPage
			}
			if c, ok := b.Case(name); ok {
				series.Points = append(series.Points, results.Point{X: float64(page), Figure: c.Figure(results.CPU)})
			}
		}
		curve.Series = append(curve.Series, series)
	}
	return curve
}
