package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/chromedp"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/docs"
)

// The first page of docs/storefront.md shows in a browser what the guide says. It comes from another
// origin than the service, as a storefront does. Two tabs that start without a cart token share one cart, and
// show each other's changes.
func TestStorefrontGuide_WorksInABrowser(t *testing.T) {
	slow(t)
	p, shop := openGuide(t, startDemo(t).url, "shop.html", "422 /cart/add")
	for _, line := range shop.shows[1:] {
		p.press("button")
		p.untilStatus(line)
	}

	first, shop := openGuide(t, startDemo(t).url, "shop.html")
	second := first.anotherTab(shop.address)
	tabs := []page{first, second}
	for i, line := range shop.shows[:3] {
		if i > 0 {
			tabs[i-1].press("button")
		}
		for _, tab := range tabs {
			tab.expect("404 /favicon.ico")
			tab.untilStatus(line)
		}
	}
}

// One click adds one, wherever its first two responses break off, and if a gateway replaces them, with either client. First
// the browser sends the add again, or else the client, and then the client.
func TestStorefrontGuide_AddsOnce(t *testing.T) {
	slow(t)
	type spoil = func(w http.ResponseWriter, r *http.Request, reply []byte, head int)
	breaks := func(at func(head, end int) int) spoil {
		return func(w http.ResponseWriter, _ *http.Request, reply []byte, head int) {
			conn, _, err := http.NewResponseController(w).Hijack()
			assert.That(t, err == nil, "%v", err)
			_, _ = conn.Write(reply[:at(head, len(reply))])
			_ = conn.Close()
		}
	}
	replaced := func(status int) spoil {
		return func(w http.ResponseWriter, r *http.Request, _ []byte, _ int) { gatewayPage(status)(w, r) }
	}
	for name, spoil := range map[string]spoil{
		"before the status line": breaks(func(_, _ int) int { return 0 }),
		"in the status line":     breaks(func(_, _ int) int { return len("HTTP/1.1 2") }),
		"in the headers":         breaks(func(head, _ int) int { return head / 2 }),
		"in the empty line":      breaks(func(head, _ int) int { return head - 1 }),
		"before the body":        breaks(func(head, _ int) int { return head }),
		"in the body":            breaks(func(head, end int) int { return (head + end) / 2 }),
		"before the last byte":   breaks(func(_, end int) int { return end - 1 }),
		"after the last byte":    breaks(func(_, end int) int { return end }),
		"at a gateway":           replaced(http.StatusBadGateway),
		"at a network's login":   replaced(http.StatusOK),
	} {
		for _, page := range []string{"shop.html", "published.html"} {
			t.Run(name+", "+page, func(t *testing.T) {
				t.Parallel()
				service := proxyTo(t, startDemo(t).url)
				var adds atomic.Int64
				gateway := serveGateway(t, func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPost && adds.Add(1) <= 2 {
						recorded := httptest.NewRecorder()
						service.ServeHTTP(recorded, r)
						response, length := recorded.Result(), recorded.Body.Len()
						response.ContentLength = int64(length)
						reply, err := httputil.DumpResponse(response, true)
						assert.That(t, err == nil, "%v", err)
						spoil(w, r, reply, len(reply)-length)
					} else {
						service.ServeHTTP(w, r)
					}
				})
				p, shop := openGuide(t, gateway, page, "502 /cart/add", "0 /cart/add")
				for _, line := range shop.shows[1:3] {
					p.press("button")
					p.untilStatus(line)
				}
				want := int64(4) // two clicks and two repeats
				if name == "after the last byte" {
					want = 2
				}
				assert.That(t, adds.Load() == want, "the browser sent the adds %d times, want %d", adds.Load(), want)
			})
		}
	}
}

