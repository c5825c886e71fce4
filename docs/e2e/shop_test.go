package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	"commerce/auth/locale"
	"commerce/cart"
	"commerce/cart/money"
	"commerce/deploy/assert"
	"commerce/deploy/sample"
)

const deviceA, deviceB = "#device-a ", "#device-b "

func tile(product string) string { return fmt.Sprintf(`.tile[data-product="%s"] .add`, product) }

// inA is an element of device A in JavaScript, or null.
func inA(selector string) string { return fmt.Sprintf(`document.querySelector(%q)`, deviceA+selector) }

const (
	tokenOfA = `localStorage.getItem("commerce:/:a.cart_token")`
	editLine = `.line [aria-haspopup]`
)

// openStore opens a new demo with empty carts. Selectors are for device A by default.
func openStore(t *testing.T) (page, *service) {
	t.Helper()
	slow(t)
	s := startDemo(t)
	return openStoreOf(t, s), s
}

func openStoreOf(t *testing.T, s *service) page {
	t.Helper()
	p := open(t, s.url+"/#store", look{})
	p.hasCarts()
	return p
}

func (p page) hasCarts() {
	p.t.Helper()
	p.until(`document.querySelectorAll("[data-part='basket'][aria-busy='false']").length === 2`)
}

func (p page) addProduct(id string) {
	p.t.Helper()
	p.tap(deviceA + tile(id))
	p.hasLine(id)
}

// addForm opens the form of a product and sends it with these fields.
func (p page) addForm(id string, fields map[string]string) {
	p.t.Helper()
	p.press(deviceA + tile(id))
	for name, value := range fields {
		p.fill(`.choose [name="fields.`+name+`"]`, value)
	}
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

func TestShop_AShopperIsRefusedLogsInByATokenAndTurnsToArabic(t *testing.T) {
	p, s := openStore(t)
	sara := &shopper{t: t, service: s, jwt: s.token(t, "in-a-browser")}
	sara.fill("2×3")
	p.expect("422 /cart/add")
	p.addProduct("1")
	p.addProduct("2")
	p.press(deviceA + tile("6"))
	p.sees(`[data-outcome='refused']`, "out of stock")
	p.press(deviceA+tile("5"), `.choose .primary`)
	p.until(`document.querySelector(".choose [name='fields.Account email']").ariaInvalid === "true"`)

	p.with(`[data-part="account"]`, `control.value = "token"; control.dispatchEvent(new Event("change"))`)
	p.fill(`#token-form [name="jwt"]`, sara.jwt)
	p.press(`#token-form [value="use"]`)
	p.sees(`[data-outcome='merged']`, "Concert ticket: 4 are too many, so 3 were kept.")
	sara.wantLines("2×3 1×1")

	p.press(`#language`)
	p.reads(`.basket h3`, "السلة")
	p.until(`document.documentElement.dir === "rtl"`)
	p.sees(`[data-line='1'] .total`, "ر.س")
}

// No call lists products, so the page has its own table, which must match the sample.
func TestShop_ShowsWhatTheSampleStoreSells(t *testing.T) {
	p, _ := openStore(t)
	shown := evaluate[[]map[string]any](p, `import("./playground/js/shop/sample.js").then((sample) => sample.products)`)
	byID, want := map[any]any{}, map[any]any{}
	for _, product := range shown {
		byID[product["id"]] = product
	}
	for _, product := range sample.Products()[1] {
		var row any
		assert.NoError(t, json.Unmarshal(assert.Must(json.Marshal(asSample(product)))(t), &row))
		want[float64(product.ID)] = sparse(row)
	}
	assert.Equal(t, byID, want, "docs/playground/js/shop/sample.js, compared with deploy/sample")
}

type row map[string]any

// asSample returns a product as in the page's table. Prices are in major units.
func asSample(p *cart.Product) row {
	var plans, fields []row
	for _, plan := range p.Plans {
		plans = append(plans, row{"id": plan.ID, "duration": plan.Duration, "label": inLanguages(plan.Label), "price": riyals(plan.Price)})
	}
	for _, f := range p.Fields {
		var options []row
		for _, o := range f.Options {
			options = append(options, row{"code": o.Code, "name": inLanguages(o.Name), "price": riyals(o.Price)})
		}
		fields = append(fields, row{"name": f.Name, "required": f.Required, "options": options})
	}
	made := row{
		"id": p.ID, "name": inLanguages(p.Name), "slug": p.Slug, "price": riyals(p.Price), "stock": p.Stock, "inactive": !p.Active,
		"most": p.MaxQuantity, "plans": plans, "fields": fields,
	}
	if p.MinQuantity > 1 {
		made["least"] = p.MinQuantity
	}
	if p.Step > 1 {
		made["step"] = p.Step
	}
	return made
}

func sparse(value any) any {
	switch v := value.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, member any) bool { return sparse(member) == nil || member == false })
	case []any:
		for _, item := range v {
			sparse(item)
		}
	}
	return value
}

