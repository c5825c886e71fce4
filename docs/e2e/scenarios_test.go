package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
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
	"merge":      {3, nil, []string{"merged", "changed"}, "insufficient_stock"},
	"live":       {4, nil, []string{"live", "event", "changed"}, ""},
	"offline":    {2, nil, []string{"lost", "replayed"}, ""},
	"agent":      {3, nil, []string{"conflict", "changed"}, "cart_changed"},
	"lastItem":   {2, []string{"400 /cart/validate"}, []string{"valid", "invalid"}, "out_of_stock"},
	"handover":   {4, []string{"404 /cart/handover/redeem"}, []string{"lost", "changed", "refused"}, "not_found"},
	"undo":       {4, nil, []string{"merged", "lost", "changed"}, ""},
	"twoTabs":    {3, []string{"412 /cart/items/*"}, []string{"conflict", "changed"}, "version_mismatch"},
	"price":      {3, nil, []string{"valid", "changed"}, "price_changed"},
	"share":      {4, []string{"404 /cart/share/*"}, []string{"lost", "replayed", "changed", "refused"}, "field_missing"},
	"coupon":     {3, []string{"422 /cart/coupon"}, []string{"refused", "changed"}, "coupon_minimum"},
	"staleToken": {3, []string{"401 /cart/add"}, []string{"unauthenticated", "merged"}, "unauthenticated"},
	"atRest":     {3, nil, []string{"read", "changed"}, ""},
	"deepPage":   {3, []string{"400 /subscriptions"}, []string{"read", "refused"}, "invalid_parameter"},
}

// A scenario shows what it says, and leaves everything as it was.
func TestScenarios_PlayToTheirEndAndRestoreEverything(t *testing.T) {
	slow(t)
	for _, l := range []look{{width: 1440}, {width: 360, height: 740, language: "ar", touch: true}} {
		for name, want := range playedScenarios {
			t.Run(name+"/"+l.String(), func(t *testing.T) {
				t.Parallel()
				p, before := openScenarios(t, l)
				p.expect(want.refusals...)
				p.play(name)
				p.hurry()
				p.sees(`#story [data-part='done']`)
				steps := evaluate[string](p, `[...document.querySelectorAll("#story .step")].map((step) => step.className + ": " + step.textContent).join("\n")`)
				done := strings.Count(steps, "step done")
				assert.That(t, done == want.steps && strings.Count(steps, "\n") == want.steps-1, "%d of %d steps are done:\n%s", done, want.steps, steps)
				assert.That(t, strings.Contains(steps, want.code), "no step shows %s:\n%s", want.code, steps)
				for _, kind := range want.log {
					assert.That(t, evaluate[bool](p, `document.querySelector("#log-entries .entry[data-kind='`+kind+`']") !== null`), "the log has no row of kind %s", kind)
				}
				assert.That(t, evaluate[bool](p, `[...document.querySelectorAll("#log-entries .said bdi:not([dir])")].every(({ lang }) => lang === document.documentElement.lang)`), "a message in the log is in another language")
				assert.That(t, evaluate[bool](p, `(({ played, own }) => played.length > 0 && own.length > 0 && played.every((row) => row.querySelector(".played-in")?.title.endsWith(document.querySelector("#story .of").textContent)))(
					Object.groupBy(document.querySelectorAll("#log-entries .entry"), (row) => row.matches(".played") ? "played" : "own"))`), "the log does not tell the scenario's requests from others")
				p.shows("end")
				p.tap(`#story [data-part="done"]`)
				p.hasFocus(`[data-scenario="` + name + `"]`)
				before.areBack(p)
				p.seesNo(`.refusal, .outcome`) // nothing of it stays
				p.until(`!document.querySelector("#log-bar").checkVisibility()`)
				p.until(`!document.querySelector("[name='merchant-store'][value='long']").checked`)
			})
		}
	}
}

func TestScenarios_GoStepByStepWhilePausedAndCloseWithEscape(t *testing.T) {
	slow(t)
	p, before := openScenarios(t, look{})
	p.play("lostAnswer")
	p.until(`document.activeElement.dataset.part === "pause"`)
	p.key("Enter")
	p.until(`document.querySelector("#story [data-part='pause'] use").getAttribute("href").endsWith("#art-play")`)
	p.sleep(time.Second) // the first step may have begun
	done := evaluate[int](p, doneSteps)
	p.press(`#story [data-part="next"]`)
	p.until(fmt.Sprintf(`%s === %d`, doneSteps, done+1))
	p.sleep(4 * time.Second) // longer than a step takes
	assert.Equal(t, evaluate[int](p, doneSteps), done+1, "steps that are done")
	p.press(`#story [data-part="pause"]`)
	p.until(fmt.Sprintf(`%s === %d && document.activeElement.dataset.part === "pause" || %[1]s === 3`, doneSteps, done+2))
	p.press(`#story [data-part="close"]`)
	before.areBack(p)
	p.hasFocus(`[data-scenario="lostAnswer"]`)

	p.play("lostAnswer")
	p.until(`document.activeElement.dataset.part === "pause"`)
	p.key("Escape")
	before.areBack(p)
}