// The store changes more than 50 lines. A gateway loses the response to the first list of fixes, and the
// client sends the list again.
func TestStorefrontGuide_FixesAll(t *testing.T) {
	slow(t)
	demo := startDemo(t)
	service := proxyTo(t, demo.url)
	var mu sync.Mutex
	var sent []string // keys and bodies of lists, between spaces
	p, _ := openGuide(t, serveGateway(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/cart/events" { // would tell the page what the lost response did
			gatewayPage(http.StatusNotFound)(w, r)
			return
		}
		if r.Method != http.MethodPost {
			service.ServeHTTP(w, r)
			return
		}
		body := assert.Must(io.ReadAll(r.Body))(t)
		r.Body = io.NopCloser(bytes.NewReader(body))
		mu.Lock()
		defer mu.Unlock()
		if sent = append(sent, r.Header.Get("Idempotency-Key")+" "+string(body)); len(sent) == 1 {
			service.ServeHTTP(httptest.NewRecorder(), r)
			gatewayPage(http.StatusBadGateway)(w, r)
			return
		}
		service.ServeHTTP(w, r)
	}), "cart.html", "502 /cart/ops", "404 /cart/events")

	c := demo.shopper(t, evaluate[string](p, cartToken))
	ticket, account := c.copyProduct("2"), c.copyProduct("5")
	c.fill(ticket + "×3")
	for i := range 51 {
		c.add(fmt.Sprintf(`{"product_id":%s,"fields":{"Account email":"%d@example.com"}}`, account, i))
	}
	c.ok("PATCH", "/playground/products/"+ticket, `{"stock":2}`)
	c.ok("PATCH", "/playground/products/"+account, `{"price":1}`)
	broken := c.ok("GET", "/cart", "")
	assert.Equal(t, broken.fixes(), 52, "fixes")

	p.do(chromedp.Reload())
	p.press("#fix:not([hidden])")
	p.until(`document.querySelector("#fix").hidden`)
	mended := c.ok("GET", "/cart", "")
	assert.That(t, mended.fixes() == 0 && mended.Data.Count == 53 && mended.Data.Version == broken.Data.Version+2, "the cart has %d items and version %d, after %d", mended.Data.Count, mended.Data.Version, broken.Data.Version)
	mu.Lock()
	defer mu.Unlock()
	key := func(i int) string { return strings.Fields(sent[i])[0] }
	assert.That(t, len(sent) == 3 && sent[0] == sent[1] && key(1) != key(2), "sent %.50q", sent)
}

// A link offers its cart, and a click moves it: the page has its new token, the address no code.
func TestStorefrontGuide_OpensACartFromALink(t *testing.T) {
	slow(t)
	demo := startDemo(t)
	phone := demo.shopper(t, "")
	phone.fill("1×2 2×1")
	link := phone.ok("POST", "/cart/handover", "").Data.Code
	shop := saveGuidePage(t, demo.url, "cart.html")
	p := open(t, shop.address+"#handover="+link, look{})
	p.expect("404 /favicon.ico")
	p.until(`document.querySelector("#offer").checkVisibility() && document.querySelector("#offered").textContent === "A link offers you a cart for 109 SAR."`)
	p.untilStatus(shop.shows[0])
	phone.wantLines("1×2 2×1")
	p.press("#open")
	p.untilStatus("3 in the cart, 109 SAR")
	p.until(`!document.querySelector("#offer").checkVisibility() && location.hash === "" && ` + cartToken + ` !== "` + phone.token + `"`)
	p.press("#lines button")
	p.untilStatus("4 in the cart, 158.5 SAR")
	phone.wantLines("")
}

// A login merges the guest's cart, and the shopper takes that back.
func TestStorefrontGuide_UndoesAMerge(t *testing.T) {
	slow(t)
	demo := startDemo(t)
	p, shop := openGuide(t, demo.url, "cart.html")
	guest := demo.shopper(t, evaluate[string](p, cartToken))
	guest.fill("1×2")
	p.run(`sessionStorage.jwt = "` + demo.jwt + `"`)
	p.do(chromedp.Reload())
	p.untilStatus("2 in the cart, 99 SAR")
	p.press("#merged:not([hidden]) button")
	p.untilStatus(shop.shows[0])
	p.until(`document.querySelector("#merged").hidden`)
	demo.shopper(t, evaluate[string](p, cartToken)).wantLines("1×2")
}

