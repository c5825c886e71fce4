package server_test

import (
	"fmt"
	"testing"

	"commerce/deploy/assert"
)

// What a newcomer does in the first two minutes: fill a cart, lose an answer and retry, log in
// and merge, hit the stock limit, edit a line, use a coupon and page the subscriptions.
func TestPlaygroundTour(t *testing.T) {
	t.Parallel()
	looks := everyLook
	if testing.Short() {
		looks = everyLook[:1]
	}
	for _, l := range looks {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			demo := startDemo(t)
			p := openPageAs(t, demo.url+"/#store", l)
			p.expect("422 /cart/add")
			p.hasCarts()
			said := tourSays[l.language == "ar"]
			p.shows("0-empty")

			p.tap(deviceA + tile("1"))
			p.until(inA(`[data-line="1"]`))
			p.tap(deviceA + tile("2"))
			p.until(inA(`[data-line="2"]`))
			p.hasVersion("2")
			p.newestIs("changed")
			p.shows("1-cart")

			p.tap(deviceA + `[data-part="lose"]`)
			p.tap(deviceA + tile("1"))
			p.says("unanswered", said.unanswered)
			p.newestIs("lost")
			p.shows("2-no-answer")
			p.tap(deviceA + `.again`)
			p.says("replayed", said.replayed)
			p.hasVersion("3")
			p.newestIs("replayed")
			p.until(inA(`[data-part="count"]`) + `?.textContent === "3"`)
			p.shows("2-retried")

			p.toDevice("b")
			p.logsIn(deviceB)
			for _, count := range []string{"1", "2", "3"} {
				p.tap(deviceB + tile("2"))
				p.until(`document.querySelector('` + deviceB + `[data-part="count"]').textContent === "` + count + `"`)
			}
			p.toDevice("a")
			p.logsIn(deviceA)
			p.says("merged", said.merged)
			p.newestIs("merged")
			p.shows("3-merged")

			p.tap(deviceA + tile("2"))
			p.says("refused", "insufficient_stock")
			p.newestIs("refused")
			p.shows("4-stock")

			p.tap(deviceA + `[data-line="1"] [aria-expanded]`)
			p.fill(deviceA+`.edit [name="notice"]`, "Before Friday")
			p.shows("5-editing")
			p.tap(deviceA + `.edit .primary`)
			p.until(inA(`[data-line="1"] .outcome-of-edit`) + `?.textContent.includes("` + said.saved + `")`)
			p.until(inA(`[data-line="1"] .about`) + `?.textContent.includes("Before Friday")`)
			p.shows("5-edited")

			p.fill(deviceA+`[name="coupon"]`, "TEN")
			p.tap(deviceA + `[data-part="coupon-form"] button`)
			p.until(inA(`[data-part="coupon-given"] .tag.good`) + `?.textContent.includes("TEN")`)
			p.shows("6-coupon")
			p.tap(deviceA + `[data-part="checkout"]`)
			p.says("checked", said.checked)
			p.shows("6-checkout")

			p.tap(`#tab-subscriptions`)
			p.rows(15, 5048)
			p.tap(`#page-next`)
			p.until(`document.querySelector("#page-position").textContent === "` + said.position + `"`)
			p.until(`document.querySelector(".months") && document.querySelector("#renewals-content li")`)
			p.shows("7-subscriptions")
			p.tap(`.revenue summary`)
			p.shows("7-months")
			p.tap(`[data-subscription="5027"] button`)
			p.until(`document.querySelector("#subscription-history li")`)
			p.shows("7-history")
		})
	}
}

// A link's cart is shown first, and moves after a click. The agent that made it may go on with it if the
// shopper says so. A used link is refused, also in a page that is open.
func TestPlayground_OpensALinkAfterAClick(t *testing.T) {
	slow(t)
	for _, l := range everyLook {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			demo := startDemo(t)
			sender := demo.shopper(t, "").fill("1×2 2×1")
			link := "#handover=" + decode[struct{ Data struct{ Code string } }](t, sender.ok("POST", "/cart/handover", "").Raw).Data.Code
			p := openPageAs(t, demo.url+"/"+link, l)
			p.expect("404 /cart/handover/redeem")
			p.until(inA(`[data-outcome="offered"] li`))
			p.until(`location.hash === "#store"`)
			sender.wantLines("1×2 2×1")
			p.shows("offered")
			p.tap(deviceA + `[data-outcome="offered"] input`)
			p.tap(deviceA + `[data-outcome="offered"] .primary`)
			p.until(inA(`[data-line="2"]`))
			p.shows("opened")
			p.run(`location.hash = "` + link + `"`)
			p.until(inA(`[data-outcome="refused"]`) + `?.textContent.includes("not_found")`)
			sender.wantLines("")
		})
	}
}

