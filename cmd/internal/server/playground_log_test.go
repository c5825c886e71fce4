package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"commerce/deploy/assert"
)

// The verdict of each exchange: its kind, its code and its facts.
var verdicts = map[string]struct{ exchange, want string }{
	"waiting":            {`{answer: null}`, `waiting {}`},
	"applied":            {`{method: "POST", path: "/cart/add", before: 3, answer: {status: 200, data: {version: 4}}}`, `changed {"versions":[3,4]}`},
	"applied first":      {`{method: "POST", path: "/cart/add", answer: {status: 200, data: {version: 1}}}`, `changed {"nowVersion":1}`},
	"a no-op":            {`{method: "PATCH", path: "/cart/items/1", before: 4, answer: {status: 200, data: {version: 4}}}`, `unchanged {"still":4}`},
	"a replay":           {`{method: "POST", path: "/cart/add", before: 3, answer: {status: 200, data: {version: 4}, headers: {"Idempotency-Replayed": "true"}}}`, `replayed {"nothingChanged":true,"still":4}`},
	"a lost answer":      {`{method: "POST", path: "/cart/add", before: 3, answer: {status: 0}, lost: {status: 200}}`, `lost {"thrownAway":true}`},
	"no connection":      {`{answer: {status: 0}}`, `unreachable {"noResponse":true}`},
	"the cart":           {`{path: "/cart", answer: {status: 200, text: "é!", data: {version: 4, items: [1, 2]}}}`, `read {"version":4,"lines":2,"size":3}`},
	"a damaged token":    {`{path: "/cart", headers: {"X-Cart-Token": "old"}, answer: {status: 200, headers: {"X-Cart-Token": "new"}, data: {version: 0, items: []}}}`, `read {"newToken":true,"version":0,"lines":0,"size":0}`},
	"an unchanged cart":  {`{path: "/cart", answer: {status: 304}}`, `notModified {"size":0}`},
	"a count":            {`{path: "/cart/count", answer: {status: 200, data: {count: 3, lines: 2}}}`, `read {"pieces":3,"lines":2,"size":0}`},
	"a summary":          {`{path: "/cart/summary", answer: {status: 200, data: {total: 5, currency: "SAR"}}}`, `read {"total":{"amount":5,"currency":"SAR"},"size":0}`},
	"a stream":           {`{path: "/cart/events", events: 2, answer: {status: 200}}`, `live {"events":2}`},
	"an event":           {`{path: "/cart/events", event: {id: "a.4.b", version: 4}, answer: {status: 200}}`, `event {"nowVersion":4}`},
	"too many streams":   {`{path: "/cart/events", events: 0, answer: {status: 503, code: "unavailable", message: "m"}}`, `busy unavailable m {}`},
	"a link":             {`{method: "POST", path: "/cart/share", answer: {status: 200, data: {code: "c"}}}`, `changed {"link":true}`},
	"carts at rest":      {`{path: "/playground/abandoned?idle=1s", answer: {status: 200, ok: false, text: "{}\n{}\n{}\n"}}`, `read {"customers":2}`},
	"a shared copy":      {`{path: "/cart/share/c", answer: {status: 200, data: {items: [1]}}}`, `read {"lines":1,"size":0}`},
	"a merge":            {`{path: "/cart", answer: {status: 200, data: {version: 2, merge: {lines: 2, adjusted: [1], code: null}}}}`, `merged {"moved":2,"cut":1,"version":2}`},
	"no room to merge":   {`{path: "/cart", answer: {status: 200, data: {version: 2, merge: {lines: 0, adjusted: [], code: "cart_full"}}}}`, `refused cart_full {"guestCartStays":true}`},
	"a rule":             {`{method: "POST", answer: {status: 422, code: "insufficient_stock", message: "Only 3."}}`, `refused insufficient_stock Only 3. {}`},
	"a rule at login":    {`{method: "POST", answer: {status: 422, code: "out_of_stock", message: "m", data: {merge: {lines: 1}}}}`, `refused out_of_stock m {"mergedFirst":true}`},
	"another version":    {`{method: "PATCH", answer: {status: 412, code: "version_mismatch", message: "m", data: {version: 6}}}`, `conflict version_mismatch {"changedElsewhere":6}`},
	"a stale token":      {`{answer: {status: 401, code: "unauthenticated", message: "m"}}`, `unauthenticated unauthenticated m {}`},
	"too many":           {`{answer: {status: 429, code: "rate_limited", message: "m", headers: {"Retry-After": "2"}}}`, `busy rate_limited m {"retryAfter":2}`},
	"down":               {`{answer: {status: 503, code: "unavailable", message: "m"}}`, `busy unavailable m {}`},
	"a gateway's 504":    {`{method: "POST", answer: {status: 504}}`, `unknown {"mayBeApplied":true}`},
	"a defect":           {`{answer: {status: 500, code: "internal", message: "m"}}`, `failed internal m {}`},
	"a valid cart":       {`{path: "/cart/validate", answer: {status: 200, data: {warnings: [1]}}}`, `valid {"ready":true,"warnings":1}`},
	"one issue":          {`{path: "/cart/validate", answer: {status: 400, code: "cart_invalid", data: {issues: [{message: "Empty."}]}}}`, `invalid cart_invalid Empty. {}`},
	"issues":             {`{path: "/cart/validate", answer: {status: 400, code: "cart_invalid", data: {issues: [1, 2]}}}`, `invalid cart_invalid {"issues":2}`},
	"a page":             {`{path: "/subscriptions?page=1000", answer: {status: 200, data: {current_page: 1000, data: [1, 2]}}}`, `read {"rows":{"page":1000,"n":2},"size":0}`},
	"a subscription":     {`{path: "/subscriptions/7", answer: {status: 200, data: {id: 7, status: "active"}}}`, `read {"subscription":{"id":7,"status":"active"},"size":0}`},
	"the feed":           {`{path: "/subscriptions/changes?after=x", answer: {status: 200, data: {data: [1, 2], deleted: [1], has_more: true}}}`, `read {"updated":2,"deleted":1,"more":true,"size":0}`},
	"nothing in it":      {`{path: "/subscriptions/changes", answer: {status: 200, data: {data: [], deleted: [], has_more: false}}}`, `read {"nothingNew":true,"size":0}`},
	"ended by the page":  {`{path: "/subscriptions/changes?after=x&wait=25", answer: {status: 0, stopped: true}}`, `read {"stopped":true}`},
	"a history":          {`{path: "/subscriptions/7/history?limit=5", answer: {status: 200, data: {data: [1, 2]}}}`, `read {"events":2,"size":0}`},
	"months":             {`{path: "/subscriptions/metrics", answer: {status: 200, data: {data: [1, 2]}}}`, `read {"rows":{"n":2},"size":0}`},
	"the merchant's sum": {`{path: "/subscriptions/summary", answer: {status: 200, data: {by_status: {active: 2, paused: 1}, mrr: []}}}`, `read {"subscriptions":3,"revenue":[],"size":0}`},
}