// storefront.js gives keys to changes of its service's cart only. Two requests have the same key only if
// the second one may repeat the first.
func TestStorefrontGuide_KeysOnlyChangesOfTheCart(t *testing.T) {
	slow(t)
	var mu sync.Mutex
	var keys []string // that requests had
	web := serveGateway(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodOptions, r.URL.Path == "/":
			gatewayPage(http.StatusOK)(w, r)
		case r.URL.Path == "/shop/storefront.js":
			sendScript(w)
		default:
			mu.Lock()
			defer mu.Unlock()
			keys = append(keys, r.Header.Get("Idempotency-Key"))
			w.Header().Set("Access-Control-Allow-Origin", "*")
			if r.Header.Get("Accept") == "busy" {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			fmt.Fprint(w, `{"api": "merchant-commerce"}`)
		}
	})
	p := open(t, web, look{})
	p.expect("404 /favicon.ico", "503 /shop/cart/*")
	evaluate[any](p, `import("/shop/storefront.js").then(() => {
		const { origin } = location;
		globalThis.busy = { Accept: "busy" };
		globalThis.call = (headers, { path = "/shop/cart/add", method = "POST", body = "{}" } = {}) =>
			fetch(new URL(path, origin), { method, body, headers: { "X-Timestamp": stamp, ...headers } });
		globalThis.twice = (first, ...second) => call(first).then(() => call(...second));
		return null;
	})`)
	for i, tc := range []struct {
		calls string
		keys  int // different ones
	}{
		{`call({}, { method: "GET", path: "/shop/cart/count", body: null })`, 0},
		{`call({}, { method: "HEAD", path: "/shop/cart/count", body: null })`, 0},
		{`call({}, { path: "/shop/cartoon/add" })`, 0},
		{`call({}, { path: "/cart/add" })`, 0},
		{`call({}, { path: "` + strings.Replace(web, "127.0.0.1", "localhost", 1) + `/shop/cart/add" })`, 0},
		{`call({}, { method: "DELETE", path: "/shop/cart/clear", body: "" })`, 1},
		{`fetch(new Request("shop/cart/add", { method: "post", body: "{}" }))`, 1},
		{`twice({ "Idempotency-Key": "mine" }, { "Idempotency-Key": "mine" })`, 1},
		{`twice(busy, busy).then(() => call(busy))`, 1}, // retries
		{`twice({}, {})`, 2}, // clicks within a second
		{`Promise.all([call({}), call({})])`, 2},
		{`Promise.all([call(busy), call(busy)]).then(() => Promise.all([call(busy), call(busy)]))`, 2},
		{`twice(busy, { "X-Timestamp": "another" })`, 2},
		{`twice(busy, { "X-Cart-Token": "another" })`, 2},
		{`twice(busy, { Authorization: "Bearer another" })`, 2},
		{`twice(busy, busy, { body: "[]" })`, 2},
		{`twice(busy, busy, { path: "/shop/cart/coupon" })`, 2},
		{`twice({ ...busy, "X-Timestamp": "" }, { ...busy, "X-Timestamp": "" })`, 2}, // perhaps not a retry
	} {
		evaluate[any](p, fmt.Sprintf(`globalThis.stamp = "%d"; %s.then(() => null)`, i, tc.calls))
		mu.Lock()
		slices.Sort(keys)
		different := slices.Compact(keys)
		if tc.keys == 0 {
			assert.Equal(t, different, []string{""}, "%s: keys", tc.calls)
		} else {
			assert.That(t, len(different) == tc.keys && different[0] != "", "%s has the keys %q, want %d", tc.calls, different, tc.keys)
		}
		keys = nil
		mu.Unlock()
	}
}