// everyLook has each end of the widths, both languages, both colors and a touch screen.
var everyLook = []look{
	{width: 320, height: 568, touch: true},
	{width: 320, height: 568, touch: true, language: "ar", dark: true},
	{width: 1440, dark: true},
	{width: 1440, language: "ar"},
}

const deviceA, deviceB = "#device-a ", "#device-b "

func tile(product string) string { return fmt.Sprintf(`.tile[data-product="%s"] .add`, product) }

// inA is an element of device A in JavaScript, or null.
func inA(selector string) string { return fmt.Sprintf(`document.querySelector(%q)`, deviceA+selector) }

// tourSays is what the screen says in English (false) and Arabic (true).
var tourSays = map[bool]struct{ unanswered, replayed, merged, saved, checked, position string }{
	false: {
		unanswered: "Retry with the same key: the change cannot be applied twice.",
		replayed:   "Replayed: nothing changed. The service had already applied the first request. The cart is still version 3.",
		merged:     "Concert ticket: 4 are too many, so 3 were kept.",
		saved:      "Changes saved.",
		checked:    "This cart is ready for checkout.",
		position:   "Page 2: 16 to 30",
	},
	true: {
		unanswered: "أعد المحاولة بالمفتاح نفسه، فلن يُنفّذ التغيير مرتين.",
		replayed:   "طلب مكرر: لم يتغير شيء. كانت الخدمة قد نفّذت الطلب الأول. السلة ما زالت على الإصدار 3.",
		merged:     "تذكرة حفل: الكمية 4 أكثر من المتاح، فبقيت 3.",
		saved:      "حُفظت التعديلات.",
		checked:    "السلة جاهزة لإتمام الشراء.",
		position:   "الصفحة 2: من 16 إلى 30",
	},
}

// shows checks and keeps what the window shows after a step.
func (p page) shows(step string) {
	p.t.Helper()
	p.noSidewaysScroll()
	p.axe()
	p.screenshot(step)
}

// says waits until device A's outcome is of a kind and has a text.
func (p page) says(kind, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`%s?.textContent.includes(%q)`, inA(`[data-outcome="`+kind+`"] .said`), text))
}

func (p page) hasVersion(version string) {
	p.t.Helper()
	p.until(inA(`[data-part="version"]`) + `?.textContent.endsWith(" ` + version + `")`)
}

// newestIs waits until the newest row of the log, in a wide window of A's calls, is of a kind. The row must be in the window,
// with device A's total and checkout, wherever the shopper has scrolled to.
func (p page) newestIs(kind string) {
	p.t.Helper()
	newest := `#log-entries .entry:has(.from-a):not([data-kind="live"])` // both devices follow the cart
	if p.width < 1120 {
		newest = `#log-newest`
	}
	p.until(fmt.Sprintf(`document.querySelector(%q)?.dataset.kind === %q`, newest, kind))
	for _, selector := range []string{newest, deviceA + `[data-part="sum"]`, deviceA + `[data-part="checkout"]`} {
		if !evaluate[bool](p, fmt.Sprintf(`(() => {
			const element = document.querySelector(%q);
			const { left, top, width, height, bottom } = element.getBoundingClientRect();
			const hit = document.elementFromPoint(left + width / 2, top + height / 2);
			return height > 0 && top >= 0 && bottom <= innerHeight && element.contains(hit);
		})()`, selector)) {
			p.screenshot("out-of-sight")
			p.t.Errorf("%s: %s is not in sight", kind, selector)
		}
	}
}

// toDevice shows a device. A wide window shows both.
func (p page) toDevice(id string) {
	p.t.Helper()
	if p.width < 768 {
		p.tap(`[data-device="` + id + `"]`)
	}
}

