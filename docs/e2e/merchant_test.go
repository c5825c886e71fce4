package e2e

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/docs"
)

// openMerchant opens the merchant's tab of a demo with the sample's 48 subscriptions.
func openMerchant(t *testing.T) page {
	t.Helper()
	slow(t)
	p := open(t, startDemo(t).url+"/#subscriptions", look{})
	p.rows(15, 5048)
	return p
}

// openMerchantOnServe opens the merchant's tab of a service on Postgres, with the store's token.
func openMerchantOnServe(t *testing.T) (page, *service) {
	t.Helper()
	slow(t)
	s := startServe(t, ephemeral.Redis(t))
	p := open(t, s.url+"/#subscriptions", look{})
	p.expect("401 /subscriptions")
	p.fill(`#own-token-input`, s.api)
	p.press(`#own-token button`)
	p.rows(15, 5048)
	p.following()
	return p, s
}

// following waits until the page follows the changes.
func (p page) following() {
	p.t.Helper()
	p.until(`document.querySelector("#feed").dataset.state === "on"`)
}

// hasNews waits for a row of the live changes with these texts.
func (p page) hasNews(texts ...string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`[...document.querySelectorAll(".feed-row")].some(({ textContent }) => %q.split("\0").every((text) => textContent.includes(text)))`, strings.Join(texts, "\x00")))
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

func TestMerchant_ListsAtOnceWithTheDemosToken(t *testing.T) {
	p := openMerchant(t)
	p.reads(`#page-position`, "Page 1: 1 to 15")
	p.until(`document.querySelector("#own-token").hidden && document.querySelector("[name='merchant-store'][value='sample']").checked`)
	p.reads(`.figure .big`, "SAR\u00a0320.00")
	p.until(`[...document.querySelectorAll("#status-filter .count")].map((count) => count.textContent).join() === "8,8,8,8,8,8"`)

	p.press(`#language`)
	p.reads(`[data-subscription='5045'] .status-badge`, "past_dueمتأخر السداد")
}

func TestMerchant_FiltersByStatusAtOnceAndByTheOthersTogether(t *testing.T) {
	p := openMerchant(t)
	p.press(`#status-filter [value="active"]`)
	p.rows(8, 5043)
	p.press(`#status-filter [value="canceled"]`)
	p.listed("/subscriptions?status=active,canceled")

	p.fill(`[name="customerEmail"]`, "sara@example.com")
	p.press(`#filter-fields button`)
	p.listed("/subscriptions?customerEmail=sara%40example.com&status=active,canceled")
	p.rows(2, 5003)
	p.press(`#filter-fields [type="reset"]`)
	p.rows(15, 5048)
	is(p, `document.querySelector("[name='customerEmail']").value`, "", "the filter")
	p.seesNo(`#status-filter :checked`)
}

