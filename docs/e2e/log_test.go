package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"commerce/deploy/assert"
)

// The verdict of each exchange: its kind, whether it is quiet, and its words.
var verdicts = map[string]struct{ exchange, want string }{
	"waiting":            {`{answer: null}`, `waiting Waiting`},
	"applied":            {`{method: "POST", path: "/cart/add", before: 3, answer: {status: 200, data: {version: 4}}}`, `changed Changed: version 3 → 4`},
	"applied first":      {`{method: "POST", path: "/cart/add", answer: {status: 200, data: {version: 1}}}`, `changed Changed: now version 1`},
	"a no-op":            {`{method: "PATCH", path: "/cart/items/1", before: 4, answer: {status: 200, data: {version: 4}}}`, `unchanged No change: still version 4`},
	"no cart to clear":   {`{method: "DELETE", path: "/cart/clear", answer: {status: 200, data: {version: 0}}}`, `unchanged No change`},
	"a replay":           {`{method: "POST", path: "/cart/add", before: 3, answer: {status: 200, data: {version: 4}, headers: {"Idempotency-Replayed": "true"}}}`, `replayed Replayed: nothing changed, still version 4`},
	"a lost answer":      {`{method: "POST", path: "/cart/add", before: 3, answer: {status: 0}, lost: {status: 200}}`, `lost Response lost: This page discarded it. Was the change applied?`},
	"no connection":      {`{answer: {status: 0}}`, `unreachable Unreachable: There was no response.`},
	"the cart":           {`{path: "/cart", answer: {status: 200, text: "é!", data: {version: 4, items: [1, 2]}}}`, `read Read: version 4, 2 lines`},
	"a damaged token":    {`{path: "/cart", headers: {"X-Cart-Token": "old"}, answer: {status: 200, headers: {"X-Cart-Token": "new"}, data: {version: 0, items: []}}}`, `read Read: a new cart token replaces the one sent, no lines`},
	"an unchanged cart":  {`{path: "/cart", answer: {status: 304}}`, `notModified (quiet) Not modified`},
	"a count":            {`{path: "/cart/count", answer: {status: 200, data: {count: 3, lines: 2}}}`, `read Read: 3 items, 2 lines`},
	"a summary":          {`{path: "/cart/summary", answer: {status: 200, data: {total: 5, currency: "SAR"}}}`, "read Read: total SAR\u00a05.00"},
	"a stream":           {`{path: "/cart/events", events: 2, answer: {status: 200}}`, `live Live: 2 events`},
	"an event":           {`{path: "/cart/events", event: {id: "a.4.b", version: 4}, answer: {status: 200}}`, `event Event: now version 4`},
	"a cart that moved":  {`{path: "/cart/events", event: {id: "a.0.b", version: 0}, answer: {status: 200}}`, `event Event: no lines`},
	"too many streams":   {`{path: "/cart/events", events: 0, answer: {status: 503, code: "unavailable", message: "m"}}`, `busy unavailable: m`},
	"a link":             {`{method: "POST", path: "/cart/share", answer: {status: 200, data: {code: "c"}}}`, `changed Changed: a link to a copy of the lines`},
	"carts at rest":      {`{path: "/playground/abandoned?idle=1s", answer: {status: 200, ok: false, text: "{}\n{}\n{}\n"}}`, `read Read: 2 customers' carts`},
	"a shared copy":      {`{path: "/cart/share/c", answer: {status: 200, data: {items: [1]}}}`, `read Read: 1 line`},
	"a merge":            {`{path: "/cart", answer: {status: 200, data: {version: 2, merge: {lines: 2, adjusted: [1], code: null}}}}`, `merged Carts merged: 2 lines moved, 1 quantity reduced, version 2`},
	"no room to merge":   {`{path: "/cart", answer: {status: 200, data: {version: 2, merge: {lines: 0, adjusted: [], code: "cart_full"}}}}`, `refused cart_full: The cart has no room for the guest cart, which stays unchanged.`},
	"a rule":             {`{method: "POST", answer: {status: 422, code: "insufficient_stock", message: "Only 3."}}`, `refused insufficient_stock: Only 3.`},
	"a rule at login":    {`{method: "POST", answer: {status: 422, code: "out_of_stock", message: "m", data: {merge: {lines: 1}}}}`, `refused out_of_stock: m Before that, the guest cart was merged.`},
	"another version":    {`{method: "PATCH", answer: {status: 412, code: "version_mismatch", message: "m", data: {version: 6}}}`, `conflict version_mismatch: The cart was changed elsewhere. It is now version 6.`},
	"a stale token":      {`{answer: {status: 401, code: "unauthenticated", message: "m"}}`, `unauthenticated unauthenticated: m`},
	"too many":           {`{answer: {status: 429, code: "rate_limited", message: "m", headers: {"Retry-After": "2"}}}`, `busy rate_limited: m Retry in 2 s.`},
	"down":               {`{answer: {status: 503, code: "unavailable", message: "m"}}`, `busy unavailable: m`},
	"a gateway's 504":    {`{method: "POST", answer: {status: 504}}`, `unknown Outcome unknown: The change may have been applied. Its key makes a retry safe.`},
	"a defect":           {`{answer: {status: 500, code: "internal", message: "m"}}`, `failed internal: m`},
	"a valid cart":       {`{path: "/cart/validate", answer: {status: 200, data: {warnings: [1]}}}`, `valid Valid: ready for checkout, 1 warning`},
	"one issue":          {`{path: "/cart/validate", answer: {status: 400, code: "cart_invalid", data: {issues: [{message: "Empty."}]}}}`, `invalid cart_invalid: Empty.`},
	"issues":             {`{path: "/cart/validate", answer: {status: 400, code: "cart_invalid", data: {issues: [1, 2]}}}`, `invalid cart_invalid: 2 issues`},
	"a page":             {`{path: "/subscriptions?page=1000", answer: {status: 200, data: {current_page: 1000, data: [1, 2]}}}`, `read Read: page 1,000: 2 rows`},
	"a subscription":     {`{path: "/subscriptions/7", answer: {status: 200, data: {id: 7, status: "active"}}}`, "read Read: subscription \u20667\u2069: \u2066active\u2069"},
	"the feed":           {`{path: "/subscriptions/events?after=x", answer: {status: 200, data: {data: [1, 2], has_more: true}}}`, `read Read: 2 events, and there are more`},
	"nothing in it":      {`{path: "/subscriptions/events", answer: {status: 200, data: {data: [], has_more: false}}}`, `read (quiet) Read: nothing new`},
	"ended by the page":  {`{path: "/subscriptions/events?after=x&wait=25", answer: {status: 0, stopped: true}}`, `read (quiet) Read: ended by this page`},
	"a history":          {`{path: "/subscriptions/7/history?limit=5", answer: {status: 200, data: {data: [1, 2]}}}`, `read Read: 2 events`},
	"months":             {`{path: "/subscriptions/metrics", answer: {status: 200, data: {data: [1, 2]}}}`, `read Read: 2 rows`},
	"the merchant's sum": {`{path: "/subscriptions/summary", answer: {status: 200, data: {by_status: {active: 2, paused: 1}, mrr: [{amount: 5, currency: "SAR"}]}}}`, "read Read: 3 subscriptions, SAR\u00a05.00 a month"},
}

