package server_test

import (
	"encoding/json"
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
			const { method = "GET", path = "/", headers = {}, before = null, lost = null, answer } = given;
			const full = answer && { ok: answer.status === 200, code: "", message: "", text: "", data: null, merge: answer.data?.merge ?? null, header: (n) => answer.headers?.[n] ?? null, ...answer };
			const verdict = verdictOf({ request: { method, path, headers }, before, lost, answer: full });
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