// A page hears of each version once, however the streams are cut into pieces, and asks again from the last event. It has no
// stream while it is hidden, or has no cart until it changes one. With other headers, it asks at once.
func TestStorefrontGuide_HearsOfEachVersionOnce(t *testing.T) {
	slow(t)
	p := open(t, serveGateway(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/storefront.js" {
			sendScript(w)
		} else {
			w.Header().Set("ETag", r.URL.Query().Get("tag"))
			fmt.Fprint(w, `{"api": "merchant-commerce"}`)
		}
	}), look{})
	p.expect("404 /favicon.ico")
	// hear returns the versions that events yields, and what each request sends. A response to it is a stream if it is a list, of
	// pieces and of functions that run between them.
	p.run(`const { fetch } = globalThis, hearers = globalThis.hearers = [];
		globalThis.late = new Promise((done) => { globalThis.answer = done; });
		const { setTimeout } = globalThis;
		globalThis.setTimeout = (run, ms, ...values) => setTimeout(run, ms === 45_000 ? 300 : ms, ...values);
		globalThis.fetch = (resource, options) => {
			if (resource.url?.endsWith("late")) return late.then(() => fetch(resource));
			return (resource.endsWith?.("/events") ? hearers[options.headers.hearer] : fetch)(resource, options);
		}`)
	evaluate[any](p, `import("/storefront.js").then(({ events }) => Object.assign(globalThis, {
		at: "retry: 1\n\n",
		told: (id, version) => "event: cart\nid: " + id + "\ndata: {\"version\":" + version + "}\n\n",
		silence: {},
		reply: (status, headers) => new Response("<h1>Log in to the network</h1>", { status, headers }),
		wait: (ms) => new Promise((done) => setTimeout(done, ms)),
		call: (method, as = "guest", path = method === "GET" ? "/cart" : "/cart/add") => { globalThis.who = as; return fetch(path, { method }); },
		hide(hidden) {
			Object.defineProperty(document, "hidden", { configurable: true, value: hidden });
			document.dispatchEvent(new Event("visibilitychange"));
		},
		async hear(...responses) {
			const heard = [], asked = [], stop = globalThis.stop = new AbortController();
			globalThis.who = "guest";
			const streamOf = (pieces, signal) => new ReadableStream({ async start(stream) {
				signal.addEventListener("abort", () => stream.error(signal.reason));
				for (const piece of pieces) {
					if (signal.aborted) return;
					if (typeof piece === "string") stream.enqueue(new TextEncoder().encode(piece));
					else await piece();
					await wait(9);
				}
				stream.close();
			} });
			const hearer = hearers.push(async (_, { headers, signal }) => {
				asked.push(headers.who + (document.hidden ? "hidden" : "") + (headers["Last-Event-ID"] ?? ""));
				const response = responses[asked.length - 1] ?? (stop.abort(), Response.error());
				if (response === silence) return new Promise((_, fail) => signal.addEventListener("abort", () => fail(signal.reason)));
				return Array.isArray(response) ? new Response(streamOf(response, signal), { headers: { "Content-Type": "text/event-stream" } }) : response;
			}) - 1;
			for await (const { version } of events({ headers: () => ({ who, hearer }), signal: stop.signal })) heard.push(version);
			return heard + " of " + asked;
		},
	}) && null)`)
	for calls, want := range map[string]string{
		`hear([at, told("a", 1), ": \n\n", told("b", 2)])`:                                                                                                     "1,2 of guest,guestb",
		`hear([at + told("a", 1).slice(0, 20), told("a", 1).slice(20) + ":", " \n\n"])`:                                                                        "1 of guest,guesta",
		`hear([at + told("a", 1) + told("b", 2) + told("c", 3)])`:                                                                                              "3 of guest,guestc",
		`hear([at, told("a", 1), told("a", 1)], [at, told("a", 1), told("b", 2)])`:                                                                             "1,2 of guest,guesta,guestb",
		`hear([at, told("a", 1), told("b", 2).slice(0, 20)], [at, told("b", 2)])`:                                                                              "1,2 of guest,guesta,guestb",
		`hear([at, told("a", 7), told("0", 0)], [at, told("b", 1)])`:                                                                                           "7,0,1 of guest,guest0,guestb",
		`hear(reply(503), [at, told("a", 1)])`:                                                                                                                 "1 of guest,guest,guesta",
		`hear(reply(200), Response.error(), [at])`:                                                                                                             " of guest,guest,guest,guest",
		`(setTimeout(call, 300, "POST"), hear(reply(404), [at, told("a", 1)]))`:                                                                                "1 of guest,guest,guesta",
		`(setTimeout(call, 300, "GET", "sara"), hear(reply(401), [at, told("a", 1)]))`:                                                                         "1 of guest,sara,saraa",
		`hear([at, told("a", 1), () => call("GET", "sara"), told("b", 2)], [at])`:                                                                              "1 of guest,saraa,saraa",
		`hear([at, told("a", 1), () => hide(true) || wait(99).then(hide)], [told("b", 2)])`:                                                                    "1,2 of guest,guesta,guestb",
		`hear([at, told("a", 1), () => call("GET", "guest", '/cart?tag="r-en"'), told("r", 2)])`:                                                               "1 of guest,guestr",
		`hear([at, told("a", 1), () => call("GET", "guest", '/cart/summary?tag="s-en"'), told("s", 2)])`:                                                       "1,2 of guest,guests",
		`(setTimeout(call, 300, "GET", "guest", '/cart?tag="1.2.3-en"'), hear(reply(404), [at, told("a", 1)]))`:                                                "1 of guest,guest,guesta",
		`hear(silence, [at, told("a", 1)])`:                                                                                                                    "1 of guest,guest,guesta",
		`(setTimeout(() => stop.abort(), 400), hear(reply(503, { "Retry-After": "Fri, 27 Nov 2026 06:00:00 GMT" })))`:                                          " of guest",
		`hear([at, () => void call("POST", "guest", "/cart/late"), told("a", 1), () => wait(50), () => { stop.abort(); answer(); }])`:                          " of guest",
		`(setTimeout(call, 300, "POST"), Promise.all([hear(reply(404), [at, told("a", 1)]), hear(reply(404), [at, told("b", 2)])]).then((all) => all.join()))`: "1 of guest,guest,guesta,2 of guest,guest,guestb",
	} {
		assert.Equal(t, evaluate[string](p, calls), want, "%s: versions and requests", calls)
	}
	evaluate[any](p, `call("GET").then((response) => { globalThis.response = new WeakRef(response); return null; })`)
	ephemeral.Eventually(t, "the end of a response", func() bool {
		p.do(send(heapprofiler.CollectGarbage, cdp.Empty{}))
		return evaluate[bool](p, `response.deref() === undefined`)
	})
}