// Every verdict also has words in Arabic.
func TestLog_TellsWhatBecameOfARequest(t *testing.T) {
	p, _ := openStore(t)
	var script strings.Builder
	want := map[string]string{}
	for name, v := range verdicts {
		quoted, _ := json.Marshal(name)
		script.WriteString(string(quoted) + ": " + v.exchange + ",\n")
		want[name] = v.want
	}
	said := func() map[string]string {
		return evaluate[map[string]string](p, `import("./playground/js/log/verdict.js").then(({ verdictOf, plainVerdict }) =>
			Object.fromEntries(Object.entries({`+script.String()+`}).map(([name, given]) => {
				const { method = "GET", path = "/", headers = {}, before = null, lost = null, answer, events, event } = given;
				const full = answer && { ok: answer.status === 200, code: "", message: "", text: "", data: null, merge: answer.data?.merge ?? null, header: (n) => answer.headers?.[n] ?? null, ...answer };
				const verdict = verdictOf({ request: { method, path, headers }, before, lost, answer: full, events, event });
				return [name, verdict.kind + (verdict.quiet ? " (quiet) " : " ") + plainVerdict(verdict)];
			})))`)
	}
	assert.Equal(t, said(), want, "verdicts")
	p.press(`#language`)
	p.until(`document.documentElement.lang === "ar"`)
	for name, words := range said() {
		assert.That(t, words != want[name] || strings.Contains(verdicts[name].exchange, "message:"), "%s has no words in Arabic: %s", name, words)
		assert.That(t, !regexp.MustCompile(`undefined|NaN|\{`).MatchString(words), "%s: %s", name, words)
	}
}