// Every verdict also has words in both languages.
func TestPlaygroundLog_TellsWhatBecameOfARequest(t *testing.T) {
	p, _ := openStore(t)
	var script strings.Builder
	for name, v := range verdicts {
		quoted, _ := json.Marshal(name)
		script.WriteString(string(quoted) + ": " + v.exchange + ",\n")
	}
	p.click(`#language`)
	p.until(`document.documentElement.lang === "ar"`)
	got := evaluate[map[string]string](p, `Promise.all([import("./playground/js/log/verdict.js"), import("./playground/js/log/words.js")])
		.then(([{ verdictOf }, { plainVerdict }]) => Object.fromEntries(Object.entries({`+script.String()+`}).map(([name, given]) => {
			const { method = "GET", path = "/", headers = {}, before = null, lost = null, answer, events, event } = given;
			const full = answer && { ok: answer.status === 200, code: "", message: "", text: "", data: null, merge: answer.data?.merge ?? null, header: (n) => answer.headers?.[n] ?? null, ...answer };
			const verdict = verdictOf({ request: { method, path, headers }, before, lost, answer: full, events, event });
			if (/undefined|NaN|\{/.test(plainVerdict(verdict))) throw new Error(name + ": " + plainVerdict(verdict));
			return [name, [verdict.kind, verdict.code, verdict.message, JSON.stringify(verdict.facts)].filter(Boolean).join(" ")];
		})))`)
	want := map[string]string{}
	for name, v := range verdicts {
		want[name] = v.want
	}
	assert.Equal(t, got, want, "verdicts")
}

