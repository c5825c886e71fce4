package suite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5/pgconn"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/cart/money"
	"commerce/cart/wire"
	"commerce/deploy/assert"
	"commerce/subscriptions/formats"
	"commerce/subscriptions/subscriptionshttp"
)

// Bundle is an API over one source, with a token per store.
type Bundle struct {
	Source Source
	Engine *gin.Engine
}

// Secret is that of all tokens.
var Secret = strings.Repeat("s", 43)

// TokenOf returns a store's token; its ID is the store's.
func TokenOf(store int64) string { return strconv.FormatInt(store, 10) + "|" + Secret }

// NewBundle returns an API over a source. Without stores, it has those of Stores.
func NewBundle(source Source, stores ...*store.Store) Bundle {
	return Bundle{source, NewEngine(ConfigOf(source, stores...), Calls(source)...)}
}

// ConfigOf returns the configuration of an API over one source, with a token per store.
func ConfigOf(source Source, stores ...*store.Store) subscriptionshttp.Config {
	if stores == nil {
		stores = Stores()
	}
	tokens := auth.MemoryAPITokens{}
	for _, s := range stores {
		tokens[s.ID] = auth.APIToken{ID: s.ID, StoreID: s.ID, Hash: sha256.Sum256([]byte(Secret))}
	}
	return subscriptionshttp.Config{
		Source: source, Now: func() time.Time { return Now },
		Origin: func(*http.Request) string { return "http://shop.test" },
		Tokens: TokensFrom(tokens, stores...),
	}
}

// TokensFrom verifies the tokens of a source.
func TokensFrom(source auth.APITokenSource, stores ...*store.Store) *auth.APITokens {
	return auth.NewAPITokens(auth.APITokensConfig{Source: source, Stores: auth.NewMemoryStores(money.Known, stores...)})
}

// NewEngine serves only this API. It writes envelopes like the server, and errors in a
// reduced form, also at the end of a stream.
func NewEngine(c subscriptionshttp.Config, more ...subscriptionshttp.Calls) *gin.Engine {
	engine, prices := gin.New(), money.NewFormatter()
	for _, route := range subscriptionshttp.New(c).Area(more...).Routes {
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
			w.Number("timestamp", Now.Unix())
			w.EndObject()
			c.Data(http.StatusOK, "application/json; charset=utf-8", w.Bytes())
		})
	}
	return engine
}

func refusalOf(answer wire.Answer, err error) Refusal {
	r := Refusal{Code: "internal", Text: err.Error(), Language: answer.Language}
	if known, ok := errors.AsType[*problem.Error](err); ok {
		r.Code, r.Message, r.Errors = string(known.Code), known.Message(locale.En), known.Members(locale.En)
	}
	return r
}

// Refusal is how NewEngine writes an error.
type Refusal struct {
	Code, Message, Text string
	Errors              map[string][]string
	Language            locale.Locale
}

// Answer is a page as a client decodes it.
type Answer struct {
	CurrentPage  int              `json:"current_page"`
	Data         []map[string]any `json:"data"`
	FirstPageURL string           `json:"first_page_url"`
	From, To     *int
	NextPageURL  *string `json:"next_page_url"`
	PrevPageURL  *string `json:"prev_page_url"`
	Path         string
	PerPage      int `json:"per_page"`
}

func (a Answer) IDs() []int64 {
	ids := []int64{}
	for _, s := range a.Data {
		ids = append(ids, int64(s["id"].(float64)))
	}
	return ids
}

// Do requests a URL with a store's token, in a language.
func (b Bundle) Do(url string, store int64, language string) *httptest.ResponseRecorder {
	return b.Accepting("", url, store, language)
}

// Accepting is Do with an Accept header.
func (b Bundle) Accepting(format formats.Format, url string, store int64, language string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, url, nil)
	r.Header.Set("Authorization", "Bearer "+TokenOf(store))
	r.Header.Set("Accept-Language", language)
	r.Header.Set("Accept", string(format))
	w := httptest.NewRecorder()
	b.Engine.ServeHTTP(w, r)
	return w
}

// List requests a page, which must succeed.
func (b Bundle) List(t *testing.T, url string, store int64) Answer {
	t.Helper()
	w := b.Do(url, store, "en")
	var body struct{ Data Answer }
	err := json.Unmarshal(w.Body.Bytes(), &body)
	assert.Require(t, err == nil && w.Code == http.StatusOK, "GET %s: %d %s (%v)", url, w.Code, w.Body, err)
	return body.Data
}

// WantRefused expects a refusal with a code. Its error for the log, or a parameter at fault, must
// have each of the parts.
func (b Bundle) WantRefused(t *testing.T, url string, store int64, code string, parts ...string) {
	t.Helper()
	got := b.Refused(t, url, store)
	assert.Equal(t, got.Code, code, "GET %.90s: %+v", url, got)
	for _, part := range parts {
		assert.That(t, strings.Contains(got.Text, part) || got.Errors[part] != nil,
			"GET %.90s: %+v, want %q in the log or at fault", url, got, part)
	}
}

// Refused makes a request that must be refused, and returns the refusal.
func (b Bundle) Refused(t *testing.T, url string, store int64) Refusal {
	t.Helper()
	w := b.Do(url, store, "en")
	var body Refusal
	err := json.Unmarshal(w.Body.Bytes(), &body)
	assert.Require(t, err == nil && w.Code != http.StatusOK, "GET %s: %d %s (%v), want a refusal", url, w.Code, w.Body, err)
	return body
}

// Names checks that a request of store 1 is refused because of exactly these parameters, in order.
func (b Bundle) Names(t *testing.T, url string, want []string) {
	t.Helper()
	refused := b.Refused(t, url, 1)
	assert.Equal(t, refused.Code, "invalid_parameter", "%s", url)
	assert.Equal(t, slices.Sorted(maps.Keys(refused.Errors)), want, "%s: named", url)
}

// Exec runs a statement on a pool, a connection or a transaction.
func Exec(t testing.TB, on interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}, sql string, args ...any,
) {
	t.Helper()
	_, err := on.Exec(t.Context(), sql, args...)
	assert.Require(t, err == nil, "%s: %v", sql, err)
}

// Golden compares a response with its file, including the order of members.
func Golden(t *testing.T, name string, b Bundle, url, language string) {
	t.Helper()
	var got bytes.Buffer
	assert.NoError(t, json.Indent(&got, b.Do(url, 1, language).Body.Bytes(), "", "  "))
	got.WriteByte('\n')
	file := filepath.Join("testdata", name+".json")
	if write := flag.Lookup("update"); write != nil && write.Value.String() == "true" {
		assert.NoError(t, os.WriteFile(file, got.Bytes(), 0o644))
	}
	assert.Equal(t, got.String(), string(assert.Must(os.ReadFile(file))(t)), "%s", name)
}