// The page shows what another device changes, over one stream: also after an outage, and after it has moved another cart into
// its own.
func TestStorefrontGuide_ShowsChangesOnOtherDevices(t *testing.T) {
	slow(t)
	demo := startDemo(t)
	service := proxyTo(t, demo.url)
	var streams, most, reads atomic.Int64
	var out atomic.Bool
	var mu sync.Mutex
	end := func() {} // ends the stream
	p, shop := openGuide(t, serveGateway(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet && r.URL.Path == "/cart":
			reads.Add(1)
		case r.Method == http.MethodGet && r.URL.Path == "/cart/events":
			if out.Load() {
				gatewayPage(http.StatusBadGateway)(w, r)
				return
			}
			most.Store(max(most.Load(), streams.Add(1)))
			defer streams.Add(-1)
			ctx, cancel := context.WithCancel(r.Context())
			mu.Lock()
			end = cancel
			mu.Unlock()
			r = r.WithContext(ctx)
		}
		service.ServeHTTP(w, r)
	}), "shop.html", "502 /cart/events", "0 /cart/events")
	p.press("button")
	p.untilStatus(shop.shows[1])
	ephemeral.Eventually(t, "a stream", func() bool { return streams.Load() == 1 })

	other := demo.shopper(t, evaluate[string](p, cartToken))
	read := reads.Load()
	other.add(`{"product_id":1}`)
	p.untilStatus("2 in the cart, 59.5 SAR")
	p.press("button")
	p.untilStatus("3 in the cart, 69.5 SAR")
	assert.Equal(t, reads.Load()-read, 1, "reads after a change on another device and one of its own")

	out.Store(true)
	mu.Lock()
	end()
	mu.Unlock()
	ephemeral.Eventually(t, "the end of the stream", func() bool { return streams.Load() == 0 })
	other.add(`{"product_id":1}`)
	other.add(`{"product_id":1}`)
	out.Store(false)
	p.untilStatus("5 in the cart, 168.5 SAR")
	assert.Equal(t, reads.Load()-read, 2, "reads after an outage")
	assert.Equal(t, most.Load(), 1, "streams at a time")
}

// The shopper does not see what a gateway says.
func TestStorefrontGuide_HidesAGatewaysPage(t *testing.T) {
	slow(t)
	shop := saveGuidePage(t, serveGateway(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/storefront.js" {
			w.Header().Set("Access-Control-Allow-Origin", "*")
			sendScript(w)
		} else {
			gatewayPage(http.StatusForbidden)(w, r)
		}
	}), "shop.html")
	p := open(t, shop.address, look{})
	p.expect("404 /favicon.ico", "403 /cart")
	p.untilStatus("The shop cannot be reached. Your changes are kept.")
}

func sendScript(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/javascript")
	_, _ = w.Write(docs.Storefront)
}

type guidePage struct {
	address string
	shows   []string // its lines, one after the other
}

// cartToken is that of the guide's pages with the client of docs/storefront.js.
const cartToken = `localStorage["pk_demo.cart"]`

