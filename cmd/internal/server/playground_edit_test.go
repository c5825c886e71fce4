package server_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"commerce/cart"
	"commerce/cmd/internal/pages"
	"commerce/deploy/assert"
)

func TestPlayground_EditsFieldsWithOnePatchOfWhatChanged(t *testing.T) {
	p, _ := openStore(t)
	p.press(`[data-product="5"] .add`)
	p.fill(`.choose [name="fields.Account email"]`, "sara@exmaple.com")
	p.fill(`.choose [name="fields.Region"]`, "us")
	p.addChosen("5")

	p.press(`.line [aria-expanded="false"]`)
	p.until(`document.activeElement.name === "fields.Account email" && document.activeElement.value === "sara@exmaple.com"`)
	p.fill(`.edit [name="fields.Account email"]`, "sara@example.com")
	p.press(`.edit .primary`)
	p.until(`document.querySelector(".line.fresh .outcome-of-edit")?.textContent === "Changes saved."`)
	p.until(`["sara@example.com", "United States"].every((text) => document.querySelector(".line").textContent.includes(text))`)
	p.until(`document.activeElement.matches(".line [aria-expanded='false']")`)
	p.sentPatch(`{"fields":{"Account email":"sara@example.com"}}`)

	p.press(`.line [aria-expanded="false"]`)
	p.fill(`.edit [name="fields.Region"]`, "")
	p.fill(`.edit [name="notice"]`, "Before Friday")
	p.press(`.edit .primary`)
	p.until(`document.querySelector(".line .about").textContent.includes("Note: Before Friday")`)
	p.until(`!document.querySelector(".line").textContent.includes("United States")`)
	p.sentPatch(`{"fields":{"Region":null},"notice":"Before Friday"}`)
}

func TestPlayground_SaysThatAnEditedLineBecameAnother(t *testing.T) {
	p, _ := openStore(t)
	p.press(`[data-product="4"] .add`)
	p.addChosen("4")
	p.press(`.line [aria-expanded="false"]`)
	p.press(`.edit [value="42"]`)
	p.press(`.edit .primary`)
	p.until(`document.querySelector("[data-line='4.p42'] .outcome-of-edit")`)
	p.sentPatch(`{"subscription_plan":42}`)

	p.press(`[data-product="4"] .add`)
	p.addChosen("4")
	p.press(`[data-line="4.p41"] [aria-expanded="false"]`)
	p.press(`.edit [value="42"]`)
	p.press(`.edit .primary`)
	p.until(`document.querySelector("[data-line='4.p42'].fresh .outcome-of-edit")?.textContent.includes("now one line. Quantity: 2.")`)
	p.until(`document.querySelectorAll(".line").length === 1 && document.activeElement.dataset.key === "4.p42-edit"`)
}

func TestPlayground_ShowsAnEditsErrorsAtItsFieldsUntilItIsCanceled(t *testing.T) {
	p, _ := openStore(t)
	p.expect("422 /cart/items/*")
	p.press(`[data-product="5"] .add`)
	p.fill(`.choose [name="fields.Account email"]`, "sara@example.com")
	p.addChosen("5")

	p.press(`.line [aria-expanded="false"]`)
	p.fill(`.edit [name="fields.Account email"]`, "")
	p.press(`.edit .primary`)
	p.until(`document.querySelector(".edit [name='fields.Account email'] + .refusal")?.textContent.includes("is required")`)
	p.until(`document.activeElement.name === "fields.Account email" && document.activeElement.ariaInvalid === "true"`)

	// The form keeps its input when the cart or the language changes, and its focus with the cart.
	p.fill(`.edit [name="notice"]`, "unsaved")
	p.with(`[data-product="1"] .add`, `control.click()`)
	p.until(`document.querySelector("[data-line='1']") && document.querySelector(".edit .refusal")`)
	p.until(`document.activeElement.matches(".edit [name='fields.Account email']")`)
	p.click(`#language`)
	p.until(`document.querySelector(".edit .primary").textContent === "حفظ" && document.querySelector(".edit [name='notice']").value === "unsaved"`)

	p.with(`.edit [name="notice"]`, `control.focus()`)
	p.do(chromedp.KeyEvent("\x1b"))
	p.until(`!document.querySelector(".edit") && document.activeElement.matches(".line [aria-expanded='false']")`)
	p.until(`document.querySelector(".line .about").textContent.includes("sara@example.com")`)
	p.press(`.line [aria-expanded="false"]`)
	p.press(`.edit .primary + button`)
	p.until(`!document.querySelector(".edit") && document.querySelectorAll(".method.patch").length === 1`)
}

