package server_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"commerce/cmd/internal/pages"
)

func TestPlaygroundMerchant_ListsAtOnceWithTheDemosToken(t *testing.T) {
	p := openMerchant(t)
	p.rows(15, 5048)
	p.until(`document.querySelector("#page-position").textContent === "Page 1: 1 to 15"`)
	p.until(`document.querySelector("#own-token").hidden && document.querySelector("[name='merchant-store'][value='sample']").checked`)
	p.until(`document.querySelector(".figure .big").textContent === "SAR\u00a0320.00"`)
	p.until(`document.querySelector(".chart caption").textContent === "48 subscriptions"`)

	p.click(`#language`)
	p.until(`document.querySelector("[data-subscription='5045'] .status-badge").textContent === "past_dueمتأخر السداد"`)
}

func TestPlaygroundMerchant_FiltersByStatusAtOnceAndByTheOthersTogether(t *testing.T) {
	p := openMerchant(t)
	p.rows(15, 5048)
	p.press(`#status-filter [value="active"]`)
	p.rows(8, 5043)
	p.press(`#status-filter [value="canceled"]`)
	p.listed("/subscriptions?status=active,canceled")

	p.fill(`[name="customerEmail"]`, "sara@example.com")
	p.press(`#filter-fields button`)
	p.listed("/subscriptions?customerEmail=sara%40example.com&status=active,canceled")
	p.rows(2, 5003)
	p.until(`document.querySelector("#active-filters").textContent.includes("sara@example.com")`)

	p.press(`#active-filters [data-name="customerEmail"]`)
	p.listed("/subscriptions?status=active,canceled")
	p.until(`document.querySelector("[name='customerEmail']").value === "" && document.activeElement.name === "customerEmail"`)
	p.press(`#active-filters button:not([data-name])`)
	p.rows(15, 5048)
	p.until(`!document.querySelector("#status-filter :checked")`)

	p.press(`.chart [data-status="trialing"] button`)
	p.listed("/subscriptions?status=trialing")
	p.until(`document.querySelector("#status-filter [value='trialing']").checked`)
}

func TestPlaygroundMerchant_ShowsWhatIsWrongWithAFilterAtItsInput(t *testing.T) {
	p := openMerchant(t)
	p.expect("400 /subscriptions")
	p.rows(15, 5048)
	p.fill(`[name="customerCountryCode"]`, "x")
	p.fill(`[name="per_page"]`, "500")
	p.press(`#filter-fields button`)
	p.until(`document.querySelector("[name='customerCountryCode'] + .refusal")?.textContent.includes("1 to 4 digits")`)
	p.until(`document.querySelector("[name='per_page'] + .refusal") && document.activeElement.name === "customerCountryCode"`)
	p.rows(15, 5048) // the list that was there stays

	p.fill(`[name="customerCountryCode"]`, "")
	p.fill(`[name="per_page"]`, "20")
	p.press(`#filter-fields button`)
	p.rows(20, 5048)
	p.until(`!document.querySelector(".refusal")`)
}

func TestPlaygroundMerchant_TurnsPagesByLinkAndJumpsByNumber(t *testing.T) {
	p := openMerchant(t)
	p.expect("400 /subscriptions")
	p.rows(15, 5048)
	p.press(`#page-next`)
	p.until(`document.querySelector("#page-position").textContent === "Page 2: 16 to 30"`)
	p.until(`document.activeElement.id === "page-next"`)
	p.until(`document.querySelector(".entry .path").textContent.startsWith("/subscriptions?page=2&cursor=")`)
	p.press(`#page-prev`)
	p.rows(15, 5048)

	p.jump("4")
	p.rows(3, 5003)
	p.until(`document.querySelector("#page-next").ariaDisabled === "true"`)
	p.jump("99")
	p.until(`document.querySelector("#subscription-list .blank-title")?.textContent === "Page 99 is past the end"`)
	p.jump("x")
	p.until(`document.querySelector("#page-jump .refusal") && document.activeElement.id === "page-number"`)
	p.press(`#subscription-list .blank button`)
	p.rows(15, 5048)
}

