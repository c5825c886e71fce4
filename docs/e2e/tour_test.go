package e2e

import (
	"fmt"
	"strings"
	"testing"

	"commerce/deploy/assert"
)

// everyLook has each end of the widths, both languages, both colors, a touch screen, and a visitor without a mouse.
var everyLook = []look{
	{width: 320, height: 568, touch: true},
	{width: 320, height: 568, touch: true, language: "ar", dark: true},
	{width: 1440, dark: true},
	{width: 1440, language: "ar"},
	{width: 1440, still: true, keyboard: true},
}

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

// What a newcomer does in the first two minutes: fill a cart, lose an answer and retry, log in
// and merge, hit the stock limit, edit a line, use a coupon and page the subscriptions.
func TestTour(t *testing.T) {
	t.Parallel()
	looks := everyLook
	if testing.Short() {
		looks = everyLook[:1]
	}
	inEachLook(t, looks, func(t *testing.T, l look) {
		address := startDemo(t).url + "/#store"
		if l.keyboard {
			address = strings.TrimSuffix(address, "#store") // a hash would begin below the links that skip
		}
		p := open(t, address, l)
		p.expect("422 /cart/add")
		p.hasCarts()
		p.skipsToMain()
		said := tourSays[l.language == "ar"]
		p.shows("0-empty")
		p.fillsACartAndRetries(said.unanswered, said.replayed)

		p.toDevice("b")
		p.logsIn(deviceB)
		for _, count := range []string{"1", "2", "3"} {
			p.tap(deviceB + tile("2"))
			p.reads(deviceB+`[data-part="count"]`, count)
		}
		p.toDevice("a")
		p.logsIn(deviceA)
		p.says("merged", said.merged)
		p.newestIs("merged")
		p.keepsFocus(`[data-part="account"]`)
		p.shows("3-merged")
		p.tap(deviceA + tile("2"))
		p.says("refused", "insufficient_stock")
		p.newestIs("refused")
		p.keepsFocus(tile("2"))
		p.shows("4-stock")

		p.editsRedeemsAndChecks(said.saved, said.checked)
		p.opensTheNewestRow()
		p.turnsToSubscriptions(said.position)
	})
}

func (p page) fillsACartAndRetries(unanswered, replayed string) {
	p.t.Helper()
	p.tap(deviceA + tile("1"))
	p.sees(deviceA + `[data-line="1"]`)
	p.tap(deviceA + tile("2"))
	p.sees(deviceA + `[data-line="2"]`)
	p.hasVersion("2")
	p.newestIs("changed")
	p.shows("1-cart")

	p.tap(deviceA + `[data-part="lose"]`)
	p.tap(deviceA + tile("1"))
	p.says("unanswered", unanswered)
	p.newestIs("lost")
	p.shows("2-no-answer")
	p.tap(deviceA + `.again`)
	p.says("replayed", replayed)
	p.hasVersion("3")
	p.newestIs("replayed")
	p.reads(deviceA+`[data-part="count"]`, "3")
	p.keepsFocus("")
	p.shows("2-retried")
}

func (p page) editsRedeemsAndChecks(saved, checked string) {
	p.t.Helper()
	if p.keyboard {
		p.tap(deviceA + `[data-line="1"] [data-key="1-more"]`)
		p.until(inA(`[data-line="1"] [name="quantity"]`) + `?.value === "3"`)
		p.keepsFocus(`[data-key="1-more"]`)
	}
	p.tap(deviceA + `[data-line="1"] [aria-haspopup]`)
	p.sees(deviceA + `.edit`)
	p.keepsFocus(`.edit *`)
	p.enters(deviceA+`.edit [name="notice"]`, "Before Friday")
	p.shows("5-editing")
	p.tap(deviceA + `.edit .primary`)
	p.sees(deviceA+`[data-line="1"] .outcome-of-edit`, saved)
	p.sees(deviceA+`[data-line="1"] .about`, "Before Friday")
	p.keepsFocus(`[data-line="1"] [aria-haspopup]`)
	p.shows("5-edited")

	p.enters(deviceA+`[name="coupon"]`, "TEN")
	p.tap(deviceA + `[data-part="coupon-form"] button`)
	p.sees(deviceA+`[data-part="coupon-given"] .tag.good`, "TEN")
	p.keepsFocus("")
	p.shows("6-coupon")
	p.tap(deviceA + `[data-part="checkout"]`)
	p.says("checked", checked)
	p.keepsFocus("")
	p.shows("6-checkout")
}