// The form has every filter of the document, except those of the renewals, which the page has in a panel.
func TestMerchant_OffersTheFiltersOfTheList(t *testing.T) {
	p := openMerchant(t)
	doc := assert.Must(openapi3.NewLoader().LoadFromData(docs.OpenAPI))(t)
	var want []string
	for _, parameter := range doc.Paths.Value("/subscriptions").Get.Parameters {
		if name := parameter.Value.Name; parameter.Value.In == "query" && !slices.Contains([]string{"page", "cursor", "sort", "periodEndFrom", "periodEndTo"}, name) {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	got := evaluate[[]string](p, `[...new Set([...document.querySelector("#subscription-filters").elements].map(({ name }) => name).filter(Boolean))].sort()`)
	assert.Equal(t, got, want, "names of the form's controls, compared with the parameters of the call")

	p.fill(`[name="ids"]`, "5043,5044,5045")
	p.fill(`[name="productId"]`, "4")
	p.fill(`[name="cancelAtPeriodEnd"]`, "false")
	p.fill(`[name="createdFrom"]`, "2020-01-01")
	p.press(`#filter-fields button`)
	p.rows(3, 5045)
	p.press(`#language`)
	p.sees(`#filter-fields[open]`, "أرقام الاشتراكات")
	is(p, `document.querySelector("[name='cancelAtPeriodEnd']").value`, "false", "the choice in Arabic")
}

func TestMerchant_ShowsWhatIsWrongWithAFilterAtItsInput(t *testing.T) {
	p := openMerchant(t)
	p.expect("400 /subscriptions")
	p.fill(`[name="customerCountryCode"]`, "x")
	p.fill(`[name="per_page"]`, "500")
	p.press(`#filter-fields button`)
	p.sees(`[name='customerCountryCode'] + .refusal`, "1 to 4 digits")
	p.until(`document.querySelector("[name='per_page'] + .refusal") && document.activeElement.name === "customerCountryCode"`)
	p.rows(15, 5048) // the list that was there stays

	p.fill(`[name="customerCountryCode"]`, "")
	p.fill(`[name="per_page"]`, "20")
	p.press(`#filter-fields button`)
	p.rows(20, 5048)
	p.seesNo(`.refusal`)
}

func TestMerchant_TurnsPagesByLinkAndJumpsByNumber(t *testing.T) {
	p := openMerchant(t)
	p.expect("400 /subscriptions")
	p.press(`#page-next`)
	p.reads(`#page-position`, "Page 2: 16 to 30")
	p.hasFocus(`#page-next`)
	p.until(newestList + `.startsWith("/subscriptions?page=2&cursor=")`)
	p.press(`#page-prev`)
	p.rows(15, 5048)

	p.jump("4")
	p.rows(3, 5003)
	p.until(`document.querySelector("#page-next").ariaDisabled === "true"`)
	p.jump("99")
	p.reads(`#subscription-list .blank-title`, "Page 99 is past the end")
	p.jump("x")
	p.until(`document.querySelector("#page-jump .refusal") && document.activeElement.id === "page-number"`)
	p.press(`#subscription-list .blank button`)
	p.rows(15, 5048)
}

func TestMerchant_ShowsASubscriptionInADialog(t *testing.T) {
	p := openMerchant(t)
	p.press(`#subscription-list [data-subscription="5045"] button`)
	p.until(`document.querySelector("#subscription-details:modal") && document.activeElement.textContent === "#5045"`)
	p.until(`document.querySelector("#subscription-list [data-subscription='5045']").ariaCurrent === "true"`)
	p.until(`[...document.querySelectorAll(".members dt code")].some((name) => name.textContent === "next_retry_at")`)
	p.key("Escape")
	p.until(`!document.querySelector("#subscription-details").open && document.activeElement.textContent === "#5045"`)
	p.press(`#subscription-list [data-subscription="5045"] button`)
	p.until(`document.querySelector("#subscription-details:modal")`)
	p.run(`location.hash = "store"`)
	p.until(`!document.querySelector("#subscription-details").open`)
	p.run(`location.hash = "subscriptions"`)

	p.resize(320, 700)
	p.press(`#subscription-list [data-subscription="5046"] button`)
	p.until(`document.querySelector("#subscription-details:modal") && document.activeElement.textContent === "#5046"`)
	p.until(`[...document.querySelectorAll(".members > div")].every((member) => member.querySelector("dd").offsetTop > member.querySelector("dt").offsetTop)`)
	p.sees(`.members`, "paused_remaining_days")
	p.until(`document.documentElement.scrollWidth <= 320 && document.querySelector("#subscription-details").scrollWidth <= 320`)
	p.press(`#subscription-details .sign`)
	p.until(`!document.querySelector("#subscription-details").open && document.activeElement.textContent === "#5046"`)
}

// Its answers come when another store is chosen.
func TestMerchant_ShowsNothingOfTheStoreBefore(t *testing.T) {
	p := openMerchant(t)
	p.holdAnswers("/subscriptions")
	p.press(`[data-subscription="5045"] button`, `#page-next`, `[name="merchant-store"][value="own"]`)
	p.sees(`#subscription-list .blank-title`)
	p.run(`deliver()`)
	p.seesNo(`#log-entries [data-kind='waiting']`)
	assert.That(t, evaluate[bool](p, `document.querySelector("#subscription-list").ariaBusy === "false"`), "the list waits for an answer that it does not show")
	assert.That(t, evaluate[bool](p, `!document.querySelector("#subscription-details").open`), "the page shows a subscription of the store before")
}

func TestMerchant_FollowsChanges(t *testing.T) {
	p, s := openMerchantOnServe(t)
	p.until(`document.querySelectorAll(".feed-row").length === 0`) // the first copy is not news
	p.press(`[data-subscription="5045"] button`)
	p.sees(`#subscription-history li`, "Past due")
	p.until(`document.querySelector("#subscription-history li:last-child").dataset.event === "created"`)
	p.with(`#subscription-details .history`, `control.focus()`)

	s.change(t, `UPDATE subscriptions SET status = 'active', grace_ends_at = NULL, next_retry_at = NULL, current_period_end = current_period_end + interval '1 month'
		WHERE (store_id, id) = (1, 5045)`)
	p.hasNews("#5045 Status", "Past due", "Active")
	p.sees(`[data-subscription='5045'] [data-status='active']`) // also in the list
	p.until(`document.querySelector("#subscription-history li:nth-child(2)").dataset.event === "renewed"`)
	p.hasFocus(`#subscription-details .history`)
	p.seesNo(`#renewals-content [data-subscription='5045'] [data-status='past_due']`)
	s.change(t, `DELETE FROM subscriptions WHERE (store_id, id) = (1, 5047)`)
	p.hasNews("#5047", "was deleted")
	p.seesNo(`[data-subscription='5047']`)

	// Changes while it is off, or out of sight, are not missed.
	p.press(`#feed-switch`)
	p.until(`document.querySelector("#feed").dataset.state === "off"`)
	s.change(t, `UPDATE subscriptions SET status = 'expired' WHERE (store_id, id) = (1, 5044)`)
	p.press(`#feed-switch`)
	p.hasNews("#5044", "Expired")
	p.press(`#tab-store`)
	p.until(`[...document.querySelectorAll(".entry")].some((entry) => entry.textContent.includes("ended by this page"))`)
	s.change(t, `UPDATE subscriptions SET status = 'expired' WHERE (store_id, id) = (1, 5043)`)
	p.press(`#tab-subscriptions`)
	p.hasNews("#5043", "Expired")
}

// Another demo lends another token, and its cursors are its own.
func TestMerchant_FollowsADemoThatRestarted(t *testing.T) {
	slow(t)
	before, after := startDemo(t), startDemo(t) // both run for longer than the page
	var service atomic.Pointer[httputil.ReverseProxy]
	service.Store(proxyTo(t, before.url))
	p := open(t, serveGateway(t, func(w http.ResponseWriter, r *http.Request) { service.Load().ServeHTTP(w, r) })+"/#subscriptions", look{})
	p.expect("401 /subscriptions/events", "410 /subscriptions/events", "401 /subscriptions")
	p.following()
	service.Store(proxyTo(t, after.url))
	p.press(`#feed-switch`, `#feed-switch`)
	p.until(`[...document.querySelectorAll("#log-entries .entry")].some((row) => row.textContent.includes("cursor_expired"))`)
	p.press(`#feed-happen:enabled`)
	p.sees(`.feed-row`)
}

func TestMerchant_RefreshesAListThatWasReadBeforeAChange(t *testing.T) {
	p, s := openMerchantOnServe(t)
	p.holdAnswers("/subscriptions?page=1")
	p.jump("1")
	p.until(`window.kept`)
	s.change(t, `UPDATE subscriptions SET status = 'expired' WHERE (store_id, id) = (1, 5044)`)
	p.hasNews("#5044", "Expired")
	p.sleep(100 * time.Millisecond)
	p.run(`deliver()`)
	p.sees(`[data-subscription='5044'] [data-status='expired']`)
}

// The numbers follow, too, and the page asks for none of it until something changes.
func TestMerchant_ShowsNewsWithoutAClick(t *testing.T) {
	slow(t)
	demo := startDemo(t)
	p := open(t, demo.url+"/#subscriptions", look{})
	p.following()
	p.sees(`.months .month:last-child`)
	is(p, `document.querySelector(".months .month:last-child").title.split(": ")[1]`, "SAR\u00a0320.00", "the running month")
	p.press(`.revenue summary`)
	p.with(`.table-scroll`, `control.focus()`)
	calls := evaluate[int](p, `document.querySelectorAll(".entry").length`)
	for range 2 { // the second one ends a trial
		demo.shopper(t, "").ok("POST", "/playground/subscriptions", "{}")
	}
	p.hasNews("Trialing", "Active")
	p.until(`document.querySelector(".months .month:last-child").title.endsWith("336.67")`)
	p.reads(`.figure .big`, "SAR\u00a0336.67")
	p.reads(`#status-filter [value='trialing'] ~ span .count`, "7")
	p.hasFocus(`details[open] .table-scroll`)
	assert.That(t, calls < 13, "%d calls before anything happened", calls)
}

func TestMerchant_SaysTheSameInChartAndTable(t *testing.T) {
	slow(t)
	inEachLook(t, []look{{width: 320, height: 568}, {width: 1440, language: "ar", dark: true}}, wantChartAsTable)
}

func wantChartAsTable(t *testing.T, l look) {
	p := open(t, startDemo(t).url+"/#subscriptions", l)
	p.until(`document.querySelectorAll(".months .month").length === 18`)
	p.until(`/\d/.test(document.querySelector(".revenue .panel-head .hint").textContent)`) // the time of the figures
	p.press(`.revenue summary`)
	faults := evaluate[[]string](p, `(() => {
		const rows = [...document.querySelectorAll(".revenue tbody tr")].reverse().map((row) =>
			[row.dataset.month, ...[...row.cells].slice(1).map((cell) => Number(cell.textContent.replace(/[^\d.-]/g, "")))]);
		const most = Math.max(...rows.map(([, mrr]) => mrr));
		return [...document.querySelectorAll(".month")].flatMap((group, i) => {
			const [month, mrr, ...moved] = rows[i];
			const share = group.querySelector(".bar").clientHeight / group.querySelector(".column").clientHeight;
			return [
				group.dataset.month !== month && "month " + group.dataset.month,
				Math.abs(share - mrr / most) > 0.02 && "bar " + share,
				i > 0 && Math.abs(mrr - rows[i - 1][1] - moved.slice(0, 7).reduce((a, b) => a + b)) > 0.02 && "sum " + mrr,
			].filter(Boolean).map((fault) => fault + " of " + rows[i]);
		});
	})()`)
	assert.That(t, len(faults) == 0, "%q", faults)
	p.noSidewaysScroll()
}

// A service without the demo's tokens and backstage.
func TestPlayground_AsksForATokenAndOffersOnlyWhatItCanWithoutTheDemo(t *testing.T) {
	slow(t)
	s := startServe(t, ephemeral.Redis(t))
	p := open(t, s.url+"/#subscriptions", everyLook[0])
	p.expect("401 /subscriptions")
	p.until(`document.querySelector("#store-switch").hidden && !document.querySelector("#own-token").hidden`)
	p.shows("own-token")
	p.fill(`#own-token-input`, "1|wrong")
	p.press(`#own-token button`)
	p.sees(`#own-token .refusal`, "not valid")
	p.fill(`#own-token-input`, s.api)
	p.press(`#own-token button`)
	p.rows(15, 5048)
	p.sees(`.months`)
	p.seesNo(`#own-token .refusal`)

	p = openStoreOf(t, s)
	is(p, `[...document.querySelectorAll("[data-scenario]")].filter((b) => b.ariaDisabled !== "true").map((b) => b.dataset.scenario).join()`, "lostAnswer,offline,coupon", "scenarios that are offered")
	p.tap(`#tab-home`)
	p.shows("list")
	p.tap(`[data-scenario="merge"]`)
	p.until(`document.querySelector("#story").hidden`)
}

// The page must not claim that nothing is there when the service cannot say.
func TestMerchant_OffersARetryAfterAnError(t *testing.T) {
	p := openMerchant(t)
	p.expect("0 /subscriptions", "0 /subscriptions/events")
	p.offline(true)
	p.press(`#page-next`)
	p.sees(`#subscription-list [role='alert']`, "unreachable")
	p.offline(false)
	p.press(`#subscription-list .blank button`)
	p.reads(`#page-position`, "Page 2: 16 to 30")
}
