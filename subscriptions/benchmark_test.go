package subscriptions_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/auth/locale"
	"commerce/cart/money"
	"commerce/cart/wire"
	"commerce/deploy/assert"
	"commerce/deploy/sample"
	"commerce/subscriptions"
	"commerce/subscriptions/postgres"
	"commerce/subscriptions/subscriptionshttp"
)

// BenchmarkList measures a page of 15 rows without its source: identifying the store,
// reading the query, signing the page's links and writing the JSON.
func BenchmarkList(b *testing.B) {
	rows := sample.Subscriptions(now)[:16]
	slices.Reverse(rows)
	route := subscriptionshttp.New(configOf(fixedPage{rows: rows}, stores()...)).Area().Routes[0]
	prices := money.NewFormatter()
	for name, url := range map[string]string{
		"page 1":   "/subscriptions",
		"filtered": "/subscriptions?customerEmail=Sara%40Example.com&customerCountryCode=966&per_page=15",
	} {
		b.Run(name, func(b *testing.B) {
			c, _ := gin.CreateTestContext(httptest.NewRecorder())
			c.Request = httptest.NewRequest(http.MethodGet, url, nil)
			c.Request.Header.Set("Authorization", "Bearer "+tokenOf(1))
			var buffer []byte
			b.ReportAllocs()
			for b.Loop() {
				answer := assert.Must(route.Handle(c))(b)
				w := wire.NewWriter(buffer[:0], answer.Language, prices)
				answer.Data(w)
				buffer = w.Bytes()
			}
		})
	}
}

// fixedPage is a source that returns the same rows for every query.
type fixedPage struct {
	subscriptions.Source
	rows []subscriptions.Subscription
}

func (f fixedPage) List(context.Context, int64, subscriptions.Query) ([]subscriptions.Subscription, error) {
	return f.rows, nil
}

func (f fixedPage) Changes(context.Context, int64, subscriptions.ChangesQuery) (subscriptions.Changes, error) {
	return subscriptions.Changes{Changed: f.rows}, nil
}

func (fixedPage) LinkKeys(context.Context, bool) ([][]byte, error) {
	return [][]byte{[]byte("0123456789abcdef0123456789abcdef")}, nil
}

// BenchmarkStream measures a page of a stream without its source.
func BenchmarkStream(b *testing.B) {
	source := fixedPage{rows: slices.Repeat(sample.Subscriptions(now), 20)[:1000]}
	route := subscriptionshttp.New(configOf(source, stores()...)).Area().Routes[1]
	for _, format := range []string{ndjsonType, csvType} {
		b.Run(format, func(b *testing.B) {
			c, _ := gin.CreateTestContext(httptest.NewRecorder())
			c.Request = httptest.NewRequest(http.MethodGet, "/subscriptions/changes", nil)
			c.Request.Header.Set("Authorization", "Bearer "+tokenOf(1))
			c.Request.Header.Set("Accept", format)
			w := wire.NewWriter(nil, locale.En, money.NewFormatter())
			b.ReportAllocs()
			for b.Loop() {
				answer := assert.Must(route.Handle(c))(b)
				for _, err := range answer.Stream.Parts(b.Context(), w) {
					assert.NoError(b, err)
				}
			}
		})
	}
}

// BenchmarkPostgres measures a page of 15 rows and a single row from Postgres, with the
// time that Postgres takes.
func BenchmarkPostgres(b *testing.B) {
	source := postgres.New(postgres.Config{Pool: filled(b, sampleData()), Budget: time.Minute, Wait: time.Minute})
	b.Run("list", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			rows, err := source.List(b.Context(), 1, subscriptions.Query{Language: locale.Ar, Limit: 16})
			assert.Require(b, err == nil && len(rows) == 16, "%v %v", len(rows), err)
		}
	})
	b.Run("get", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			assert.Must(source.Get(b.Context(), 1, 5001, locale.Ar))(b)
		}
	})
}