func TestPlaygroundLog_ShowsThatARepeatedChangeChangedNothing(t *testing.T) {
	p, _ := openStore(t)
	p.addProduct("1")
	p.press(`.entry[data-kind="changed"] summary`)
	p.press(`.entry[data-kind="changed"] .again`)
	p.until(`document.querySelector(".entry[data-kind='replayed'] .said")?.textContent === "Replayed nothing changed, still version 1"`)
	p.until(`document.querySelector("#live").textContent.includes("Replayed: nothing changed")`)
	p.until(`document.querySelector("[data-part='count']").textContent === "1"`)

	p.press(`.entry[data-kind="changed"] input[value="client"]`)
	p.until(`document.querySelector(".snippet").textContent.includes("storefront.cart.addItem(1, 1")`)
	p.click(`#language`)
	p.until(`document.querySelector(".entry[data-kind='replayed'] .said").textContent === "طلب مكرر لم يتغير شيء، ما زال الإصدار 1"`)
	p.until(`document.querySelector(".entry[data-kind='changed'] .snippet")`)
	p.click(`#log-clear`)
	p.until(`!document.querySelector("#log-empty").hidden`)
}

// Polls that bring nothing new are one row. The log keeps 60 rows, and says so.
func TestPlaygroundLog_CountsPollsAndSaysWhatItKeeps(t *testing.T) {
	p, _ := openStore(t)
	evaluate[any](p, `import("./playground/js/api/api.js").then(({ begin, end, answerOf }) => {
		window.exchanged = (from, path, status, data) => {
			end(begin({ request: { method: "GET", path, url: "", headers: {} }, from }), answerOf(status, status === 304 ? "" : JSON.stringify({ data }), () => null));
		};
		window.poll = (after, data = []) => exchanged("merchant", "/subscriptions/changes?wait=25&after=" + after, 200, { data, deleted: [], has_more: false });
		window.rows = (path) => [...document.querySelectorAll("#log-entries .entry")].map((row) => row.querySelector(".path").textContent + (row.querySelector(".times")?.textContent ?? "")).filter((row) => row.startsWith(path)).join(", ");
	})`)
	for _, step := range []struct{ run, path, want string }{
		{`exchanged("a", "/cart", 304); exchanged("b", "/cart", 304); exchanged("a", "/cart", 304)`, `/cart ×`, `/cart ×2`},
		{`exchanged("a", "/cart/count", 200, { count: 1, lines: 1 }); exchanged("a", "/cart", 304)`, `/cart`, `/cart, /cart/count, /cart ×2, /cart, /cart, /cart`},
		{`poll(1)`, `/subscriptions/changes`, `/subscriptions/changes?wait=25&after=1`},
		{`exchanged("merchant", "/subscriptions/7", 200, { id: 7, status: "active" }); poll(2); poll(3)`, `/subscriptions/changes`, `/subscriptions/changes?wait=25&after=3 ×3`},
		{`poll(4, [1])`, `/subscriptions/changes`, `/subscriptions/changes?wait=25&after=4, /subscriptions/changes?wait=25&after=3 ×3`},
		{`poll(5); poll(6)`, `/subscriptions/changes`, `/subscriptions/changes?wait=25&after=6 ×2, /subscriptions/changes?wait=25&after=4, /subscriptions/changes?wait=25&after=3 ×3`},
	} {
		evaluate[any](p, step.run+`; null`)
		assert.Equal(t, evaluate[string](p, fmt.Sprintf(`rows(%q)`, step.path)), step.want, "rows after %s", step.run)
	}

	p.press(`.entry:has(.times) summary`)
	p.until(`document.querySelector(".entry:has(.times) .start-line")`)
	evaluate[any](p, `poll(7); null`)
	p.until(`document.querySelector(".entry:has(.times) .start-line").textContent.endsWith("after=7") && document.activeElement.matches(".entry:has(.times) summary")`)

	p.until(`document.querySelector("#log-keeps").hidden`)
	evaluate[any](p, `{ for (let i = 0; i < 60; i++) exchanged("a", "/cart/count?" + i, 200, { count: 1, lines: 1 }); null }`)
	p.until(`document.querySelectorAll("#log-entries .entry").length === 60 && /^60 of (6[1-9]|7\d): /.test(document.querySelector("#log-keeps").textContent)`)
	p.click(`#log-clear`)
	p.until(`document.querySelector("#log-keeps").hidden`)
}