func (p page) logsIn(device string) {
	p.t.Helper()
	p.with(device+`[data-part="account"]`, `control.selectedIndex = 1; control.dispatchEvent(new Event("change"))`)
}

// The tour of TestPlaygroundTour without a mouse.
func TestPlaygroundKeyboard_TakesTheWholeTour(t *testing.T) {
	slow(t)
	demo := startDemo(t)
	p := openPageAs(t, demo.url+"/", look{width: 1440, still: true}) // a hash would begin below the links that skip
	p.expect("422 /cart/add")
	p.hasCarts()

	p.key("Tab")
	p.until(`document.activeElement.matches(".skip")`)
	p.key("Enter")
	p.until(`document.activeElement.id === "main"`)
	p.tabTo(deviceA + tile("1"))
	p.key("Enter")
	p.until(inA(`[data-line="1"]`))
	p.tabTo(deviceA + tile("2"))
	p.key("Space")
	p.until(inA(`[data-line="2"]`))

	p.tabBackTo(deviceA + `[data-part="lose"]`)
	p.key("Space")
	p.tabTo(deviceA + tile("1"))
	p.key("Enter")
	p.says("unanswered", "Retry with the same key")
	p.tabTo(deviceA + `.again`)
	p.key("Enter")
	p.says("replayed", "nothing changed")
	p.keepsFocus()

	p.tabTo(deviceB + `[data-part="account"]`)
	p.key("ArrowDown")
	p.until(`document.activeElement.selectedIndex === 1`)
	p.tabTo(deviceB + tile("2"))
	for _, count := range []string{"1", "2", "3"} {
		p.key("Enter")
		p.until(`document.querySelector('` + deviceB + `[data-part="count"]').textContent === "` + count + `"`)
	}
	p.tabBackTo(deviceA + `[data-part="account"]`)
	p.key("ArrowDown")
	p.says("merged", "4 are too many, so 3 were kept.")
	p.until(`document.activeElement.selectedIndex === 1`)

	p.tabTo(deviceA + tile("2"))
	p.key("Enter")
	p.says("refused", "insufficient_stock")
	p.until(`document.activeElement.matches('` + tile("2") + `')`)

	p.tabTo(deviceA + `[data-line="1"] [data-key="1-more"]`)
	p.key("Enter")
	p.until(inA(`[data-line="1"] [name="quantity"]`) + `?.value === "3" && document.activeElement.dataset.key === "1-more"`)
	p.tabTo(deviceA + `[data-line="1"] [aria-expanded]`)
	p.key("Enter")
	p.until(`document.activeElement.matches(".edit *")`)
	p.tabTo(deviceA + `.edit .primary`)
	p.tabBackTo(deviceA + `.edit [name="notice"]`)
	p.key("Before Friday")
	p.tabTo(deviceA + `.edit .primary`)
	p.key("Enter")
	p.until(inA(`[data-line="1"] .outcome-of-edit`))
	p.until(`document.activeElement.matches('[data-line="1"] [aria-expanded="false"]')`)

	p.tabTo(deviceA + `[name="coupon"]`)
	p.key("ten", "Enter")
	p.until(inA(`[data-part="coupon-given"] .tag.good`))
	p.keepsFocus()
	p.tabTo(deviceA + `[data-part="checkout"]`)
	p.key("Enter")
	p.says("checked", "ready for checkout")
	p.keepsFocus()

	p.tabTo(`#log-entries .entry:first-child summary`)
	p.key("Enter")
	p.until(`document.querySelector("#log-entries .entry:first-child .snippet")`)

	p.tabBackTo(`#tab-store`)
	p.key("ArrowRight")
	p.until(`document.activeElement.id === "tab-subscriptions"`)
	p.rows(15, 5048)
	p.tabTo(`#page-next`)
	p.key("Enter")
	p.until(`document.querySelector("#page-position").textContent === "Page 2: 16 to 30" && document.activeElement.id === "page-next"`)
	p.tabBackTo(`#language`)
	p.key("Enter")
	p.until(`document.documentElement.dir === "rtl"`)
}

// keepsFocus wants the focus still on an element, so that Tab does not start at the top.
func (p page) keepsFocus() {
	p.t.Helper()
	assert.That(p.t, !evaluate[bool](p, `document.activeElement === document.body`), "the focus is lost")
}