func TestPlayground_ALinesQuantityMovesByItsStep(t *testing.T) {
	p, _ := openStore(t)
	p.addProduct("10")
	p.press(`[data-line="10"] [data-key="10-more"]`)
	p.until(`document.querySelector("[data-part='count']").textContent === "10"`)
	p.press(`[data-line="10"] [aria-expanded="false"]`)
	p.press(`.edit [data-key="10-edit-more"]`)
	p.press(`.edit .primary`)
	p.until(`document.querySelector("[data-part='count']").textContent === "15"`)
	p.sentPatch(`{"quantity":15}`)
}

// A click back comes while the first click waits for its answer.
func TestPlayground_SendsTheLastQuantityThatIsClicked(t *testing.T) {
	p, _ := openStore(t)
	p.addProduct("1")
	p.run(lateAnswers("/cart/items/"))
	p.press(`[data-key="1-more"]`)
	p.until(`window.kept`)
	p.press(`[data-key="1-less"]`)
	p.sleep(time.Second)
	p.run(`deliver()`)
	p.sentPatch(`{"quantity":1}`)
	p.until(`document.querySelector("[data-line='1'] [name='quantity']").value === "1"`)
}

// Another product is open when the answer to an add comes.
func TestPlayground_ClosesOnlyTheFormThatWasSent(t *testing.T) {
	p, _ := openStore(t)
	p.press(`[data-product="1"] .open`)
	p.run(lateAnswers("/cart/add"))
	p.press(`.choose .primary`)
	p.until(`window.kept`)
	p.press(`[data-product="5"] .open`)
	p.fill(`.choose [name="fields.Account email"]`, "sara@example.com")
	p.run(`deliver()`)
	p.hasLine("1")
	assert.Equal(t, evaluate[string](p, `document.querySelector(".choose [name='fields.Account email']")?.value ?? "closed"`), "sara@example.com", "the form of another product")
}

// Another tab gets a new token while this one waits for an answer.
func TestPlayground_KeepsTheTokenOfAnotherTab(t *testing.T) {
	p, _ := openStore(t)
	p.expect("404 /cart/events")
	p.addProduct("1")
	p.run(lateAnswers("/cart/add"))
	p.press(`#device-a [data-product="2"] .add`)
	p.until(`window.kept`)
	p.run(`localStorage.setItem("commerce:/:a.cart_token", "a-new-token-of-22-characters"); deliver()`)
	p.hasLine("2")
	assert.Equal(t, evaluate[string](p, `localStorage.getItem("commerce:/:a.cart_token")`), "a-new-token-of-22-characters", "the token")
}

// The cart begins again while the service says that there is none.
func TestPlayground_FollowsACartThatBeginsWhileItConnects(t *testing.T) {
	p, s := openStore(t)
	p.expect("404 /cart/events")
	p.addProduct("1")
	p.until(`document.querySelector(".entry[data-kind='live']")`)
	token := evaluate[string](p, `localStorage.getItem("commerce:/:a.cart_token")`)
	network := func(on string) {
		evaluate[any](p, `import("./playground/js/api/live.js").then(({ setNetwork }) => setNetwork(`+on+`)).then(() => null)`)
	}
	network("false")
	sara := s.customer(t, "1001")
	sara.Token = token
	sara.wantLines("1×1")
	p.run(lateAnswers("/cart/events"))
	network("true")
	p.until(`window.kept`)
	p.addProduct("2")
	p.run(`deliver()`)
	p.until(`!document.querySelector(".entry[data-kind='waiting']")`)
	(&shopper{t: t, shop: s, Token: evaluate[string](p, `localStorage.getItem("commerce:/:a.cart_token")`)}).fill("8×1")
	p.hasLine("8")
}