// Tokens are short on the screen, and complete in the copy.
func TestPlaygroundLog_CopiesWholeSnippets(t *testing.T) {
	p, _ := openStore(t)
	p.addProduct("1")
	p.until(`(navigator.clipboard.writeText = async (text) => { window.copied = text; }) && (window.token = localStorage[Object.keys(localStorage).find((key) => key.endsWith(":a.cart_token"))])`)
	p.press(`.entry[data-kind="changed"] summary`)
	for kind, start := range map[string]string{"curl": "curl -i -X POST", "fetch": "const response", "client": "// npm install"} {
		p.press(`.segments [value="` + kind + `"]`)
		p.until(`document.querySelector(".snippet").textContent.startsWith("` + start + `") && !document.querySelector(".snippet").textContent.includes(token)`)
		p.press(`.copy`)
		p.until(`copied.startsWith("` + start + `") && copied.includes(token)`)
		p.until(`document.querySelector(".snippet-bar [role='status']").textContent === "Copied"`)
	}

	p.until(`navigator.clipboard.writeText = () => Promise.reject(new Error("blocked"))`)
	p.press(`.copy`)
	p.until(`getSelection().toString().includes(token)`)
}

func TestPlaygroundLog_IsABarAndASheetInANarrowWindow(t *testing.T) {
	p, _ := openStore(t)
	p.do(chromedp.EmulateViewport(320, 640))
	p.addProduct("1")
	p.until(`document.querySelector("#log-newest").textContent.includes("version 0 → 1")`)
	p.until(`(({ bottom, top }) => bottom <= innerHeight && top >= innerHeight - 80)(document.querySelector("#log-newest").getBoundingClientRect())`)

	p.press(`#log-bar`)
	p.until(`document.querySelector("#log-sheet").open && document.activeElement.id === "log-close"`)
	p.press(`#log-sheet .entry summary`)
	p.until(`document.querySelector("#log-sheet .snippet")`)
	p.until(`document.querySelector("#log-sheet > #live")`)
	p.do(chromedp.KeyEvent("\x1b"))
	p.until(`!document.querySelector("#log-sheet").open && document.activeElement.id === "log-bar"`)
	p.until(`document.querySelector("body > #live")`)
	p.press(`#log-bar`)
	p.do(chromedp.MouseClickXY(100, 40))
	p.until(`!document.querySelector("#log-sheet").open`)

	p.do(chromedp.EmulateViewport(1280, 900))
	p.until(`document.querySelector("#log > #log-panel .entry") && getComputedStyle(document.querySelector("#log-bar")).display === "none"`)
}

// snippetCall is a call of a shopper with the cart of snippetShopper, as the page sends it.
type snippetCall struct {
	method, path, body string
	headers            map[string]string // in addition to those that every call has
	customer           bool
}

