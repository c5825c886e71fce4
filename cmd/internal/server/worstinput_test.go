//go:build !race

package server_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"commerce/auth/locale"
	"commerce/cart"
	"commerce/cmd/internal/server"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions"
)

// The most that one request may cost this process, whatever it contains.
const (
	worstTime        = 5 * time.Millisecond // of CPUs
	worstAllocations = 5 << 20              // bytes
)

// Bodies have at most 64 KiB, and so have the request line and the headers together.
const (
	worstBody   = 64 << 10
	worstHeader = 60 << 10
)

func filled(text string, size int) string { return strings.Repeat(text, size/len(text)) }

func each(n int, text string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(text, i)
	}
	return strings.Join(all, ",")
}

// worstTexts are JSON texts, which are hard to unescape, to normalize or to compare.
func worstTexts() []string {
	const size = worstBody - 200
	return []string{
		filled("a", size), filled(" ", size), filled(`\u0000`, size), filled(`\u200b`, size), filled(`\"`, size),
		filled("\u0301", size), filled("e\u0301\u0323", size), filled("\u0344", size), filled("\ufdfa", size),
		filled(`\ud83d\ude00`, size), filled("가", size), "x" + filled("\u0300\u0316", size),
	}
}

// worstBodies are bodies of POST and PATCH with any member that one of them reads.
func worstBodies() (bodies []string) {
	const size = worstBody - 200
	values := []string{
		filled("9", size), "1" + filled("0", size), "0." + filled("0", size) + "1", "1e" + filled("9", size), "-" + filled("1", size),
		"[" + filled("0,", size) + "0]", "[" + filled("[],", size) + "0]", "{" + each(5500, `"%d":0`) + "}", "{" + each(5500, `"a%d":1`) + "}",
		"{" + each(100, `"%d":"`+filled("x", 600)+`"`) + "}", "{" + each(100, `"`+filled("\u0344", 600)+`%d":"v"`) + "}",
		"{" + each(100, `"Field %d":"`+filled("\u0344", 600)+`"`) + "}", "{" + each(25, `"Field %d":"`+filled(`\u0344`, 2400)+`"`) + "}",
		"{" + each(100, `"Field %d":[`+filled("0,", 600)+"0]") + "}",
		filled("[", 30) + filled("0,", size) + "0" + filled("]", 30), `{"id":` + filled("1", size) + "}",
	}
	for _, text := range worstTexts() {
		values = append(values, `"`+text+`"`, `{"`+text+`":"x"}`, `{"Field 1":"`+text+`"}`, `{"Email":"`+text+`","0":5}`)
	}
	for _, member := range []string{"product_id", "qty", "quantity", "subscription_plan", "fields", "notice", "coupon", "code", "preview", "metadata", "ops", "other"} {
		for _, value := range values {
			rest := `"product_id":501,`
			if member == "product_id" {
				rest = ""
			}
			bodies = append(bodies, "{"+rest+`"`+member+`":`+value+"}")
		}
	}
	for _, op := range []string{
		`{"op":"add","product_id":501,"fields":{"Field 1":"` + filled("\u0344", 1000) + `"}}`, `{"op":"edit","item":"501","metadata":{"a":"` + filled("\u0344", 1000) + `"}}`,
		`{"op":"metadata","metadata":{` + each(100, `"n%d":"x"`) + `}}`, `{"op":"edit","item":"501","notice":"` + filled("x", 400) + `"}`,
	} {
		bodies = append(bodies, `{"ops":[`+strings.Repeat(op+",", 49)+op+"]}", `{"mode":"each","ops":[`+strings.Repeat(op+",", 49)+op+"]}")
	}
	name := filled("n", size/2)
	return append(bodies,
		"{"+each(5000, `"m%d":0`)+"}", "{"+each(5000, `"m%d":0`)+`,"m1":0}`, `{"`+name+`":0,"`+name+`":0}`,
		`{"coupon":"`+name+`","code":"`+name+`x"}`, `{"a":`+filled("[", size), `{"a":[`+filled("0,", size)+"\xff]}",
		filled(" ", size)+"{}", filled("{", size), `{"a":"`+filled(`\`, size), "{}"+filled(" ", size)+"x",
	)
}

func worstQueries() (queries []string) {
	queries = []string{
		filled("a&", worstHeader), filled("&", worstHeader), filled("a=%41&", worstHeader), strings.ReplaceAll(each(9000, "%d=1"), ",", "&"),
		filled("page=1&", worstHeader), "%zz" + filled("a", worstHeader), filled("%00", worstHeader), filled("é=é&", worstHeader),
	}
	names := []string{"page", "per_page", "sort", "cursor", "after", "limit"}
	for _, c := range subscriptions.Criteria {
		names = append(names, c.Name)
	}
	for _, name := range names {
		for _, value := range []string{"a", "1", "0", "%00", "active,", ",", "%20", "%D9%A0", "a@", "é", "%E2%80%8B", "-"} {
			queries = append(queries, name+"="+filled(value, worstHeader-50))
		}
	}
	return queries
}

// worstHeaders are values of any header. One text is sent in one header, several in as many.
func worstHeaders() (values [][]string) {
	for _, text := range []string{
		"a", " ", ",", "a,", "é", `"a",`, `"",`, `W/"a",`, `"`, "*,", "*", "en,", "en-x-a;q=0.1,", "zh-Hant-CN-x-private1,", "a-", ";", "a=b;", `a="\"";`,
		"text/csv;q=0.1,", "application/x-ndjson;a=b,", "1.1.1.1,", "1.1.1.1:80,", "[2001:db8::1]:80,", "::,", ".", "%41", "{", "gzip,", "br;q=0.1,", "0",
		"text/csv;a*0=b;",
	} {
		whole := filled(text, worstHeader)
		values = append(values, []string{whole}, []string{"Bearer " + whole}, []string{"application/json; " + whole})
	}
	nested := `{"a":` + filled("[", 5000)
	for _, head := range []string{"eyJhbGciOiJIUzI1NiJ9", "eyJhbGciOiJSUzI1NiIsImtpZCI6ImEifQ", base64.RawURLEncoding.EncodeToString([]byte(nested))} {
		for _, claims := range []string{nested, `{"sub":` + filled("1", 5000) + "}", "{" + each(500, `"%d":0`) + "}"} {
			values = append(values, []string{"Bearer " + head + "." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"})
		}
	}
	return append(values, slices.Repeat([]string{"a"}, 4000), slices.Repeat([]string{""}, 4000), slices.Repeat([]string{`"a"`}, 4000))
}

func worstPaths() []string {
	return []string{
		filled("a", worstHeader), filled("%41", worstHeader), filled("9", worstHeader), "1.p" + filled("1", worstHeader), "1.f" + filled("A", worstHeader),
		filled(".", worstHeader), filled("1.", worstHeader), filled("%2F", worstHeader), filled("/", worstHeader), filled("a/", worstHeader),
	}
}

// TestWorstInput_CostsLittle sends every call the inputs that cost the most, without a
// connection. It is not parallel, because it measures the process.
func TestWorstInput_CostsLittle(t *testing.T) {
	ephemeral.Slow(t)
	s := openShop(t, ephemeral.Redis(t), func(p *server.Parts) {
		p.TrustedProxies, p.Log = []string{"192.0.2.1"}, slog.New(slog.DiscardHandler)
	})
	long := &cart.Product{ID: 501, Name: locale.Named("Form"), Active: true, MinQuantity: 1}
	for i := range cart.MaxFields {
		options := make([]cart.Option, 20)
		for j := range options {
			options[j] = cart.Option{Code: fmt.Sprint("code ", j), Name: locale.Named("Option")}
		}
		long.Fields = append(long.Fields, cart.Field{Name: fmt.Sprint("Field ", i), Required: i%2 == 0, Options: options[:20*(i%2)]})
	}
	s.Catalog.Put(s.ID, long)
	c := s.guest(t)
	item := *c.add(`{"product_id":501,"fields":{` + each(cart.MaxFields, `"%d":"code 1"`) + `}}`).Body.Data.ItemID
	for _, call := range fuzzedCalls() {
		send := func(input, path, body string, headers http.Header) {
			t.Helper()
			s.wantCheap(t, fmt.Sprintf("%s %s: %.60q", call.method, call.path, input), func() *http.Request {
				r := httptest.NewRequest(call.method, s.URL+path, strings.NewReader(body))
				r.Header.Set("X-Public-Key", s.Key)
				r.Header.Set("X-Cart-Token", c.Token)
				r.Header.Set("Content-Type", "application/json")
				if strings.HasPrefix(call.path, "/subscriptions") {
					r.Header.Set("Authorization", "Bearer "+s.API)
				}
				maps.Copy(r.Header, headers)
				if call.path == "/cart/events" { // a stream ends when its client leaves
					ctx, leave := context.WithCancel(t.Context())
					time.AfterFunc(10*time.Millisecond, leave)
					r = r.WithContext(ctx)
				}
				return r
			})
		}
		path := strings.NewReplacer("{item_id}", item, "{id}", "5001").Replace(call.path)
		for _, query := range worstQueries() {
			send(query, path+"?"+query, call.body, nil)
		}
		for _, name := range append(fuzzedHeaders(), "Cookie", "Access-Control-Request-Headers", "Traceparent", "Tracestate", "Forwarded") {
			for _, values := range worstHeaders() {
				send(name+": "+values[0], path, call.body, http.Header{name: values})
			}
		}
		if prefix, _, ok := strings.Cut(call.path, "{"); ok {
			for _, id := range worstPaths() {
				send(id, prefix+id, call.body, nil)
			}
		}
		if call.body != "" {
			for _, body := range worstBodies() {
				send(body, path, body, nil)
			}
		}
	}
}

// wantCheap measures a request several times if it must, because the process does other work
// too, such as collecting garbage. On a busy machine, whose CPUs share caches, all code is slower:
// the limit is then 20 times what decoding a body takes, which is 5 ms on a quiet machine.
func (s *shop) wantCheap(t *testing.T, name string, request func() *http.Request) {
	t.Helper()
	const tries = 10
	var took time.Duration
	var allocated uint64
	for range tries {
		took, allocated = s.cost(request())
		if allocated <= worstAllocations && (took <= worstTime || took <= 20*decoding()) {
			return
		}
	}
	t.Errorf("%s costs %v and %d KiB", name, took, allocated>>10)
}

func (s *shop) cost(r *http.Request) (took time.Duration, allocated uint64) {
	w := discard{header: http.Header{}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := cpuTime()
	s.handler.ServeHTTP(&w, r)
	took = cpuTime() - began
	runtime.ReadMemStats(&after)
	return took, after.TotalAlloc - before.TotalAlloc
}

// decoding returns what decoding a body of JSON takes of CPUs.
func decoding() time.Duration {
	const times = 10
	body := []byte(`["` + filled(`\u0344e`, worstBody) + `"]`)
	began := cpuTime()
	for range times {
		var decoded []string
		_ = json.Unmarshal(body, &decoded)
	}
	return (cpuTime() - began) / times
}

// cpuTime is what CPUs have spent on this process, however busy the machine is.
func cpuTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