func TestLog_ShowsThatARepeatedChangeChangedNothing(t *testing.T) {
	p, _ := openStore(t)
	p.addProduct("1")
	p.press(`.entry[data-kind="changed"] summary`, `.entry[data-kind="changed"] .again`)
	p.reads(`.entry[data-kind='replayed'] .said`, "Replayed nothing changed, still version 1")
	p.sees(`#live`, "Replayed: nothing changed")
	p.reads(`[data-part='count']`, "1")

	p.press(`.entry[data-kind="changed"] input[value="client"]`)
	p.sees(`.snippet`, "storefront.cart.addItem(1, 1")
	p.press(`#language`)
	p.reads(`.entry[data-kind='replayed'] .said`, "طلب مكرر لم يتغير شيء، ما زال الإصدار 1")
	p.sees(`.entry[data-kind='changed'] .snippet`)
	p.press(`#log-clear`)
	p.until(`!document.querySelector("#log-empty").hidden`)
}

// Polls that bring nothing new are one row. The log keeps 60 rows, and says so.
func TestLog_CountsPollsAndSaysWhatItKeeps(t *testing.T) {
	p, _ := openStore(t)
	evaluate[any](p, `import("./playground/js/api/api.js").then(({ begin, end, answerOf }) => {
		window.exchanged = (from, path, status, data) => {
			end(begin({ request: { method: "GET", path, url: "", headers: {} }, from }), answerOf(status, status === 304 ? "" : JSON.stringify({ data }), () => null));
		};
		window.poll = (after, data = []) => exchanged("merchant", "/subscriptions/events?wait=25&after=" + after, 200, { data, has_more: false });
		window.rows = (path) => [...document.querySelectorAll("#log-entries .entry")].map((row) => row.querySelector(".path").textContent + (row.querySelector(".times")?.textContent ?? "")).filter((row) => row.startsWith(path)).join(", ");
	})`)
	for _, step := range []struct{ run, path, want string }{
		{`exchanged("a", "/cart", 304); exchanged("b", "/cart", 304); exchanged("a", "/cart", 304)`, `/cart ×`, `/cart ×2`},
		{`exchanged("a", "/cart/count", 200, { count: 1, lines: 1 }); exchanged("a", "/cart", 304)`, `/cart`, `/cart, /cart/count, /cart ×2, /cart`},
		{`poll(1)`, `/subscriptions/events`, `/subscriptions/events?wait=25&after=1`},
		{`exchanged("merchant", "/subscriptions/7", 200, { id: 7, status: "active" }); poll(2); poll(3)`, `/subscriptions/events`, `/subscriptions/events?wait=25&after=3 ×3`},
		{`poll(4, [1])`, `/subscriptions/events`, `/subscriptions/events?wait=25&after=4, /subscriptions/events?wait=25&after=3 ×3`},
		{`poll(5); poll(6)`, `/subscriptions/events`, `/subscriptions/events?wait=25&after=6 ×2, /subscriptions/events?wait=25&after=4, /subscriptions/events?wait=25&after=3 ×3`},
	} {
		evaluate[any](p, step.run+`; null`)
		assert.Equal(t, evaluate[string](p, fmt.Sprintf(`rows(%q)`, step.path)), step.want, "rows after %s", step.run)
	}

	p.press(`.entry:has(.times) summary`)
	p.sees(`.entry:has(.times) .start-line`)
	evaluate[any](p, `poll(7); null`)
	p.until(`document.querySelector(".entry:has(.times) .start-line").textContent.endsWith("after=7") && document.activeElement.matches(".entry:has(.times) summary")`)

	p.until(`document.querySelector("#log-keeps").hidden`)
	evaluate[any](p, `{ for (let i = 0; i < 60; i++) exchanged("a", "/cart/count?" + i, 200, { count: 1, lines: 1 }); null }`)
	p.until(`document.querySelectorAll("#log-entries .entry").length === 60 && /^60 of (6[1-9]|7\d): /.test(document.querySelector("#log-keeps").textContent)`)
	p.press(`#log-clear`)
	p.until(`document.querySelector("#log-keeps").hidden`)
}