var snippetCalls = map[string]snippetCall{
	"read":     {method: "GET", path: "/cart"},
	"customer": {method: "GET", path: "/cart", customer: true},
	"still":    {method: "GET", path: "/cart", headers: map[string]string{"If-None-Match": "*"}},
	"count":    {method: "GET", path: "/cart/count"},
	"validate": {method: "GET", path: "/cart/validate"},
	"summary":  {method: "GET", path: "/cart/summary"},
	"add":      {method: "POST", path: "/cart/add", body: `{"product_id":1,"qty":3}`, headers: keyed},
	"add with everything": {
		method: "POST", path: "/cart/add", headers: keyed,
		body: `{"product_id":5,"qty":1,"fields":{"Account email":"sara@example.com"},"notice":"It's \"قبل الجمعة\" $HOME \\ ` + "`id`" + `\nplease"}`,
	},
	"add a plan":    {method: "POST", path: "/cart/add", body: `{"product_id":4,"qty":1,"subscription_plan":42}`, headers: keyed},
	"add too many":  {method: "POST", path: "/cart/add", body: `{"product_id":2,"qty":9}`, headers: keyed},
	"quantity":      {method: "PATCH", path: "/cart/items/1", body: `{"quantity":5}`, headers: map[string]string{"Idempotency-Key": "k1", "If-Match": "*"}},
	"note":          {method: "PATCH", path: "/cart/items/1", body: `{"notice":"For Omar"}`, headers: keyed},
	"remove":        {method: "DELETE", path: "/cart/items/1", headers: keyed},
	"coupon":        {method: "POST", path: "/cart/coupon", body: `{"coupon":"TEN"}`, headers: keyed},
	"coupon away":   {method: "DELETE", path: "/cart/coupon", headers: keyed},
	"clear":         {method: "DELETE", path: "/cart/clear", headers: keyed},
	"operations":    {method: "POST", path: "/cart/ops", body: `{"mode":"each","ops":[{"op":"remove","item":"1"},{"op":"edit","item":"2","quantity":9}]}`, headers: keyed},
	"subscriptions": {method: "GET", path: "/subscriptions?page=2&per_page=5"},
}

var keyed = map[string]string{"Idempotency-Key": "k1", "X-Timestamp": "1763632800"}

// Each snippet runs for one of two equal carts. The other one gets the same call directly.
func TestPlaygroundSnippets_MakeTheSameCall(t *testing.T) {
	p, s := openStore(t)
	installed := installPackages(t, "npmtrip")
	customers := 2000
	for name, call := range snippetCalls {
		for kind, run := range map[string]func(testing.TB, string, string) snippetResult{"curl": runCurl, "fetch": runModule, "client": runModule} {
			t.Run(name+" as "+kind, func(t *testing.T) {
				directly, bySnippet := snippetShopper(t, s, call, &customers), snippetShopper(t, s, call, &customers)
				code := p.snippet(kind, s, bySnippet, call)
				got := run(t, installed, code)
				if kind == "client" {
					call.headers = nil // the client sends none of them
				}
				want := snippetWanted(directly.sendAll(call), kind == "client" && strings.Contains(code, "storefront.cart"), name)
				assert.Equal(t, got, want, "the result of\n%s", code)
				a, b := directly.cart(), bySnippet.cart()
				assert.That(t, a.lines() == b.lines() && a.Version == b.Version && a.Total == b.Total, "cart %s, version %d; want %s, version %d\n%s", b.lines(), b.Version, a.lines(), a.Version, code)
			})
		}
	}
}

func snippetShopper(t *testing.T, s *shop, call snippetCall, customers *int) *shopper {
	c := s.guest(t)
	if call.customer {
		*customers++
		c = s.customer(t, strconv.Itoa(*customers))
	}
	return c.fill("1×2 2×1")
}

func (c *shopper) sendAll(call snippetCall) answer {
	headers := []string{"Accept-Language", "en"}
	for name, value := range call.headers {
		headers = append(headers, name, value)
	}
	if strings.HasPrefix(call.path, "/subscriptions") {
		headers = append(headers, "Authorization", "Bearer "+c.shop.API)
	}
	return c.send(call.method, call.path, call.body, headers...)
}

