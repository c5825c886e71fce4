package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	pagetools "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"commerce/deploy/assert"
)

type playedScenario struct {
	steps    int
	refusals []string // see page.expect
	log      []string // kinds of rows
	code     string   // of the service, shown at a step; "" for none
}

var playedScenarios = map[string]playedScenario{
	"lostAnswer": {3, nil, []string{"lost", "replayed", "changed"}, ""},
	"offline":    {4, nil, []string{"lost", "replayed"}, ""},
	"live":       {4, nil, []string{"live", "event", "changed"}, ""},
	"merge":      {6, nil, []string{"merged", "notModified"}, "insufficient_stock"},
	"undo":       {7, nil, []string{"merged", "lost", "changed"}, ""},
	"share":      {7, []string{"404 /cart/share/*"}, []string{"lost", "replayed", "changed", "refused"}, "field_missing"},
	"handover":   {7, []string{"404 /cart/handover/redeem"}, []string{"lost", "changed", "refused"}, "not_found"},
	"agent":      {6, nil, []string{"conflict", "changed"}, "cart_changed"},
	"lastItem":   {5, []string{"422 /cart/add", "400 /cart/validate"}, []string{"valid", "refused", "invalid"}, "insufficient_stock"},
	"twoTabs":    {4, []string{"412 /cart/items/*"}, []string{"conflict", "changed"}, "version_mismatch"},
	"price":      {5, nil, []string{"valid", "changed"}, "price_changed"},
	"coupon":     {5, []string{"422 /cart/coupon"}, []string{"refused", "changed"}, "coupon_invalid"},
	"staleToken": {4, []string{"401 /cart/add"}, []string{"unauthenticated", "merged"}, "unauthenticated"},
	"atRest":     {4, nil, []string{"read", "changed"}, ""},
	"deepPage":   {4, []string{"400 /subscriptions"}, []string{"read", "refused"}, "invalid_parameter"},
}

// A scenario shows what it says, and leaves everything as it was.
func TestPlaygroundScenarios_PlayToTheirEndAndRestoreEverything(t *testing.T) {
	slow(t)
	for _, l := range []look{{width: 1440}, {width: 360, height: 740, language: "ar", touch: true}} {
		for name, want := range playedScenarios {
			t.Run(name+"/"+l.String(), func(t *testing.T) {
				t.Parallel()
				p, before := openScenarios(t, l)
				p.expect(want.refusals...)
				p.tap(`[data-scenario="` + name + `"]`)
				p.hurry()
				p.until(`document.querySelector("#story [data-part='done']")`)
				steps := evaluate[string](p, `[...document.querySelectorAll("#story .step")].map((step) => step.className + ": " + step.textContent).join("\n")`)
				done := strings.Count(steps, "step done")
				assert.That(t, done == want.steps && strings.Count(steps, "\n") == want.steps-1, "%d of %d steps are done:\n%s", done, want.steps, steps)
				assert.That(t, strings.Contains(steps, want.code), "no step shows %s:\n%s", want.code, steps)
				for _, kind := range want.log {
					assert.That(t, evaluate[bool](p, `document.querySelector("#log-entries .entry[data-kind='`+kind+`']") !== null`), "the log has no row of kind %s", kind)
				}
				assert.That(t, evaluate[bool](p, `[...document.querySelectorAll("#log-entries .said bdi:not([dir])")].every(({ lang }) => lang === document.documentElement.lang)`), "a message in the log is in another language")
				p.shows("end")
				p.tap(`#story [data-part="done"]`)
				before.areBack(p)
			})
		}
	}
}

func TestPlaygroundScenarios_WaitWhilePausedAndCloseWithEscape(t *testing.T) {
	slow(t)
	p, before := openScenarios(t, look{})
	p.tap(`[data-scenario="lostAnswer"]`)
	p.until(`document.activeElement.dataset.part === "pause"`)
	p.key("Enter")
	p.until(`document.querySelector("#story [data-part='pause'] use").getAttribute("href") === "#art-play"`)
	evaluate[any](p, `new Promise((done) => setTimeout(done, 2000))`) // longer than the pause before a step
	assert.Equal(t, evaluate[int](p, `document.querySelectorAll("#story .step.done").length`), 0, "steps that are done")
	p.key("Enter")
	p.until(`document.querySelectorAll("#story .step.done").length === 1 && document.activeElement.dataset.part === "pause"`)
	p.key("Escape")
	before.areBack(p)
	p.until(`document.activeElement.dataset.scenario === "lostAnswer"`)
}

