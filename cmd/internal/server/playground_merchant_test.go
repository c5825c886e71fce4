package server_test

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"commerce/cmd/internal/pages"
	"commerce/deploy/assert"
)

func TestPlaygroundMerchant_ListsAtOnceWithTheDemosToken(t *testing.T) {
	p := openMerchant(t)
	p.rows(15, 5048)
	p.until(`document.querySelector("#page-position").textContent === "Page 1: 1 to 15"`)
	p.until(`document.querySelector("#own-token").hidden && document.querySelector("[name='merchant-store'][value='sample']").checked`)
	p.until(`document.querySelector(".figure .big").textContent === "SAR\u00a0320.00"`)
	p.until(`[...document.querySelectorAll("#status-filter .count")].map((count) => count.textContent).join() === "8,8,8,8,8,8"`)

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
	p.until(newestList + `.startsWith("/subscriptions?page=2&cursor=")`)
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

// Its answers come when another store is chosen.
func TestPlaygroundMerchant_ShowsNothingOfTheStoreBefore(t *testing.T) {
	p := openMerchant(t)
	p.rows(15, 5048)
	p.run(lateAnswers("/subscriptions"))
	p.press(`[data-subscription="5045"] button`)
	p.press(`#page-next`)
	p.press(`[name="merchant-store"][value="own"]`)
	p.until(`document.querySelector("#subscription-list .blank-title")`)
	p.run(`deliver()`)
	p.until(`!document.querySelector("#log-entries [data-kind='waiting']")`)
	assert.That(t, evaluate[bool](p, `document.querySelector("#subscription-list").ariaBusy === "false"`), "the list waits for an answer that it does not show")
	assert.That(t, evaluate[bool](p, `!document.querySelector("#subscription-details").open`), "the page shows a subscription of the store before")
}

// lateAnswers keeps the page's answers of paths that begin so back until deliver is called.
func lateAnswers(path string) string {
	return fmt.Sprintf(`const { text } = Response.prototype; const delivered = new Promise((done) => { window.deliver = done; });
		Response.prototype.text = async function () { if (this.url.includes(%q)) { window.kept = true; await delivered; } return text.call(this); }`, path)
}

func TestPlaygroundMerchant_FollowsChanges(t *testing.T) {
	slow(t)
	r := newReader(t)
	p := openPage(t, r.url+"/#subscriptions")
	p.expect("400 /cart") // of the devices: no store is the default
	p.rows(15, 5048)
	p.following()
	p.until(`document.querySelectorAll(".feed-row").length === 0`) // the first copy is not news
	p.press(`[data-subscription="5045"] button`)
	p.until(`document.querySelectorAll("#subscription-history li").length === 5`)
	p.until(`document.querySelector("#subscription-history li").textContent.includes("Past due")`)
	p.press(`#subscription-history button`)
	p.until(`document.querySelector("#subscription-history li:last-child").dataset.event === "created" && !document.querySelector("#subscription-history button")`)
	p.with(`#subscription-details summary`, `control.focus()`)

	r.change(t, `UPDATE subscriptions SET status = 'active', grace_ends_at = NULL, next_retry_at = NULL, current_period_end = current_period_end + interval '1 month'
		WHERE (store_id, id) = (1, 5045)`)
	p.until(`document.querySelector("[data-event='paid']")?.textContent.includes("status")`)
	p.until(`document.querySelector("[data-subscription='5045'] [data-status='active']")`) // also in the list
	p.until(`document.querySelector("#subscription-history li:nth-child(2)").dataset.event === "renewed"`)
	p.until(`document.querySelector("#subscription-history li:last-child").dataset.event === "created"`) // as many as before
	p.until(`document.activeElement.matches("#subscription-details summary")`)
	p.until(`!document.querySelector(".late").textContent.includes("#5045")`)
	r.change(t, `DELETE FROM subscriptions WHERE (store_id, id) = (1, 5047)`)
	p.until(`document.querySelector("[data-event='deleted']")?.textContent.includes("#5047")`)
	p.until(`!document.querySelector("[data-subscription='5047']")`)

	// Changes while it is off, or out of sight, are not missed.
	p.press(`#feed-switch`)
	p.until(`document.querySelector("#feed").dataset.state === "off"`)
	r.change(t, `UPDATE subscriptions SET status = 'expired' WHERE (store_id, id) = (1, 5044)`)
	p.press(`#feed-switch`)
	p.until(`document.querySelector("[data-event='expired']")?.textContent.includes("#5044")`)
	p.press(`#tab-store`)
	p.until(`[...document.querySelectorAll(".entry")].some((entry) => entry.textContent.includes("ended by this page"))`)
	r.change(t, `UPDATE subscriptions SET status = 'expired' WHERE (store_id, id) = (1, 5043)`)
	p.press(`#tab-subscriptions`)
	p.until(`document.querySelector("[data-event='expired']")?.textContent.includes("#5043")`)
}

// Another demo lends another token, and its cursors are its own.
func TestPlaygroundMerchant_FollowsADemoThatRestarted(t *testing.T) {
	slow(t)
	var service atomic.Pointer[httputil.ReverseProxy]
	service.Store(proxyTo(t, startDemo(t).url))
	p := openPage(t, serveGateway(t, func(w http.ResponseWriter, r *http.Request) { service.Load().ServeHTTP(w, r) })+"/#subscriptions")
	p.expect("401 /subscriptions/changes", "410 /subscriptions/changes", "401 /subscriptions")
	p.following()
	service.Store(proxyTo(t, startDemo(t).url))
	p.press(`#feed-switch`)
	p.press(`#feed-switch`)
	p.until(`[...document.querySelectorAll("#log-entries .entry")].some((row) => row.textContent.includes("cursor_expired"))`)
	p.press(`#feed-happen`)
	p.until(`document.querySelector(".feed-row")`)
}

func TestPlaygroundMerchant_RefreshesAListThatWasReadBeforeAChange(t *testing.T) {
	slow(t)
	r := newReader(t)
	p := openPage(t, r.url+"/#subscriptions")
	p.expect("400 /cart")
	p.rows(15, 5048)
	p.following()
	p.run(lateAnswers("/subscriptions?page=1"))
	p.jump("1")
	p.until(`window.kept`)
	r.change(t, `UPDATE subscriptions SET status = 'expired' WHERE (store_id, id) = (1, 5044)`)
	p.until(`document.querySelector("[data-event='expired']")`)
	p.sleep(100 * time.Millisecond)
	p.run(`deliver()`)
	p.until(`document.querySelector("[data-subscription='5044'] [data-status='expired']")`)
}

// The numbers follow, too, and the page asks for none of it until something changes.
func TestPlaygroundMerchant_ShowsNewsWithoutAClick(t *testing.T) {
	slow(t)
	demo := startDemo(t)
	p := openPage(t, demo.url+"/#subscriptions")
	p.following()
	p.until(`document.querySelector(".month-detail").textContent.includes("SAR\u00a0320.00")`)
	p.press(`.revenue summary`)
	p.with(`.table-scroll`, `control.focus()`)
	calls := evaluate[int](p, `document.querySelectorAll(".entry").length`)
	for range 2 { // the second one ends a trial
		r := assert.Must(http.Post(demo.url+"/playground/subscriptions", "application/json", strings.NewReader("{}")))(t)
		assert.NoError(t, r.Body.Close())
		assert.Equal(t, r.StatusCode, http.StatusOK, "a billing event")
	}
	p.until(`document.querySelector("[data-event='activated']")`)
	p.until(`document.querySelector(".month-detail").textContent.includes("SAR\u00a0336.67")`)
	p.until(`document.querySelector(".figure .big").textContent === "SAR\u00a0336.67"`)
	p.until(`document.querySelector("#status-filter [value='trialing'] ~ span .count").textContent === "7"`)
	p.until(`document.activeElement.matches("details[open] .table-scroll")`)
	assert.That(t, calls < 13, "%d calls before anything happened", calls)
}

func TestPlaygroundMerchant_SaysTheSameInChartAndTable(t *testing.T) {
	for _, l := range []look{{width: 320, height: 568}, {width: 1440, language: "ar", dark: true}} {
		t.Run(l.String(), func(t *testing.T) { wantChartAsTable(openMerchantAs(t, l)) })
	}
}

func wantChartAsTable(p page) {
	p.t.Helper()
	p.until(`document.querySelectorAll(".months .month").length === 18`)
	p.until(`/\d/.test(document.querySelector(".revenue .panel-head .hint").textContent)`) // the time of the figures
	p.press(`.revenue summary`)
	faults := evaluate[[]string](p, `(() => {
		const rows = [...document.querySelectorAll(".revenue tbody tr")].reverse().map((row) =>
			[row.dataset.month, ...[...row.cells].slice(1).map((cell) => Number(cell.textContent.replace(/[^\d.-]/g, "")))]);
		const moves = ["new", "reactivated", "expansion", "contraction", "churned"];
		const drawn = (group) => moves.map((move) => Number(group.querySelector("[data-move=" + move + "]")?.getAttribute("height") ?? 0));
		const groups = [...document.querySelectorAll(".month")];
		const line = document.querySelector(".revenue-line .stroke").getAttribute("d").slice(1).split("L").map((point) => Number(point.split(" ")[1]));
		const scale = Math.max(...groups.flatMap(drawn)) / Math.max(...rows.flatMap((row) => row.slice(2, 7).map(Math.abs)));
		const near = (a, b) => Math.abs(a - b) < 0.02;
		return groups.flatMap((group, i) => {
			const [month, mrr, ...moved] = rows[i];
			return [
				group.dataset.month !== month && "month " + group.dataset.month,
				!drawn(group).every((height, at) => near(height, Math.abs(moved[at]) * scale)) && "bars " + drawn(group),
				i > 0 && !near((line[i] - line[0]) * (rows[17][1] - rows[0][1]), (mrr - rows[0][1]) * (line[17] - line[0])) && "line " + line[i],
				i > 0 && !near(mrr, rows[i - 1][1] + moved.slice(0, 5).reduce((a, b) => a + b)) && "sum " + mrr,
			].filter(Boolean).map((fault) => fault + " of " + rows[i]);
		});
	})()`)
	assert.That(p.t, len(faults) == 0, "%q", faults)
	p.noSidewaysScroll()
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
	p.until(`!document.querySelector("#own-token .refusal") && document.querySelector(".months")`)
}

// The page must not claim that nothing is there when the service cannot say.
func TestPlaygroundMerchant_OffersARetryAfterAnError(t *testing.T) {
	p := openMerchant(t)
	p.rows(15, 5048)
	p.expect("0 /subscriptions", "0 /subscriptions/changes")
	p.offline(true)
	p.press(`#page-next`)
	p.until(`document.querySelector("#subscription-list [role='alert']")?.textContent.includes("unreachable")`)
	p.offline(false)
	p.press(`#subscription-list .blank button`)
	p.until(`document.querySelector("#page-position").textContent === "Page 2: 16 to 30"`)
}

// openMerchant opens the merchant's tab of a demo with the sample's 48 subscriptions.
func openMerchant(t *testing.T) page { t.Helper(); return openMerchantAs(t, look{}) }

func openMerchantAs(t *testing.T, l look) page {
	t.Helper()
	slow(t)
	offered := &pages.Demo{APIToken: "of the shop"}
	s := openShop(t, embeddedRedis(t), withPlayground(pages.Playground{Demo: offered}))
	offered.APIToken = s.API
	return openPageAs(t, s.URL+"/#subscriptions", l)
}

// following waits until the page follows the changes.
func (p page) following() {
	p.t.Helper()
	p.until(`document.querySelector("#feed").dataset.state === "on"`)
}

// rows waits for a list of n rows, of which the first has this ID.
func (p page) rows(n, first int) {
	p.t.Helper()
	p.until(fmt.Sprintf(`(() => {
		const rows = document.querySelectorAll("#subscription-list[aria-busy='false'] [data-subscription]");
		return rows.length === %d && rows[0].dataset.subscription === "%d";
	})()`, n, first))
}

// listed waits until the newest call for the list in the log has this path.
func (p page) listed(path string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`%s === %q && document.querySelector("#subscription-list").ariaBusy === "false"`, newestList, path))
}

// newestList is the path of the newest call in the log that is not of another panel.
const newestList = `[...document.querySelectorAll(".entry .path")].map((path) => path.textContent).find((path) => /^\/subscriptions($|\?(?!sort))/.test(path))`

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