func inLanguages(n locale.Name) any {
	if n.Own == "" {
		return nil
	}
	all := map[locale.Locale]string{}
	for _, l := range locale.All() {
		all[l] = n.In(l)
	}
	return all
}

func riyals(a money.Amount) float64 { return float64(a) / 100 }

func TestShop_EditsFieldsWithOnePatchOfWhatChanged(t *testing.T) {
	p, _ := openStore(t)
	p.addForm("5", map[string]string{"Account email": "sara@exmaple.com", "Region": "us"})
	p.press(editLine)
	p.until(`document.activeElement.name === "fields.Account email" && document.activeElement.value === "sara@exmaple.com"`)
	p.fill(`.edit [name="fields.Account email"]`, "sara@example.com")
	p.press(`.edit .primary`)
	p.reads(`.line.fresh .outcome-of-edit`, "Changes saved.")
	p.sees(`.line`, "sara@example.com", "United States")
	p.hasFocus(editLine)
	p.sentPatch(`{"fields":{"Account email":"sara@example.com"}}`)

	p.press(editLine)
	p.fill(`.edit [name="fields.Region"]`, "")
	p.fill(`.edit [name="notice"]`, "Before Friday")
	p.press(`.edit .primary`)
	p.sees(`.line .about`, "Note: Before Friday")
	p.until(`!document.querySelector(".line").textContent.includes("United States")`)
	p.sentPatch(`{"fields":{"Region":null},"notice":"Before Friday"}`)
}

func TestShop_SaysThatAnEditedLineBecameAnother(t *testing.T) {
	p, _ := openStore(t)
	p.addForm("4", nil)
	p.press(editLine, `.edit [value="42"]`, `.edit .primary`)
	p.sees(`[data-line='4.p42'] .outcome-of-edit`)
	p.sentPatch(`{"subscription_plan":42}`)

	p.addForm("4", nil)
	p.press(`[data-line="4.p41"] [aria-haspopup]`, `.edit [value="42"]`, `.edit .primary`)
	p.sees(`[data-line='4.p42'].fresh .outcome-of-edit`, "now one line. Quantity: 2.")
	p.until(`document.querySelectorAll(".line").length === 1 && document.activeElement.dataset.key === "4.p42-edit"`)
}

func TestShop_ShowsAnEditsErrorsAtItsFieldsUntilItIsCanceled(t *testing.T) {
	p, s := openStore(t)
	p.expect("422 /cart/items/*")
	p.addForm("5", map[string]string{"Account email": "sara@example.com"})
	p.press(editLine)
	p.fill(`.edit [name="fields.Account email"]`, "")
	p.press(`.edit .primary`)
	p.sees(`.edit [name='fields.Account email'] + .refusal`, "is required")
	p.until(`document.activeElement.name === "fields.Account email" && document.activeElement.ariaInvalid === "true"`)

	// The form keeps its input and the focus when the cart changes.
	p.fill(`.edit [name="notice"]`, "unsaved")
	s.shopper(t, evaluate[string](p, tokenOfA)).fill("1×1")
	p.sees(`[data-line='1']`)
	p.sees(`.edit .refusal`)
	p.hasFocus(`.edit [name='fields.Account email']`)
	is(p, `document.querySelector(".edit [name='notice']").value`, "unsaved", "input of the form")

	p.key("Escape")
	p.seesNo(`.edit`)
	p.hasFocus(editLine)
	p.sees(`.line .about`, "sara@example.com")
	p.press(editLine, `.edit .primary + button`)
	p.seesNo(`.edit`)
	is(p, `document.querySelectorAll("#log-entries .method.patch").length`, 1, "edits that were sent")
}