// A step may run when this scenario is closed.
func TestPlaygroundScenarios_RestoreEverythingWhenClosedInTheMiddle(t *testing.T) {
	slow(t)
	for _, steps := range []int{0, 1, 3} {
		t.Run(fmt.Sprintf("after %d steps", steps), func(t *testing.T) {
			t.Parallel()
			p, before := openScenarios(t, look{})
			p.expect("422 /cart/add", "400 /cart/validate")
			p.tap(`[data-scenario="lastItem"]`)
			p.until(fmt.Sprintf(`(document.querySelectorAll("#story .step.done").length === %d) || document.querySelector("#story [data-part='next']").click()`, steps))
			evaluate[any](p, `{ document.querySelector("#story [data-part='next']")?.click(); document.querySelector("#story [data-part='close']").click(); null }`)
			before.areBack(p)
		})
	}
}

// A browser that is killed restores nothing. The price is raised when it happens.
func TestPlaygroundScenarios_NeverChangeTheShopOfOthers(t *testing.T) {
	slow(t)
	p, before := openScenarios(t, look{})
	p.tap(`[data-scenario="price"]`)
	p.hurry()
	p.until(inA(`.line`) + `?.textContent.includes("59.50")`)
	before.isTheShop(t)
	crashing, cancel := context.WithTimeout(p.ctx, time.Second)
	defer cancel()
	_ = chromedp.Do(crashing, send(pagetools.Crash, chromedp.Void{})) // a crashed page may not answer
	before.isTheShop(t)
}

func TestPlaygroundScenarios_NeedWhatOnlyTheDemoOffers(t *testing.T) {
	p, _ := openStore(t)
	offered := evaluate[string](p, `[...document.querySelectorAll("[data-scenario]")].filter((b) => b.ariaDisabled !== "true").map((b) => b.dataset.scenario).join()`)
	assert.That(t, offered == "lostAnswer,offline,coupon", "offered: %s", offered)
	p.press(`[data-scenario="merge"]`)
	p.until(`document.querySelector("#story").hidden`)
}

func (p page) hurry() {
	p.t.Helper()
	p.run(`setInterval(() => document.querySelector("#story [data-part='next']")?.click(), 50)`)
}

type beforeScenario struct {
	demo  demo
	carts string // on the screen
	items string // of a shopper elsewhere, with prices and stock
	token string
}

// openScenarios opens a new demo in which device A's cart has a line and B's two.
func openScenarios(t *testing.T, l look) (page, beforeScenario) {
	t.Helper()
	d := startDemo(t)
	p := openPageAs(t, d.url+"/#store", l)
	p.hasCarts()
	for _, product := range []string{"8", "2"} {
		p.press(deviceB + tile(product))
		p.until(fmt.Sprintf(`document.querySelector(%q)`, deviceB+`[data-line="`+product+`"]`))
	}
	p.press(deviceA + tile("8"))
	p.until(inA(`[data-line="8"]`))

	other := d.shopper(t, "")
	other.fill("1×2 2×1")
	return p, beforeScenario{demo: d, carts: evaluate[string](p, cartsShown), items: other.itemsShown(), token: other.Token}
}

func (d demo) shopper(t *testing.T, token string) *shopper {
	return &shopper{t: t, shop: &shop{URL: d.url, Key: d.key}, Token: token}
}

// cartsShown are the shopper, the version and the lines of both devices, in JavaScript.
const cartsShown = `[...document.querySelectorAll(".device")].map((device) => {
	const part = (name) => device.querySelector("[data-part='" + name + "']");
	const lines = [...part("lines").children].map((line) => line.dataset.line + " × " + line.querySelector("[name='quantity']").value);
	return [part("account").value, part("version").textContent, ...lines].join(", ");
}).join(" | ")`

func (c *shopper) itemsShown() string {
	c.t.Helper()
	return string(decode[struct {
		Data struct{ Items json.RawMessage }
	}](c.t, c.ok("GET", "/cart", "").Raw).Data.Items)
}

func (before beforeScenario) areBack(p page) {
	p.t.Helper()
	p.until(`document.querySelector("#story").hidden`)
	p.until(fmt.Sprintf(`(%s) === %q`, cartsShown, before.carts))
	before.isTheShop(p.t)
}

// isTheShop fails the test if another shopper sees other prices or stock.
func (before beforeScenario) isTheShop(t *testing.T) {
	t.Helper()
	assert.Equal(t, before.demo.shopper(t, before.token).itemsShown(), before.items, "prices and stock of others")
}
