package e2e

import (
	"fmt"
	"strings"
	"testing"

	"commerce/deploy/assert"
)

const (
	stageAnimations = `document.querySelector("#stage").getAnimations({ subtree: true })`

	stageState = stageAnimations + `.map(({ playState }) => playState).filter((s, i, all) => all.indexOf(s) === i).join()`
	stageWord  = `document.querySelector("#stage-switch span").textContent`
	entries    = `document.querySelectorAll("#log-entries .entry").length`
)

// The page asks the service for nothing until somebody wants it to. Each moment can be shown, for example for a picture.
// The counts are those of new carts.
func TestHero_ShowsWhatTheServiceCounts(t *testing.T) {
	p := openHero(t, look{}, "")
	p.until(stageState + ` === "finished" && ` + stageWord + ` === "Play"`)
	is(p, entries, 0, "requests before anybody asks")
	is(p, `document.querySelector("h1").textContent`, "A headless cart for storefronts, apps and agents", "the first line")
	p.reads(`.upshot`, "1 in the cart, not 2")
	p.run(`document.querySelectorAll("#stage [data-count]").forEach((e) => { e.textContent = "?" })`)
	p.run(`for (let i = 0; i < 3; i++) document.querySelector("#stage-switch").click()`) // the numbers are asked for once
	p.until(entries + ` === 5 && ` + stageState + ` === "running"`)
	for kind, want := range map[string]int{"lost": 1, "replayed": 1, "changed": 2} {
		assert.Equal(t, evaluate[int](p, `document.querySelectorAll("#log-entries .entry[data-kind='`+kind+`']").length`), want, "rows of kind %s", kind)
	}
	assert.Equal(t, evaluate[string](p, `[...document.querySelectorAll("#log-entries .played-in")].map((e) => e.textContent).sort().join()`),
		"A naive cart,A naive cart,This service,This service,This service", "the carts of the rows")
	p.reads(`.upshot`, "1 in the cart, not 2")
	for _, moment := range []struct {
		at    int
		shows string
	}{
		{0, "tap empty:0 empty:0 captionTap"},
		{2700, "tap lost lost kept:1 first:1 captionLost"},
		{6000, "tap kept:1 replayed second:2 replayed upshot captionSame"},
	} {
		shown := evaluate[string](p, fmt.Sprintf(`(() => {
			for (const animation of %s) { animation.pause(); animation.currentTime = %d; }
			return [...document.querySelectorAll("#stage [data-actor]:not(.counter)")].filter((e) => getComputedStyle(e).opacity === "1")
				.map((e) => e.dataset.actor + (e.parentElement.matches(".count") ? ":" + e.textContent : "")).join(" ");
		})()`, stageAnimations, moment.at))
		assert.Equal(t, shown, moment.shows, "shown at %d ms", moment.at)
	}
	p.run(stageAnimations + `.forEach((a) => a.finish())`)
	p.until(stageWord + ` === "Play again"`)
	p.press(`#tab-store`)
	for _, device := range []string{deviceA, deviceB} {
		p.press(device + `[data-part="reload"]`)
	}
	p.until(entries + ` === 7`)
	is(p, `[...document.querySelectorAll("#log-entries .said")].filter(({ textContent }) => /version 0/.test(textContent)).length`, 0, "rows that speak of version 0")
	is(p, `[...document.querySelectorAll("[data-part='version']")].some((e) => e.checkVisibility())`, false, "a version of an empty cart is in sight")
}

func TestHero_ShowsItsEndAtOnceToWhoPrefersLessMotion(t *testing.T) {
	p := openHero(t, look{still: true}, "")
	p.press(`#stage-switch`)
	p.until(entries + ` === 5 && ` + stageState + ` === "finished" && ` + stageWord + ` === "Play again"`)
	p.press(`#language`)
	p.reads(`#stage-switch span`, "إعادة العرض")
}