func TestShop_ALinesQuantityMovesByItsStep(t *testing.T) {
	p, _ := openStore(t)
	p.addProduct("10")
	p.press(`[data-line="10"] [data-key="10-more"]`)
	p.reads(`[data-part='count']`, "10")
	p.press(`[data-line="10"] [aria-haspopup]`, `.edit [data-key="form-more"]`, `.edit .primary`)
	p.reads(`[data-part='count']`, "15")
	p.sentPatch(`{"quantity":15}`)
}

// What happens in the page while it waits for an answer.
func TestShop_KeepsWhatHappensBeforeAnAnswerComes(t *testing.T) {
	slow(t)
	s := startDemo(t)
	for name, test := range map[string]func(page){
		"the last quantity that is clicked is sent": func(p page) {
			p.addProduct("1")
			p.holdAnswers("/cart/items/")
			p.press(`[data-key="1-more"]`)
			p.until(`window.kept`)
			p.press(`[data-key="1-less"]`)
			p.sleep(time.Second)
			p.run(`deliver()`)
			p.sentPatch(`{"quantity":1}`)
			p.until(`document.querySelector("[data-line='1'] [name='quantity']").value === "1"`)
		},
		"only the form that was sent closes": func(p page) {
			p.press(deviceA + `[data-product="1"] .open`)
			p.holdAnswers("/cart/add")
			p.press(`.choose .primary`)
			p.until(`window.kept`)
			p.key("Escape")
			p.seesNo(`.choose`)
			p.press(deviceA + `[data-product="5"] .open`)
			p.fill(`.choose [name="fields.Account email"]`, "sara@example.com")
			p.run(`deliver()`)
			p.hasLine("1")
			is(p, `document.querySelector(".choose [name='fields.Account email']")?.value ?? "closed"`, "sara@example.com", "the form of another product")
		},
		"the token of another tab stays": func(p page) {
			p.expect("404 /cart/events")
			p.addProduct("1")
			p.holdAnswers("/cart/add")
			p.press(deviceA + tile("2"))
			p.until(`window.kept`)
			p.run(`localStorage.setItem("commerce:/:a.cart_token", "a-new-token-of-22-characters"); deliver()`)
			p.hasLine("2")
			is(p, tokenOfA, "a-new-token-of-22-characters", "the token")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(openStoreOf(t, s))
		})
	}
}

// The cart begins again while the service says that there is none.
func TestShop_FollowsACartThatBeginsWhileItConnects(t *testing.T) {
	p, s := openStore(t)
	p.expect("404 /cart/events")
	p.addProduct("1")
	p.sees(`.entry[data-kind='live']`)
	network := func(on string) {
		evaluate[any](p, `import("./playground/js/shop/live.js").then(({ setNetwork }) => setNetwork(`+on+`)).then(() => null)`)
	}
	network("false")
	sara := s.shopper(t, evaluate[string](p, tokenOfA))
	sara.jwt = s.token(t, "who-moves-it")
	sara.wantLines("1×1")
	p.holdAnswers("/cart/events")
	network("true")
	p.until(`window.kept`)
	p.addProduct("2")
	p.run(`deliver()`)
	p.seesNo(`.entry[data-kind='waiting']`)
	s.shopper(t, evaluate[string](p, tokenOfA)).fill("8×1")
	p.hasLine("8")
}

// fetch refuses to send such a header, so every call of the device would fail for good.
func TestShop_HealsATokenWithDamagedBytes(t *testing.T) {
	p, _ := openStore(t)
	p.run(`localStorage.setItem("commerce:/:a.cart_token", "مرحبا")`)
	p.addProduct("1")
	p.until(`/^[A-Za-z0-9_-]{22,}$/.test(` + tokenOfA + `)`)
}