// The last one is followed by none.
func TestScenarios_LeadToTheNextOne(t *testing.T) {
	slow(t)
	p, before := openScenarios(t, look{})
	p.expect("400 /subscriptions")
	p.play("lostAnswer")
	p.hurry()
	p.sees(`[data-part="following"]`, "Log in and merge")
	p.tap(`[data-part="following"]`)
	p.until(`document.querySelectorAll("#story .step.done").length === 3 && document.documentElement.dataset.playing === "merge"`)
	p.run(`location.hash = "play=deepPage"`)
	p.sees(`#story .primary[data-part="done"]`)
	p.seesNo(`[data-part="following"]`)
	p.tap(`#tab-subscriptions`)
	before.areBack(p)
}

const doneSteps = `document.querySelectorAll("#story .step.done").length`

type plannedScenario struct {
	Start, Proof, Whole float64 // ms after the click: of the first step, of the one that proves the point, and of the last one
	Point               string
	Stated              int // seconds, in the list
}

// The point is on the card at once. A step acts after half a second, the one that proves the point within 4 seconds,
// and the last one within 12.
func TestScenarios_KeepTheirPace(t *testing.T) {
	slow(t)
	p, _ := openScenarios(t, look{width: 1440})
	planned := evaluate[map[string]plannedScenario](p, `Promise.all([import("./playground/js/scenarios/scenarios.js"), import("./playground/js/scenarios/pace.js")])
		.then(([{ plays }, { start, lead, rest, lengthOf }]) => Object.fromEntries(plays.map((play) => {
			const listed = (part) => document.querySelector("[data-scenario='" + play.name + "'] ." + part).textContent;
			return [play.name, {
				start, proof: start + play.steps.findIndex(({ proves }) => proves) * (lead + rest), whole: lengthOf(play),
				point: listed("point"), stated: Number.parseInt(listed("length")),
			}];
		})))`)
	assert.Equal(t, len(planned), len(playedScenarios), "scenarios in the list")
	for name, plan := range planned {
		assert.That(t, plan.Start <= 500 && plan.Proof > plan.Start && plan.Proof <= 4_000 && plan.Whole <= 11_000, "%s: %+v", name, plan) // a second is for requests
		assert.That(t, math.Abs(float64(plan.Stated)-plan.Whole/1000) <= 1, "%s states another time: %+v", name, plan)
	}

	plan := planned["lostAnswer"]
	title := evaluate[string](p, `(document.querySelector("[data-scenario='lostAnswer']").click(), window.clicked = performance.now(), new Promise(requestAnimationFrame)).then(() => document.querySelector("#story-title").textContent)`)
	assert.Equal(t, title, plan.Point, "the card's title")
	p.sees(`#story [data-part='done']`)
	took := evaluate[float64](p, `performance.now() - clicked`) // more on a busy machine
	assert.That(t, took >= plan.Whole-10, "it took %.0f ms instead of %.0f", took, plan.Whole)
	t.Logf("planned %.0f ms, took %.0f ms", plan.Whole, took)
}

// A scenario that is closed gives everything back, whatever runs then.
func TestScenarios_RestoreEverythingWhenClosed(t *testing.T) {
	slow(t)
	const closes = `document.querySelector("#story [data-part='close']").click()`
	for name, closed := range map[string]func(page, beforeScenario){
		"before its first step ends": func(p page, before beforeScenario) { before.closesWhileAStepRuns(p, 0) },
		"while its second step runs": func(p page, before beforeScenario) { before.closesWhileAStepRuns(p, 1) },
		"without the network": func(p page, before beforeScenario) {
			p.play("live")
			p.until(`(` + doneSteps + ` === 3) ? (` + closes + `, true) : document.querySelector("#story [data-part='next']").click()`)
			before.areBack(p)
			before.demo.shopper(p.t, evaluate[string](p, tokenOfA)).fill("1×1")
			p.sees(deviceA + `[data-line="1"]`)
		},
		// The device sends a quantity only when the visitor has stopped clicking.
		"after the visitor's last click": func(p page, _ beforeScenario) {
			p.run(inA(`[data-key="8-more"]`) + `.click(); document.querySelector("[data-scenario='lostAnswer']").click()`)
			p.until(doneSteps + ` === 2`)
			p.press(`#story [data-part="close"]`)
			p.until(inA(`[data-line="8"] [name="quantity"]`) + `.value === "2"`)
		},
		// The next one must not get the visitor's carts meanwhile.
		"while it waits for a response, and another begins": func(p page, before beforeScenario) {
			p.run(`const { text } = Response.prototype; Response.prototype.text = async function () { await new Promise((done) => setTimeout(done, 1000)); return text.call(this); }`)
			p.play("lostAnswer")
			p.sees(`#log-entries .entry.played .post`)
			is(p, `(`+closes+`, document.querySelector("#device-a").inert)`, true, "the visitor cannot change the cart of a scenario")
			p.play("offline")
			p.hurry()
			p.until(doneSteps + ` === 2`)
			p.hasFocus(`[data-part="following"]`)
			p.press(`#story [data-part="close"]`)
			before.areBack(p)
			p.until(`!document.querySelector("#device-a").inert`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			closed(openScenarios(t, look{width: 1440}))
		})
	}
}