// Tokens are short on the screen, and complete in the copy.
func TestLog_CopiesWholeSnippets(t *testing.T) {
	p, _ := openStore(t)
	p.addProduct("1")
	p.until(`(navigator.clipboard.writeText = async (text) => { window.copied = text; }) && (window.token = localStorage[Object.keys(localStorage).find((key) => key.endsWith(":a.cart_token"))])`)
	p.press(`.entry[data-kind="changed"] summary`)
	for kind, start := range map[string]string{"curl": "curl -i -X POST", "fetch": "const response", "client": "// npm install"} {
		p.press(`.segments [value="` + kind + `"]`)
		p.until(`document.querySelector(".snippet").textContent.startsWith("` + start + `") && !document.querySelector(".snippet").textContent.includes(token)`)
		p.press(`.copy`)
		p.until(`copied.startsWith("` + start + `") && copied.includes(token)`)
		p.reads(`.snippet-bar [role='status']`, "Copied")
	}

	p.until(`navigator.clipboard.writeText = () => Promise.reject(new Error("blocked"))`)
	p.press(`.copy`)
	p.until(`getSelection().toString().includes(token)`)
}

func TestLog_IsABarAndASheetInANarrowWindow(t *testing.T) {
	p, _ := openStore(t)
	p.resize(320, 640)
	p.until(`!document.querySelector("#log-bar").checkVisibility() && !document.querySelector("#log-panel").checkVisibility()`)
	p.addProduct("1")
	p.sees(`#log-newest`, "now version 1")
	p.until(`(({ bottom, top }) => bottom <= innerHeight && top >= innerHeight - 80)(document.querySelector("#log-newest").getBoundingClientRect())`)

	p.press(`#log-bar`)
	p.until(`document.querySelector("#log-panel").matches(":popover-open") && document.activeElement.id === "log-close"`)
	p.press(`#log-panel .entry summary`)
	p.sees(`#log-panel .snippet`)
	p.key("Escape")
	p.until(`!document.querySelector("#log-panel").matches(":popover-open") && document.activeElement.id === "log-bar"`)
	p.press(`#log-bar`)
	p.do(chromedp.MouseClickXY(100, 40))
	p.until(`!document.querySelector("#log-panel").matches(":popover-open")`)

	p.resize(1280, 900)
	p.until(`document.querySelector("#log-panel .entry").checkVisibility() && getComputedStyle(document.querySelector("#log-bar")).display === "none"`)
}

// A path that is too long keeps its end. In Arabic, what is beside it does not touch it.
func TestLog_CutsALongPathInItsMiddle(t *testing.T) {
	slow(t)
	s := startDemo(t)
	for _, l := range []look{{width: 1440}, {width: 1440, language: "ar"}} {
		p := open(t, s.url+"/", l)
		p.press(`#tab-subscriptions`)
		p.rows(15, 5048)
		p.until(`[...document.querySelectorAll(".path")].some(({ textContent }) => textContent.endsWith("&per_page=50"))`)
		faults := evaluate[[]string](p, `[...document.querySelectorAll("#log-entries .call")].flatMap((call) => {
			const [start, end] = call.querySelector(".path").children;
			const parts = [...call.children].filter((part) => part.checkVisibility() && !part.matches(".hidden")).map((part) => part.getBoundingClientRect());
			const box = call.getBoundingClientRect();
			return [
				end.scrollWidth > end.clientWidth + 1 && end.clientWidth > 0 && "its end is cut: ",
				parts.some(({ left, right }) => left < box.left - 1 || right > box.right + 1) && "it leaves its column: ",
				parts.some(({ left }, i) => i > 0 && left - parts[i - 1].right < 3) && "its parts touch: ",
			].filter(Boolean).map((fault) => fault + call.textContent);
		})`)
		assert.That(t, len(faults) == 0, "%s: %q", l, faults)
		is(p, `[...document.querySelectorAll(".path")].some(({ children: [start] }) => start.scrollWidth > start.clientWidth)`, true, "a path is too long")
	}
}