// skipsToMain begins without a mouse at the link that skips the page's bar.
func (p page) skipsToMain() {
	p.t.Helper()
	if p.keyboard {
		p.key("Tab")
		p.hasFocus(`.skip`)
		p.key("Enter")
		p.hasFocus(`#main`)
		p.tap(`#tab-store`)
	}
}

// opensTheNewestRow opens the first row of the log if its panel is in the window.
func (p page) opensTheNewestRow() {
	p.t.Helper()
	if p.width >= 1120 {
		p.tap(`#log-entries .entry:first-child summary`)
		p.sees(`#log-entries .entry:first-child .snippet`)
	}
}

func (p page) turnsToSubscriptions(position string) {
	p.t.Helper()
	p.tap(`#tab-subscriptions`)
	p.rows(15, 5048)
	p.tap(`#page-next`)
	p.reads(`#page-position`, position)
	p.keepsFocus(`#page-next`)
	p.sees(`.months`)
	p.sees(`#renewals-content tbody tr`)
	p.shows("7-subscriptions")
	p.tap(`.revenue summary`)
	p.shows("7-months")
	p.tap(`[data-subscription="5027"] button`)
	p.sees(`#subscription-history li`)
	p.shows("7-history")
	if p.keyboard {
		p.key("Escape")
		p.tap(`#language`)
		p.until(`document.documentElement.dir === "rtl"`)
	}
}

// says waits until device A's outcome is of a kind and has a text.
func (p page) says(kind, text string) {
	p.t.Helper()
	p.sees(deviceA+`[data-outcome="`+kind+`"] .said`, text)
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

// logsIn chooses the first customer of the demo.
func (p page) logsIn(device string) {
	p.t.Helper()
	account := device + `[data-part="account"]`
	if p.keyboard {
		p.moveTo(account)
		p.key("ArrowDown")
		p.until(`document.activeElement.selectedIndex === 1`)
		return
	}
	p.with(account, `control.selectedIndex = 1; control.dispatchEvent(new Event("change"))`)
}

// keepsFocus wants the focus still on an element, so that Tab does not start at the top: on one
// that matches the selector, or on any for "". A mouse needs none.
func (p page) keepsFocus(selector string) {
	p.t.Helper()
	switch {
	case !p.keyboard:
	case selector == "":
		assert.That(p.t, !evaluate[bool](p, `document.activeElement === document.body`), "the focus is lost")
	default:
		p.hasFocus(selector)
	}
}

// A link's cart is shown first, and moves after a click. The agent that made it may go on with it if the
// shopper says so. A used link is refused, also in a page that is open.
func TestPlayground_OpensALinkAfterAClick(t *testing.T) {
	slow(t)
	inEachLook(t, everyLook, func(t *testing.T, l look) {
		demo := startDemo(t)
		sender := demo.shopper(t, "").fill("1×2 2×1")
		link := "#handover=" + sender.ok("POST", "/cart/handover", "").Data.Code
		p := open(t, demo.url+"/"+link, l)
		p.expect("404 /cart/handover/redeem")
		p.sees(deviceA + `[data-outcome="offered"] li`)
		p.until(`location.hash === "#store"`)
		sender.wantLines("1×2 2×1")
		p.shows("offered")
		p.tap(deviceA + `[data-outcome="offered"] input`)
		p.tap(deviceA + `[data-outcome="offered"] .primary`)
		p.sees(deviceA + `[data-line="2"]`)
		p.shows("opened")
		p.run(`location.hash = "` + link + `"`)
		p.sees(deviceA+`[data-outcome="refused"]`, "not_found")
		sender.wantLines("")
	})
}