func TestHero_ShowsNoCountsWithoutAService(t *testing.T) {
	p := openHero(t, look{still: true}, "")
	p.expect("0 /cart", "0 /cart/*")
	p.offline(true)
	p.press(`#stage-switch`)
	p.until(`document.querySelector(".failure").checkVisibility()`)
	is(p, `[...document.querySelectorAll("#stage [data-count]")].filter((e) => e.checkVisibility()).length`, 0, "counts in sight")
	p.offline(false)
	p.until(`document.querySelector("#stage-switch").ariaBusy === "false"`)
	p.press(`#stage-switch`)
	p.until(`document.querySelector(".upshot").checkVisibility()`)
}

// The scenarios are cards at every width. In a narrow window, the bar leads to the reference, and nothing covers what an
// empty cart says to do.
func TestHero_OpensOnTheScenarios(t *testing.T) {
	for _, l := range []look{
		{width: 360, height: 740, touch: true},
		{width: 360, height: 740, touch: true, language: "ar", dark: true},
		{width: 768, height: 1024, dark: true},
		{width: 1440, language: "ar"},
	} {
		t.Run(l.String(), func(t *testing.T) {
			p := openHero(t, l, "")
			p.shows("home")
			cards := evaluate[[]float64](p, `[...document.querySelectorAll(".scenario")].filter((card) => card.checkVisibility()).map((card) => card.getBoundingClientRect().top)`)
			height := evaluate[float64](p, `innerHeight`)
			assert.Require(t, len(cards) == len(playedScenarios) && cards[0] < height/2, "%d cards, the first at %v of %.0f", len(cards), cards, height)
			is(p, `document.querySelector(".top .api").checkVisibility()`, true, "the bar leads to the reference")
			p.press(`#tab-store`)
			p.shows("empty-cart")
			hint := evaluate[string](p, `(() => {
				const hint = document.querySelector("#device-a [data-part='empty'] .hint");
				hint.scrollIntoView({ block: "nearest", behavior: "instant" });
				const { left, top, width, height } = hint.getBoundingClientRect();
				return document.elementFromPoint(left + width / 2, top + height / 2).outerHTML.slice(0, 60);
			})()`)
			assert.That(t, strings.Contains(hint, "cartEmptyHint"), "the hint is covered by %s", hint)
		})
	}
}

// The first line is in sight on a phone, devices have names from a tablet on, and a wide window has no large blank.
func TestHero_LeavesTheShopItsRoom(t *testing.T) {
	for _, l := range []look{
		{width: 390, height: 844, touch: true},
		{width: 390, height: 844, touch: true, language: "ar"},
		{width: 768, height: 1024},
		{width: 1440},
		{width: 1440, language: "ar"},
		{width: 1920, height: 1080, dark: true},
	} {
		t.Run(l.String(), func(t *testing.T) {
			p := openHero(t, l, "#store")
			p.shows("empty")
			box := func(selector, side string) float64 {
				return evaluate[float64](p, fmt.Sprintf(`document.querySelector(%q).getBoundingClientRect().%s`, selector, side))
			}
			height := evaluate[float64](p, `innerHeight`)
			if l.width >= 768 {
				assert.That(t, evaluate[bool](p, inA(`h2 .word`)+`.checkVisibility()`) && box(deviceA+`.device-bar`, "height") < 60, "the bar of device A is %.0f high", box(deviceA+`.device-bar`, "height"))
				is(p, `document.scrollingElement.scrollHeight`, height, "height of the document")
			}
			if l.width >= 1440 {
				for _, column := range []string{"#device-a", "#device-b", "#log"} {
					assert.That(t, box(column, "bottom") > height-40, "%s ends at %.0f of %.0f", column, box(column, "bottom"), height)
				}
				assert.That(t, box(deviceA+".basket", "height") < 0.35*height, "an empty cart is %.0f high", box(deviceA+".basket", "height"))
			}
			p.press(deviceA + tile("1"))
			p.sees(deviceA + `[data-line="1"]`)
			p.screenshot("line")
			bottom, till := box(deviceA+`[data-line="1"]`, "bottom"), box(deviceA+".till", "top")
			assert.That(t, bottom <= till, "the first line ends at %.0f, below the total at %.0f", bottom, till)
		})
	}
}

func openHero(t *testing.T, l look, hash string) page {
	t.Helper()
	slow(t)
	p := open(t, startDemo(t).url+"/"+hash, l)
	p.hasCarts()
	return p
}
