package subscriptions_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/cart/money"
	"commerce/cart/wire"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/deploy/sample"
	"commerce/subscriptions"
	"commerce/subscriptions/postgres"
	"commerce/subscriptions/subscriptionshttp"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	goleak.VerifyTestMain(m)
}

// slow marks a test that takes seconds. It runs beside others.
func slow(t *testing.T) {
	t.Helper()
	t.Parallel()
	ephemeral.Slow(t)
}

// now is the clock of all tests.
var now = time.Date(2025, 11, 20, 10, 0, 0, 123456000, time.UTC)

// data is the content of a source.
type data struct {
	customers []subscriptions.Customer
	all       []subscriptions.Subscription
}

func sampleData() data { return data{sample.Customers(), sample.Subscriptions(now)} }

// sources are the implementations that every test of the suite runs on.
var sources = map[string]func(t *testing.T, d data) subscriptions.Source{
	"memory":   func(_ *testing.T, d data) subscriptions.Source { return subscriptions.NewMemory(d.customers, d.all) },
	"postgres": func(t *testing.T, d data) subscriptions.Source { return patient(filled(t, d)) },
	"postgres with partitions": func(t *testing.T, d data) subscriptions.Source {
		pool := planningOnce(t, partitioned(t))
		fill(t, pool, d)
		return patient(pool)
	},
}

// patient returns a source with time for a busy machine.
func patient(pool *pgxpool.Pool) *postgres.Source {
	return postgres.New(postgres.Config{Pool: pool, Budget: ephemeral.Patience(10 * time.Second), Wait: ephemeral.Patience(5 * time.Second)})
}

// onEach runs a test on every implementation.
func onEach(t *testing.T, d data, test func(t *testing.T, b bundle)) {
	for name, source := range sources {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newBundle(source(t, d), stores()...))
		})
	}
}

// filled returns a pool for a database with the data, and its stores and products.
func filled(t testing.TB, d data) *pgxpool.Pool {
	t.Helper()
	pool := ephemeral.MigratedPool(t)
	fill(t, pool, d)
	return pool
}

// fill writes the data, and its stores and products, into an empty database.
func fill(t testing.TB, pool *pgxpool.Pool, d data) {
	t.Helper()
	assert.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return errors.Join(writeCatalog(t.Context(), tx, d), sample.WriteSubscriptions(t.Context(), tx, d.customers, d.all))
	}))
	ephemeral.Settle(t, pool)
}

// writeCatalog writes what the subscriptions refer to.
func writeCatalog(ctx context.Context, tx pgx.Tx, d data) error {
	var batch pgx.Batch
	for _, s := range stores() {
		batch.Queue("INSERT INTO stores (id, name, currency, language) VALUES ($1, $2, $3, $4)", s.ID, s.Name, s.Currency, string(s.Locale))
	}
	for _, s := range d.all {
		batch.Queue(`INSERT INTO products (store_id, id, name, names, slug, type, price, original_price) VALUES ($1, $2, $3, coalesce($4, '{}'::jsonb), $5, $6, 0, 0)
			ON CONFLICT DO NOTHING`, s.StoreID, s.Product.ID, s.Product.Name.Own, s.Product.Name.Others, s.Product.Slug, s.Product.Type)
		for _, v := range []*subscriptions.Variant{&s.Variant, s.Scheduled} {
			if v != nil {
				batch.Queue(`INSERT INTO plans (store_id, id, product_id, duration, price) VALUES ($1, $2, $3, $4, $5)
					ON CONFLICT DO NOTHING`, s.StoreID, v.ID, s.Product.ID, string(v.Duration), int64(v.Price))
			}
		}
	}
	return tx.SendBatch(ctx, &batch).Close()
}

// stores returns the sample's stores, and two whose currencies have no and three decimals.
func stores() []*store.Store {
	return append(sample.Stores(),
		&store.Store{ID: 3, Name: "Tokyo", Currency: "JPY", Locale: locale.En},
		&store.Store{ID: 4, Name: "Kuwait", Currency: "KWD", Locale: locale.Ar},
	)
}

// bundle is an API over one source, with a token per store.
type bundle struct {
	source subscriptions.Source
	engine *gin.Engine
}

var secret = strings.Repeat("s", 43)

// tokenOf returns a store's token; its ID is the store's.
func tokenOf(store int64) string { return strconv.FormatInt(store, 10) + "|" + secret }

func newBundle(source subscriptions.Source, stores ...*store.Store) bundle {
	return bundle{source, newEngine(configOf(source, stores...))}
}

// configOf returns the configuration of an API over one source, with a token per store.
func configOf(source subscriptions.Source, stores ...*store.Store) subscriptionshttp.Config {
	tokens := auth.MemoryAPITokens{}
	for _, s := range stores {
		tokens[s.ID] = auth.APIToken{ID: s.ID, StoreID: s.ID, Hash: sha256.Sum256([]byte(secret))}
	}
	return subscriptionshttp.Config{
		Source: source, Now: func() time.Time { return now },
		Origin: func(*http.Request) string { return "http://shop.test" },
		Tokens: auth.NewAPITokens(auth.APITokensConfig{
			Source: tokens, Stores: auth.NewMemoryStores(money.Known, stores...),
		}),
	}
}