// saveGuidePage saves the guide's files and serves them. A page calls the service at a URL.
func saveGuidePage(t *testing.T, service, page string) guidePage {
	t.Helper()
	reader := terminal{dir: installPackages(t, "npmtrip"), url: service}
	saved := guidePage{address: serveFolder(t, reader.dir) + "/" + page}
	for _, e := range examplesOf(t, "docs/storefront.md") {
		if strings.HasPrefix(e.script, "cat >") {
			reader.run(t, e.script)
		}
		if e.runBy == "TestStorefrontGuide_WorksInABrowser" {
			saved.shows = strings.Split(strings.TrimSpace(e.prints), "\n")
		}
	}
	assert.Require(t, len(saved.shows) >= 3, "the guide's page shows only %q", saved.shows)
	return saved
}

// openGuide opens a page of the guide for a service at a URL, without a cart. See page.expect.
func openGuide(t *testing.T, service, name string, expected ...string) (page, guidePage) {
	t.Helper()
	shop := saveGuidePage(t, service, name)
	p := open(t, shop.address, look{})
	p.expect(append(expected, "404 /favicon.ico")...)
	p.untilStatus(shop.shows[0])
	return p, shop
}

// serveFolder serves a folder on another port with the guide's command.
func serveFolder(t *testing.T, dir string) string {
	t.Helper()
	examples := examplesOf(t, "docs/storefront.md")
	i := slices.IndexFunc(examples, func(e example) bool { return e.runBy == "TestStorefrontGuide_WorksInABrowser" })
	port := fmt.Sprint(ephemeral.FreePorts(t, 1)[0])
	files := exec.Command("sh", "-euc", "exec "+strings.ReplaceAll(examples[i].script, "3000", port))
	files.Dir = dir
	assert.NoError(t, files.Start())
	t.Cleanup(func() {
		_ = files.Process.Kill()
		_ = files.Wait()
	})
	address := "http://localhost:" + port
	ephemeral.Eventually(t, examples[i].script+" (sh deploy/ephemeral/install.sh)", func() bool {
		response, err := http.Get(address)
		if err == nil {
			response.Body.Close()
		}
		return err == nil
	})
	return address
}

func (p page) untilStatus(line string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`[...document.querySelectorAll("[role=status], [role=alert]")].some(({ textContent }) => textContent === %q)`, line))
}

// The code of docs/mobile.md: the Kotlin over a network that loses the first response to each change. Swift has no compiler here.
func TestMobileGuide_KotlinCountsEachChangeOnceAndSwiftParses(t *testing.T) {
	slow(t)
	dir := installPackages(t, "mobile")
	page := string(assert.Must(os.ReadFile(filepath.Join(repository, "docs/mobile.md")))(t))
	url, lost, _ := loseReplies(t, startDemo(t).url)
	code := map[string]string{}
	for _, block := range fence.FindAllStringSubmatch(strings.ReplaceAll(page, "http://10.0.2.2:8080", url), -1) {
		if language, text := block[4], block[5]; !strings.Contains(text, "EncryptedSharedPreferences") { // which only Android has
			code[language] += text
		}
	}
	assert.NoError(t, os.WriteFile(filepath.Join(dir, "Cart.kt"), []byte(code["kotlin"]), 0o600))
	run := func(program, input string, args ...string) string {
		cmd := command(t, program, args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
		said, err := cmd.CombinedOutput()
		assert.Require(t, err == nil, "%s (sh deploy/ephemeral/install.sh): %v\n%s", program, err, said)
		return string(said)
	}
	libraries := filepath.Join(dir, "node_modules/kotlin-compiler/lib")
	run("java", "", "-cp", libraries+"/*", "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler", "-no-reflect", "-d", "out", "Cart.kt", "Main.kt")
	// Java does not repeat requests by itself, so that the client does.
	said := run("java", "", "-Dsun.net.http.retryPost=false", "-cp", "out:"+libraries+"/kotlin-stdlib.jar", "MainKt", url, fmt.Sprint(time.Now().Add(-24*time.Hour).Unix()))
	assert.Equal(t, said, `200 "count":0
200 "count":2
200 "count":2
wait 1
wait 2
1 not tried
200, then 304
200 "count":2
422 null
200 "count":0
[data: {"version":1}, data: {"version":2}] false
null after a day
`, "printed")
	assert.Equal(t, lost.Load(), 4, "lost responses")
	assert.That(t, strings.Contains(code["swift"], "actor Cart"), "the page has no client in Swift")
	assert.Equal(t, run("node", code["swift"], "swift.cjs"), "", "faults of the Swift")
}