// openStore opens a new shop with empty carts. Selectors are for device A by default.
func openStore(t *testing.T) (page, *shop) {
	t.Helper()
	slow(t)
	s := openShop(t, embeddedRedis(t), withPlayground(pages.Playground{}))
	p := openPage(t, s.URL+"/#store")
	p.hasCarts()
	return p, s
}

func (p page) hasCarts() {
	p.t.Helper()
	p.until(`document.querySelectorAll("[data-part='basket'][aria-busy='false']").length === 2`)
}

func (p page) addProduct(id string) {
	p.t.Helper()
	p.tap(`#device-a [data-product="` + id + `"] .add`)
	p.hasLine(id)
}

func (p page) addChosen(id string) {
	p.t.Helper()
	p.press(`.choose .primary`)
	p.hasLine(id)
}

// hasLine waits for a line of the product that no edit has made.
func (p page) hasLine(id string) {
	p.t.Helper()
	p.until(`[...document.querySelectorAll(".line")].some((line) => line.dataset.line.split(".")[0] === "` + id + `" && !line.querySelector(".outcome-of-edit"))`)
}

func (p page) sentPatch(body string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`(() => {
		const entry = document.querySelector(".entry:has(.patch) details");
		if (entry) entry.open = true;
		return entry?.querySelector("pre.body")?.textContent.replace(/": |\n */g, (space) => space.trim()) === %q;
	})()`, body))
}

func TestPlayground_ShowsTaxByRateAndWhyACouponDoesNotCount(t *testing.T) {
	p, s := openStore(t)
	s.alter(2, func(p *cart.Product) { p.TaxRate = new(int64) })
	for _, product := range []string{"1", "2"} {
		p.addProduct(product)
	}
	p.click(`[data-part="checkout"]`)
	p.until(`["(15 %)", "(0 %)"].every((rate) => document.querySelector("[data-part='totals']").textContent.includes(rate))`)
	p.until(`[...document.querySelectorAll("[data-part='sample-coupons'] button")].some((b) => b.textContent === "GAMES" && (b.click(), true))`)
	p.until(`document.querySelector("[data-part='coupon-given'] .tag.good")?.textContent.includes("GAMES")`)
	p.until(`document.querySelector('[data-line="1"]').textContent.includes("9.90")`)
	p.click(`[data-line="1"] .remove`)
	p.until(`document.querySelector("[data-part='coupon-given'] .hint")?.textContent.includes("does not apply")`)
}

// fetch refuses to send such a header, so every call of the device would fail for good.
func TestPlayground_HealsATokenWithDamagedBytes(t *testing.T) {
	p, _ := openStore(t)
	evaluate[any](p, `{ localStorage.setItem("commerce:/:a.cart_token", "مرحبا"); null }`)
	p.addProduct("1")
	p.until(`/^[A-Za-z0-9_-]{22,}$/.test(localStorage.getItem("commerce:/:a.cart_token"))`)
}

// The shop raises a price in more lines than a list of operations has, and has sold out of a product.
func TestPlayground_FixesAllThatACheckFinds(t *testing.T) {
	p, s := openStore(t)
	p.expect("400 /cart/validate")
	p.addProduct("2")
	c := &shopper{t: t, shop: s, Token: evaluate[string](p, `localStorage.getItem("commerce:/:a.cart_token")`)}
	for i := range 51 {
		c.add(fmt.Sprintf(`{"product_id":5,"fields":{"Account email":"%d@example.com"}}`, i))
	}
	s.alter(2, func(p *cart.Product) { p.Stock = new(int64) })
	s.alter(5, func(p *cart.Product) { p.Price++ })
	p.click(`[data-part="checkout"]`)
	p.until(`document.querySelectorAll("[data-outcome='checked'] li").length === 52`)
	p.shows("broken")
	p.press(`[data-outcome="checked"] .primary`)
	p.until(`document.querySelector("[data-outcome='checked'].good")`)
	p.until(`!document.querySelector("[data-outcome='checked'] .primary") && document.querySelector("[data-part='count']").textContent === "51"`)
	p.shows("fixed")
}
