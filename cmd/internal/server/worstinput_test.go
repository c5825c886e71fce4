//go:build !race

package server_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/auth/locale"
	"commerce/cart"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// The most that one request may cost this process, whatever it contains.
const (
	worstTime        = 100     // times what a ping takes of CPUs
	worstAllocations = 5 << 20 // bytes
	worstAnswer      = 64 << 10
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
		filled("\u0301", size), filled("e\u0301\u0323", size), filled("\u0344", size), filled("\u1f82\u0323", size), filled("\ufdfa", size),
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
	name := filled("n", size/2)
	return append(bodies,
		"{"+each(5000, `"m%d":0`)+"}", "{"+each(5000, `"m%d":0`)+`,"m1":0}`, `{"`+name+`":0,"`+name+`":0}`,
		`{"coupon":"`+name+`","code":"`+name+`x"}`, `{"a":`+filled("[", size), `{"a":[`+filled("0,", size)+"\xff]}",
		filled(" ", size)+"{}", filled("{", size), `{"a":"`+filled(`\`, size), "{}"+filled(" ", size)+"x",
	)
}

// worstLists are bodies of POST /cart/ops: each is one operation many times, mostly one that is refused.
func worstLists(item string) (bodies []string) {
	add, edit := `{"op":"add","product_id":501,`, `{"op":"edit","item":"`+item+`",`
	bodies = []string{
		`{"op":"metadata","metadata":{` + each(100, `"n%d":"x"`) + `}}`, `{"op":"metadata","metadata":{` + each(40, `"`+filled("n", 24)+`%d":"x"`) + `}}`,
		`{"op":"metadata","metadata":{` + each(40, `" n%d":"x"`) + `}}`, `{"op":"remove","item":"` + filled("1", 1000) + `"}`,
		`{"op":"coupon","coupon":"` + filled("\u0344", 30) + `"}`, `{"op":"add_shared","code":"` + filled("A", 1000) + `"}`, `{"op":1}`, "[]",
	}
	for _, members := range []string{
		`"fields":{` + each(100, `"u%d":"x"`) + "}}", `"fields":{` + each(100, `"\u0634%d":"x"`) + "}}", `"fields":{` + each(60, `"e\u0301%d":"x"`) + "}}",
		`"fields":{` + each(100, `"u%d":1`) + "}}", `"fields":{` + each(25, `"%d":"y"`) + "}}", `"fields":{` + each(25, `"Field %d ":"y"`) + "}}",
		`"fields":{` + each(25, `"%d":"code 2"`) + "}}", `"fields":{"Field 1":"` + filled("\u0344", 1000) + `"}}`, `"fields":{"` + filled(`\u0001`, 1100) + `":"x"}}`,
		`"metadata":{` + each(40, `"n%d":"x"`) + "}}", `"fields":{"Field 0":"` + filled("\u1f82\u0323", 150) + filled("\u0645", 850) + `"}}`, `"fields":{"Field 0":"` + filled("\u1f82\u0323", 1000) + `"}}`,
		`"metadata":{"a":"` + filled("\u0344", 1000) + `"}}`, `"notice":"` + filled("x", 400) + `"}`,
		`"qty":"a","quantity":0,"subscription_plan":[],"notice":1,"metadata":{"":1},"accept_price":-1}`,
	} {
		bodies = append(bodies, add+members, edit+members)
	}
	for i, op := range bodies {
		list := `"ops":[` + strings.Repeat(op+",", 49) + op + "]}"
		bodies[i] = "{" + list
		bodies = append(bodies, `{"mode":"each",`+list)
	}
	return bodies
}

// worstCarts are carts as agents send them.
func worstCarts() (carts []string) {
	const size = worstBody - 500
	values := []string{
		filled("9", size), `"` + filled("\u0344", size) + `"`, "[" + filled("0,", size) + "0]", "[" + filled(`"a.b",`, size) + "0]",
		"{" + each(4500, `"a.b%d":0`) + "}", "{" + each(4500, `"a.b%d":""`) + "}", "{" + each(4500, `" %d":0`) + "}", "{" + each(1200, `"`+filled("'", 40)+`%d":0`) + "}",
	}
	for _, text := range []string{filled("a", size), filled(`\u0001`, size), filled("'", size)} {
		values = append(values, `{"`+text+`":0}`)
	}
	for _, member := range []string{"id", "line_items", "buyer", "context", "signals", "attribution", "discounts"} {
		for _, value := range values {
			carts = append(carts, `{"`+member+`":`+value+"}")
		}
	}
	for _, of := range []string{`"context":{"eligibility":`, `"discounts":{"codes":`} {
		for _, code := range []string{"0", `"a.b"`, `"` + filled("A", 1000) + `"`, `"` + filled(`\u0001`, 1000) + `"`, `"` + filled("\u0344", 1000) + `"`} {
			carts = append(carts, `{"line_items":[],`+of+"["+strings.Repeat(code+",", 49)+code+"]}}")
		}
	}
	for _, element := range []string{
		"0", "{}", `{"id":1,"parent_id":1,"item":{"id":1},"quantity":0}`, `{"item":{"id":"501"},"quantity":1}`, `{"item":{"id":"9"},"quantity":1}`,
		`{"id":"` + filled("1", 500) + `","item":{"id":"` + filled("9", 50) + `"},"quantity":9007199254740991}`,
	} {
		carts = append(carts, `{"line_items":[`+strings.Repeat(element+",", 99)+element+"]}")
	}
	return carts
}

// worstCalls are bodies of MCP.
func worstCalls() (bodies []string) {
	const tool = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":{"id":"x","meta":{"ucp-agent":{"profile":"` + agentProfile + `"}},"cart":%s}}}`
	for _, sent := range worstCarts() {
		bodies = append(bodies, fmt.Sprintf(tool, "create_cart", sent))
	}
	const size = worstBody - 200
	for _, id := range []string{filled("1", size), `"` + filled("a", size) + `"`, `"` + filled(`\u0001`, size) + `"`} {
		for _, method := range []string{"initialize", "tools/list", "tools/call", ""} {
			bodies = append(bodies, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`"}`)
		}
	}
	return append(bodies, `{"jsonrpc":"2.0","id":1,"method":"`+filled("a", size)+`"}`)
}

func worstQueries(t *testing.T) (queries []string) {
	queries = []string{
		filled("a&", worstHeader), filled("&", worstHeader), filled("a=%41&", worstHeader), strings.ReplaceAll(each(9000, "%d=1"), ",", "&"),
		filled("page=1&", worstHeader), "%zz" + filled("a", worstHeader), filled("%00", worstHeader), filled("é=é&", worstHeader),
	}
	for _, parameter := range assert.Must(document())(t).Components.Parameters {
		name := parameter.Value.Name
		if parameter.Value.In != "query" {
			continue
		}
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
	for i := range cart.MaxFields { // catalogs of most stores have Arabic names
		options := make([]cart.Option, 20)
		for j := range options {
			options[j] = cart.Option{Code: fmt.Sprint("code ", j), Name: locale.Named("Option")}
		}
		long.Fields = append(long.Fields, cart.Field{Name: fmt.Sprint([]string{"Field ", "حقل "}[i/5%2], i), Required: i%2 == 0, Options: options[:20*(i%2)]})
	}
	s.Catalog.Put(s.ID, long)
	c := s.guest(t)
	item := *c.add(`{"product_id":501,"fields":{` + each(cart.MaxFields, `"%d":"code 1"`) + `}}`).Body.Data.ItemID
	code := codeIn(t, c.ok("POST", "/cart/share", ""))
	agents := s.agent(t).create("1×1").Cart.ID
	w := worst{shop: s, ping: pingTime(t)}
	for _, call := range fuzzedCalls() {
		send := func(input, path, body string, headers http.Header) {
			t.Helper()
			w.wantCheap(t, fmt.Sprintf("%s %s: %.120q", call.method, call.path, input), func() *http.Request {
				r := httptest.NewRequest(call.method, s.URL+path, strings.NewReader(body))
				r.Header.Set("X-Public-Key", s.Key)
				r.Header.Set("X-Cart-Token", c.Token)
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("UCP-Agent", `profile="`+agentProfile+`"`)
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
		id := "5001"
		if forAgents(call.path) {
			id = agents
		}
		path := strings.NewReplacer("{item_id}", item, "{id}", id, "{key}", s.Key, "{code}", code).Replace(call.path)
		for _, query := range worstQueries(t) {
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
		if call.body == "" {
			continue
		}
		bodies := worstBodies()
		switch {
		case call.path == "/cart/ops":
			bodies = append(bodies, worstLists(item)...)
		case strings.HasSuffix(call.path, "/mcp"):
			bodies = append(bodies, worstCalls()...)
		case forAgents(call.path):
			bodies = append(bodies, worstCarts()...)
		}
		for _, body := range bodies {
			send(body, path, body, nil)
		}
	}
}

// worst measures requests.
type worst struct {
	*shop
	ping time.Duration
}

// wantCheap measures a request several times if it must, because the process does other work too, such as
// collecting garbage. It measures the ping again then: on a busy machine, whose CPUs share caches, all code is slower.
func (w worst) wantCheap(t *testing.T, name string, request func() *http.Request) {
	t.Helper()
	const tries = 10
	var took, ping time.Duration
	var allocated uint64
	for range tries {
		var answer sized
		took, allocated = w.cost(&answer, request())
		if answer.refuses(request()) && answer.size > worstAnswer {
			t.Errorf("the answer %d to %s has %d KiB", answer.status, name, answer.size>>10)
			return
		}
		if ping = w.ping; took > worstTime*ping {
			ping = pingTime(t)
		}
		if allocated <= worstAllocations && took <= worstTime*ping {
			return
		}
	}
	t.Errorf("%s costs %v, %d pings, and %d KiB", name, took, took/ping, allocated>>10)
}

// sized counts the bytes of an answer.
type sized struct {
	discard
	size int
}

func (s *sized) Write(b []byte) (int, error) {
	s.size += len(b)
	return len(b), nil
}

// refuses reports whether the answer is a refusal. That of an agent may be a 200, and its cart has few lines here.
// What others get is as large as their cart or list.
func (s *sized) refuses(r *http.Request) bool { return s.status >= 300 || forAgents(r.URL.Path) }

func (w worst) cost(answer *sized, r *http.Request) (took time.Duration, allocated uint64) {
	answer.header = http.Header{}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := cpuTime()
	w.handler.ServeHTTP(answer, r)
	took = cpuTime() - began
	runtime.ReadMemStats(&after)
	return took, after.TotalAlloc - before.TotalAlloc
}

// pingTime returns what the benchmark's ping takes of CPUs: Gin alone sends 2 KB of JSON. It includes what a
// client takes that only moves bytes.
func pingTime(t *testing.T) time.Duration {
	t.Helper()
	const turns, times = 5, 100
	engine := gin.New()
	body := []byte(`{"data":"` + strings.Repeat("x", 2000) + `"}`)
	engine.GET("/", func(c *gin.Context) { c.Data(http.StatusOK, "application/json; charset=utf-8", body) })
	listener := httptest.NewServer(engine)
	defer listener.Close()
	conn := assert.Must(net.Dial("tcp", listener.Listener.Addr().String()))(t)
	defer conn.Close()
	var took []time.Duration
	buffer := make([]byte, 8<<10)
	for range turns {
		began := cpuTime()
		for range times {
			assert.Must(io.WriteString(conn, "GET / HTTP/1.1\r\nHost: ping\r\n\r\n"))(t)
			for got := buffer[:0]; !bytes.HasSuffix(got, body); {
				n := assert.Must(conn.Read(buffer[len(got):]))(t)
				got = buffer[:len(got)+n]
			}
		}
		took = append(took, (cpuTime()-began)/times)
	}
	slices.Sort(took)
	return took[turns/2]
}

// cpuTime is what CPUs have spent on this process, however busy the machine is.
func cpuTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