// newEngine serves only this API. It writes envelopes like the server, and errors in a
// reduced form, also at the end of a stream.
func newEngine(c subscriptionshttp.Config) *gin.Engine {
	engine, prices := gin.New(), money.NewFormatter()
	for _, route := range subscriptionshttp.New(c).Area().Routes {
		engine.Handle(route.Method, route.Path, func(c *gin.Context) {
			answer, err := route.Handle(c)
			if answer.Later != nil {
				answer.Data, err = answer.Later(func(wait func(context.Context) bool) error { wait(c.Request.Context()); return nil })
			}
			if err != nil {
				c.JSON(http.StatusTeapot, refusalOf(answer, err))
				return
			}
			w := wire.NewWriter(nil, answer.Language, prices)
			if answer.Stream != nil {
				for part, err := range answer.Stream.Parts(c.Request.Context(), w) {
					if err != nil {
						c.JSON(http.StatusTeapot, refusalOf(answer, err))
						return
					}
					_, _ = c.Writer.Write(part)
				}
				return
			}
			w.BeginObject()
			w.Null("message")
			w.Member("data")
			answer.Data(w)
			w.Text("api", "merchant-commerce")
			w.Number("timestamp", now.Unix())
			w.EndObject()
			c.Data(http.StatusOK, "application/json; charset=utf-8", w.Bytes())
		})
	}
	return engine
}

func refusalOf(answer wire.Answer, err error) refusal {
	r := refusal{Code: "internal", Text: err.Error(), Language: answer.Language}
	if known, ok := errors.AsType[*problem.Error](err); ok {
		r.Code, r.Message, r.Errors = string(known.Code), known.Message(locale.En), known.Members(locale.En)
	}
	return r
}

// refusal is how newEngine writes an error.
type refusal struct {
	Code, Message, Text string
	Errors              map[string][]string
	Language            locale.Locale
}

// answer is a page as a client decodes it.
type answer struct {
	CurrentPage  int              `json:"current_page"`
	Data         []map[string]any `json:"data"`
	FirstPageURL string           `json:"first_page_url"`
	From, To     *int
	NextPageURL  *string `json:"next_page_url"`
	PrevPageURL  *string `json:"prev_page_url"`
	Path         string
	PerPage      int `json:"per_page"`
}

func (a answer) ids() []int64 {
	ids := []int64{}
	for _, s := range a.Data {
		ids = append(ids, int64(s["id"].(float64)))
	}
	return ids
}

// do requests a URL with a store's token, in a language.
func (b bundle) do(url string, store int64, language string) *httptest.ResponseRecorder {
	return b.accepting("", url, store, language)
}

// accepting is do with an Accept header.
func (b bundle) accepting(format, url string, store int64, language string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, url, nil)
	r.Header.Set("Authorization", "Bearer "+tokenOf(store))
	r.Header.Set("Accept-Language", language)
	r.Header.Set("Accept", format)
	w := httptest.NewRecorder()
	b.engine.ServeHTTP(w, r)
	return w
}

// list requests a page, which must succeed.
func (b bundle) list(t *testing.T, url string, store int64) answer {
	t.Helper()
	w := b.do(url, store, "en")
	var body struct{ Data answer }
	err := json.Unmarshal(w.Body.Bytes(), &body)
	assert.Require(t, err == nil && w.Code == http.StatusOK, "GET %s: %d %s (%v)", url, w.Code, w.Body, err)
	return body.Data
}

// wantRefused expects a refusal with a code. Its error for the log, or a parameter at fault, must
// have each of the parts.
func (b bundle) wantRefused(t *testing.T, url string, store int64, code string, parts ...string) {
	t.Helper()
	got := b.refused(t, url, store)
	assert.Equal(t, got.Code, code, "GET %.90s: %+v", url, got)
	for _, part := range parts {
		assert.That(t, strings.Contains(got.Text, part) || got.Errors[part] != nil,
			"GET %.90s: %+v, want %q in the log or at fault", url, got, part)
	}
}

// refused makes a request that must be refused, and returns the refusal.
func (b bundle) refused(t *testing.T, url string, store int64) refusal {
	t.Helper()
	w := b.do(url, store, "en")
	var body refusal
	err := json.Unmarshal(w.Body.Bytes(), &body)
	assert.Require(t, err == nil && w.Code != http.StatusOK, "GET %s: %d %s (%v), want a refusal", url, w.Code, w.Body, err)
	return body
}

// names checks that a request of store 1 is refused because of exactly these parameters, in order.
func (b bundle) names(t *testing.T, url string, want []string) {
	t.Helper()
	refused := b.refused(t, url, 1)
	assert.Equal(t, refused.Code, "invalid_parameter", "%s", url)
	assert.Equal(t, slices.Sorted(maps.Keys(refused.Errors)), want, "%s: named", url)
}

// exec runs a statement on a pool, a connection or a transaction.
func exec(t testing.TB, on interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}, sql string, args ...any,
) {
	t.Helper()
	_, err := on.Exec(t.Context(), sql, args...)
	assert.Require(t, err == nil, "%s: %v", sql, err)
}