func TestPlaygroundMerchant_ShowsASubscriptionBesideTheListOrOverIt(t *testing.T) {
	p := openMerchant(t)
	p.do(chromedp.EmulateViewport(1600, 900))
	p.rows(15, 5048)
	p.press(`[data-subscription="5045"] button`)
	p.until(`document.querySelector("#subscription-details:not(:modal)[open]") && document.activeElement.textContent === "#5045"`)
	p.until(`document.querySelector("[data-subscription='5045']").ariaCurrent === "true"`)
	p.until(`[...document.querySelectorAll(".members dt code")].some((name) => name.textContent === "next_retry_at")`)
	p.press(`#tab-store`)
	p.press(`#tab-subscriptions`)
	p.until(`document.querySelector("#subscription-details:not(:modal)[open]")`)
	p.with(`#subscription-title`, `control.focus()`)
	p.do(chromedp.KeyEvent("\x1b"))
	p.until(`!document.querySelector("#subscription-details").open && document.activeElement.textContent === "#5045"`)

	p.do(chromedp.EmulateViewport(320, 700))
	p.press(`[data-subscription="5046"] button`)
	p.until(`document.querySelector("#subscription-details:modal") && document.activeElement.textContent === "#5046"`)
	p.until(`[...document.querySelectorAll(".members > div")].every((member) => member.querySelector("dd").offsetTop > member.querySelector("dt").offsetTop)`)
	p.press(`#subscription-details summary`)
	p.until(`document.querySelector("#subscription-details pre").textContent.includes('"paused_remaining_days"')`)
	p.until(`document.documentElement.scrollWidth <= 320 && document.querySelector("#subscription-details").scrollWidth <= 320`)
	p.press(`#subscription-details .sign`)
	p.until(`!document.querySelector("#subscription-details").open && document.activeElement.textContent === "#5046"`)
}

func TestPlaygroundMerchant_FollowsChanges(t *testing.T) {
	slow(t)
	r := newReader(t)
	p := openPage(t, r.url+"/#subscriptions")
	p.expect("400 /cart") // of the devices: no store is the default
	p.rows(15, 5048)
	p.press(`#feed-switch`)
	p.until(`document.querySelector("#feed").dataset.state === "on"`)
	p.until(`document.querySelectorAll(".feed-row").length === 0`) // the first copy is not news

	r.change(t, `UPDATE subscriptions SET status = 'active', grace_ends_at = NULL, next_retry_at = NULL, current_period_end = current_period_end + interval '1 month'
		WHERE (store_id, id) = (1, 5045)`)
	p.until(`document.querySelector("[data-event='paid']")?.textContent.includes("status")`)
	p.until(`document.querySelector("[data-subscription='5045'] [data-status='active']")`) // also in the list
	r.change(t, `DELETE FROM subscriptions WHERE (store_id, id) = (1, 5047)`)
	p.until(`document.querySelector("[data-event='deleted']")?.textContent.includes("#5047")`)

	p.press(`#feed-refresh`)
	p.rows(15, 5048)
	p.until(`!document.querySelector("[data-subscription='5047']") && document.querySelector("#feed-refresh").hidden`)

	// Changes while it is off are not missed.
	p.press(`#feed-switch`)
	p.until(`document.querySelector("#feed").dataset.state === "off"`)
	r.change(t, `UPDATE subscriptions SET status = 'expired' WHERE (store_id, id) = (1, 5044)`)
	p.press(`#feed-switch`)
	p.until(`document.querySelector("[data-event='expired']")?.textContent.includes("#5044")`)
}

