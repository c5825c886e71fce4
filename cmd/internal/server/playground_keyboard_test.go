package server_test

import (
	"testing"

	"commerce/deploy/ephemeral"
)

// The tour of TestPlaygroundTour without a mouse.
func TestPlaygroundKeyboard_TakesTheWholeTour(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	demo := startDemo(t)
	p := openPageAs(t, demo.url+"/", look{width: 1440})
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
}

// keepsFocus fails the test if the element with the focus has gone, so that the next Tab would
// start at the top of the page.
func (p page) keepsFocus() {
	p.t.Helper()
	assert(p.t, !evaluate[bool](p, `document.activeElement === document.body`), "the focus is lost")
}