func (before beforeScenario) closesWhileAStepRuns(p page, steps int) {
	p.t.Helper()
	p.expect("400 /cart/validate")
	p.play("lastItem")
	p.until(fmt.Sprintf(`(document.querySelectorAll("#story .step.done").length === %d) || document.querySelector("#story [data-part='next']").click()`, steps))
	p.run(`document.querySelector("#story [data-part='next']")?.click(); document.querySelector("#story [data-part='close']").click()`)
	before.areBack(p)
}

// The page then reads its carts again.
func TestScenarios_GoOnWhenTheLanguageChangesOrThePageWasHidden(t *testing.T) {
	slow(t)
	for _, name := range []string{"merge", "handover", "twoTabs"} {
		for what, happens := range map[string]string{
			"language": `document.querySelector("#language").click()`, "hidden": `document.dispatchEvent(new Event("visibilitychange"))`,
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				p, before := openScenarios(t, look{width: 1440})
				p.expect(playedScenarios[name].refusals...)
				p.run(`location.hash = "play=` + name + `"`)
				for step := range playedScenarios[name].steps {
					p.until(fmt.Sprintf(`document.querySelectorAll("#story .step:is(.done, .failed)").length > %d || document.querySelector("#story [data-part='next']").click()`, step))
					p.run(happens)
				}
				assert.Equal(t, evaluate[int](p, doneSteps), playedScenarios[name].steps, "steps that are done")
				p.run(`if (document.documentElement.lang === "ar") document.querySelector("#language").click()`)
				p.press(`#story [data-part="close"]`)
				before.areBack(p)
			})
		}
	}
}

// A browser that is killed restores nothing. The price is raised when it happens.
func TestScenarios_NeverChangeTheShopOfOthers(t *testing.T) {
	slow(t)
	p, before := openScenarios(t, look{})
	p.play("price")
	p.hurry()
	p.sees(deviceA+`.line`, "59.50")
	before.isTheShop(t)
	crashing, cancel := context.WithTimeout(p.ctx, time.Second)
	defer cancel()
	_ = chromedp.Do(crashing, send(pagetools.Crash, chromedp.Void{})) // a crashed page may not answer
	before.isTheShop(t)
}

// play starts a scenario from its card.
func (p page) play(name string) {
	p.t.Helper()
	p.tap(`#tab-home`)
	p.tap(`[data-scenario="` + name + `"]`)
}

func (p page) hurry() {
	p.t.Helper()
	p.run(`setInterval(() => document.querySelector("#story [data-part='next']")?.click(), 50)`)
}

type beforeScenario struct {
	demo  *service
	carts string // on the screen
	items string // of a shopper elsewhere, with prices and stock
	token string
}

// openScenarios opens a new demo in which device A's cart has a line and B's two.
func openScenarios(t *testing.T, l look) (page, beforeScenario) {
	t.Helper()
	d := startDemo(t)
	p := open(t, d.url+"/#store", l)
	p.hasCarts()
	for _, add := range []struct{ device, product string }{{deviceB, "8"}, {deviceB, "2"}, {deviceA, "8"}} {
		p.press(add.device + tile(add.product))
		p.sees(add.device + `[data-line="` + add.product + `"]`)
	}

	other := d.shopper(t, "")
	other.fill("1×2 2×1")
	return p, beforeScenario{demo: d, carts: evaluate[string](p, cartsShown), items: other.itemsShown(), token: other.token}
}

// cartsShown are the shopper, the version and the lines of both devices, in JavaScript.
const cartsShown = `[...document.querySelectorAll(".device")].map((device) => {
	const part = (name) => device.querySelector("[data-part='" + name + "']");
	const lines = [...part("lines").children].map((line) => line.dataset.line + " × " + line.querySelector("[name='quantity']").value);
	return [part("account").value, part("version").textContent, ...lines].join(", ");
}).join(" | ")`

// itemsShown are the items of a cart as the service sends them.
func (c *shopper) itemsShown() string {
	c.t.Helper()
	var cart struct {
		Data struct{ Items json.RawMessage }
	}
	assert.NoError(c.t, json.Unmarshal(c.ok("GET", "/cart", "").Raw, &cart))
	return string(cart.Data.Items)
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