func TestShop_ShowsTaxByCountryAndRateAndWhyACouponDoesNotCount(t *testing.T) {
	p, _ := openStore(t)
	for _, product := range []string{"1", "8"} { // a gift card is untaxed
		p.addProduct(product)
	}
	p.press(`[data-part="checkout"]`)
	p.sees(`[data-part='totals']`, "(15 %)", "(0 %)")
	p.until(`[...document.querySelectorAll("[data-part='country'] option")].some((o) => o.textContent === "Germany" && (o.selected = true))`)
	evaluate[any](p, `{ document.querySelector("[data-part='country']").dispatchEvent(new Event("change")); null }`)
	p.sees(`[data-part='totals']`, "included", "7.90")
	p.press(`[data-part="checkout"]`)
	p.sees(`[data-part='totals']`, "(19 %)", "(0 %)")
	p.redeemsSample("GAMES")
	p.sees(`[data-part='coupon-given'] .tag.good`, "GAMES")
	p.sees(`[data-line="1"]`, "9.90")
	p.press(`[data-line="1"] .remove`)
	p.sees(`[data-part='coupon-given'] .hint`, "does not apply")

	// It leaves for one that combines with others.
	for _, code := range []string{"EXTRA", "PLUS"} {
		p.redeemsSample(code)
		p.sees(deviceA + `[data-coupon="` + code + `"] .tag.good`)
	}
	p.until(givenCodes + ` === "EXTRA,PLUS"`)
	p.sees(deviceA+`[data-part="totals"]`, "Coupon EXTRA", "1.25", "Coupon PLUS", "2.00")

	// Another one needs no code.
	p.addProduct("10")
	p.sees(deviceA+`[data-part="offers"]`, "5 more for: 10 % off 10 sticker packs")
	p.press(`[data-line="10"] [data-key="10-more"]`)
	p.sees(deviceA+`[data-part="totals"]`, "Coupon EXTRA", "2.25", "10 % off 10 sticker packs", "1.90", "Coupon PLUS", "2.00")
	p.seesNo(deviceA + `[data-part="offers"] li`)
	p.run(inA(`[data-part="totals"]`) + `.scrollIntoView({ block: "center" })`)
	p.shows("combined")
	p.press(`[data-coupon="EXTRA"] button`)
	p.until(givenCodes + ` === "PLUS"`)
	p.hasFocus(`[name="coupon"]`)
}

// givenCodes are those of the coupons in device A, in JavaScript.
const givenCodes = `[...document.querySelectorAll("#device-a [data-coupon]")].map((c) => c.dataset.coupon).join()`

// redeemsSample presses the button of a code that the page has for trying.
func (p page) redeemsSample(code string) {
	p.t.Helper()
	p.until(`[...document.querySelectorAll("[data-part='sample-coupons'] button")].some((b) => b.textContent === "` + code + `" && (b.click(), true))`)
}

// The shop raises a price in more lines than a list of operations has, and has sold out of a product.
func TestShop_FixesAllThatACheckFinds(t *testing.T) {
	p, s := openStore(t)
	p.expect("400 /cart/validate")
	p.addProduct("1")
	c := s.shopper(t, evaluate[string](p, tokenOfA))
	ticket, account := c.copyProduct("2"), c.copyProduct("5")
	c.fill(ticket + "×1")
	for i := range 51 {
		c.add(fmt.Sprintf(`{"product_id":%s,"fields":{"Account email":"%d@example.com"}}`, account, i))
	}
	p.until(`document.querySelectorAll("#device-a .line").length === 53`)
	c.ok("PATCH", "/playground/products/"+ticket, `{"stock":0}`)
	c.ok("PATCH", "/playground/products/"+account, `{"price":1}`)
	p.press(`[data-part="checkout"]`)
	p.until(`document.querySelectorAll("[data-outcome='checked'] li").length === 52`)
	p.shows("broken")
	p.press(`[data-outcome="checked"] .primary`)
	p.sees(`[data-outcome='checked'].good`)
	p.seesNo(`[data-outcome='checked'] .primary`)
	p.reads(`[data-part='count']`, "52")
	p.shows("fixed")
}

// shows checks and keeps what the window shows after a step.
func (p page) shows(step string) {
	p.t.Helper()
	p.noSidewaysScroll()
	p.axe()
	p.screenshot(step)
}