func TestPlaygroundMerchant_AsksForATokenWithoutTheDemo(t *testing.T) {
	slow(t)
	s := openShop(t, embeddedRedis(t), withPlayground(pages.Playground{}))
	p := openPageAs(t, s.URL+"/#subscriptions", everyLook[0])
	p.expect("401 /subscriptions")
	p.until(`document.querySelector("#store-switch").hidden && !document.querySelector("#own-token").hidden`)
	p.shows("own-token")
	p.fill(`#own-token-input`, "1|wrong")
	p.press(`#own-token button`)
	p.until(`document.querySelector("#own-token .refusal")?.textContent.includes("not valid")`)
	p.fill(`#own-token-input`, s.API)
	p.press(`#own-token button`)
	p.rows(15, 5048)
	p.until(`!document.querySelector("#own-token .refusal") && document.querySelector(".chart")`)
}

// The page must not claim that nothing is there when the service cannot say.
func TestPlaygroundMerchant_OffersARetryAfterAnError(t *testing.T) {
	p := openMerchant(t)
	p.rows(15, 5048)
	p.expect("0 /subscriptions")
	p.offline(true)
	p.press(`#page-next`)
	p.until(`document.querySelector("#subscription-list [role='alert']")?.textContent.includes("unreachable")`)
	p.offline(false)
	p.press(`#subscription-list .blank button`)
	p.until(`document.querySelector("#page-position").textContent === "Page 2: 16 to 30"`)
}

// A bar that shrinks to fit would show a number that is not its own.
func TestPlaygroundMerchant_DrawsBarsInProportion(t *testing.T) {
	p := openMerchant(t)
	for _, width := range []int64{320, 1440} {
		p.do(chromedp.EmulateViewport(width, 900))
		p.until(`document.querySelector(".chart")`)
		p.run(`import("./playground/js/merchant/summary.js").then(({ chartOf }) =>
			document.querySelector(".chart").replaceWith(chartOf({ trialing: 0, active: 20000, past_due: 18000, paused: 10000, canceled: 1, expired: 5000 })))`)
		p.until(`(() => {
			const [none, all, most, half, one, quarter] = [...document.querySelectorAll(".chart .bar")].map((bar) => bar.getBoundingClientRect().width);
			return all > 60 && none === 0 && one > 0 && [[most, 0.9], [half, 0.5], [quarter, 0.25]].every(([bar, share]) => Math.abs(bar / all - share) < 0.01);
		})()`)
	}
}

// openMerchant opens the merchant's tab of a demo with the sample's 48 subscriptions.
func openMerchant(t *testing.T) page {
	t.Helper()
	slow(t)
	offered := &pages.Demo{APIToken: "of the shop"}
	s := openShop(t, embeddedRedis(t), withPlayground(pages.Playground{Demo: offered}))
	offered.APIToken = s.API
	return openPage(t, s.URL+"/#subscriptions")
}

// rows waits for a list of n rows, of which the first has this ID.
func (p page) rows(n, first int) {
	p.t.Helper()
	p.until(fmt.Sprintf(`(() => {
		const rows = document.querySelectorAll("#subscription-list[aria-busy='false'] [data-subscription]");
		return rows.length === %d && rows[0].dataset.subscription === "%d";
	})()`, n, first))
}

// listed waits until the newest call in the log has this path.
func (p page) listed(path string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.querySelector(".entry .path").textContent === %q && document.querySelector("#subscription-list").ariaBusy === "false"`, path))
}

func (p page) jump(page string) {
	p.t.Helper()
	p.fill(`#page-number`, page)
	p.press(`#page-jump button`)
}

func (p page) run(statements string) { p.t.Helper(); evaluate[any](p, `{ `+statements+`; null }`) }

// offline takes the network from the page, or gives it back.
func (p page) offline(off bool) {
	p.t.Helper()
	var blocked network.SetBlockedURLsParams
	if off {
		blocked.URLPatterns = []*network.BlockPattern{{URLPattern: "*://*:*/*", Block: true}}
	}
	p.do(send(network.SetBlockedURLs, blocked))
}