// snippet returns a call as the page shows it for this shopper.
func (p page) snippet(kind string, s *shop, c *shopper, call snippetCall) string {
	p.t.Helper()
	headers := map[string]string{"Accept": "application/json", "Accept-Language": "en", "X-Public-Key": s.Key}
	maps.Copy(headers, call.headers)
	if call.body != "" {
		headers["Content-Type"] = "application/json"
	}
	switch {
	case strings.HasPrefix(call.path, "/subscriptions"):
		headers["Authorization"] = "Bearer " + s.API
	case c.JWT != "":
		headers["Authorization"] = "Bearer " + c.JWT
	default:
		headers["X-Cart-Token"] = c.Token
	}
	request := map[string]any{"method": call.method, "path": call.path, "url": s.URL + call.path, "headers": headers}
	if call.body != "" {
		request["body"] = call.body
	}
	argument := assert.Must(json.Marshal(request))(p.t)
	writer := map[string]string{"curl": "curl.js", "fetch": "fetchcall.js", "client": "clientcall.js"}[kind]
	return evaluate[string](p, fmt.Sprintf(`import("./playground/js/log/%s").then((module) => module.%sOf(%s))`, writer, kind, argument))
}

type snippetResult struct {
	Status  int // 0 if it prints none
	Body    any // without the members that differ between two carts
	Refused string
}

// snippetWanted is the result for the answer of the same call. The client returns the data
// alone, and only the number of GET /cart/count.
func snippetWanted(a answer, byClient bool, name string) snippetResult {
	var body any
	_ = json.Unmarshal(a.Raw, &body) // 304 has none
	settled(body)
	if !byClient {
		return snippetResult{Status: a.Status, Body: body}
	}
	if a.Status >= 400 {
		return snippetResult{Refused: a.Body.Message}
	}
	data := body.(map[string]any)["data"]
	switch name {
	case "count":
		data = data.(map[string]any)["count"]
	case "clear":
		data = nil
	}
	return snippetResult{Body: data}
}

func runCurl(t testing.TB, _, code string) snippetResult {
	t.Helper()
	printed, err := command(t, "sh", "-c", code).Output()
	assert.Require(t, err == nil, "%v\n%s", err, code)
	head, content, _ := strings.Cut(string(printed), "\r\n\r\n")
	status, _ := strconv.Atoi(strings.Fields(head)[1])
	var body any
	_ = json.Unmarshal([]byte(content), &body)
	settled(body)
	return snippetResult{Status: status, Body: body}
}

// asBrowser makes Node.js look like a browser to the client, and prints values as JSON.
const asBrowser = `data:text/javascript,globalThis.window={document:{},navigator:{}};` +
	`console.log=(...values)=>process.stdout.write(JSON.stringify(values))`

func runModule(t testing.TB, installed, code string) snippetResult {
	t.Helper()
	file, err := os.CreateTemp(installed, "snippet-*.mjs")
	if err == nil {
		_, err = file.WriteString(code)
	}
	assert.NoError(t, err)
	file.Close()
	node := command(t, "node", "--import", asBrowser, file.Name())
	failure := &strings.Builder{}
	node.Stderr = failure
	printed, err := node.Output()
	if err != nil {
		return snippetResult{Refused: refusalIn(failure.String())}
	}
	var values []any
	_ = json.Unmarshal(printed, &values) // a clear prints nothing
	for _, v := range values {
		settled(v)
	}
	switch len(values) {
	case 0:
		return snippetResult{}
	case 1:
		return snippetResult{Body: values[0]}
	}
	status, _ := values[0].(float64)
	if values[1] == "" {
		values[1] = nil
	}
	return snippetResult{Status: int(status), Body: values[1]}
}

// refusalIn returns the service's sentence in an uncaught error, or the whole error.
func refusalIn(failure string) string {
	_, after, _ := strings.Cut(failure, "message: '")
	message, _, found := strings.Cut(after, "',\n")
	if !found {
		return failure
	}
	return message
}

// settled removes the members that differ between two equal carts, and between two calls.
func settled(body any) {
	members, isObject := body.(map[string]any)
	for name, value := range members {
		if slices.Contains([]string{"timestamp", "request_id", "cart_token", "expires_at"}, name) {
			delete(members, name)
		}
		settled(value)
	}
	if list, isList := body.([]any); isList && !isObject {
		for _, value := range list {
			settled(value)
		}
	}
}
