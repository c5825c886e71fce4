package e2e

import (
	"fmt"
	"strings"
	"testing"

	"commerce/deploy/assert"
)

const (
	stageAnimations = `document.querySelector("#stage").getAnimations({ subtree: true })`

	stageTime  = stageAnimations + `[0].currentTime`
	stageState = stageAnimations + `.map(({ playState }) => playState).filter((s, i, all) => all.indexOf(s) === i).join()`
	stageWord  = `document.querySelector("#stage-switch span").textContent`
	entries    = `document.querySelectorAll("#log-entries .entry").length`
)

// Each moment can be shown, for example for a picture. The counts are those of new carts.
func TestHero_ShowsWhatTheServiceCounts(t *testing.T) {
	p := openHero(t, look{}, "")
	p.until(entries + ` === 7 && ` + stageTime + ` > 0`) // 5 of its own, and those of the devices
	for kind, want := range map[string]int{"lost": 1, "replayed": 1, "changed": 2} {
		assert.Equal(t, evaluate[int](p, `document.querySelectorAll("#log-entries .entry[data-kind='`+kind+`']").length`), want, "rows of kind %s", kind)
	}
	assert.Equal(t, evaluate[string](p, `[...document.querySelectorAll("#log-entries .played-in")].map((e) => e.textContent).sort().join()`),
		"A naive cart,A naive cart,This service,This service,This service", "the carts of the rows")
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
	p.run(`document.querySelectorAll("#stage [data-count]").forEach((e) => { e.textContent = "?" }); ` + stageAnimations + `.forEach((a) => a.finish())`)
	p.until(stageWord + ` === "Play again"`)
	p.press(`#stage-switch`)
	p.reads(`.upshot`, "1, not 2")
	for _, device := range []string{deviceA, deviceB} {
		p.press(device + `[data-part="reload"]`)
	}
	p.until(entries + ` === 14`)
	is(p, cartsShown, ", version 0 | , version 0", "carts of the devices")
}

func TestHero_WaitsGoesOnAndNeverRepeatsByItself(t *testing.T) {
	p := openHero(t, look{still: true}, "")
	rate := func(rate string) {
		p.run(stageAnimations + `.forEach((a) => { a.playbackRate = ` + rate + ` })`)
	}
	hide := func(hidden string) {
		p.run(`Object.defineProperty(document, "hidden", { value: ` + hidden + `, configurable: true }); document.dispatchEvent(new Event("visibilitychange"))`)
	}
	// Plays, pauses, and goes on before the service responds; slowly, so that a slow machine is in time.
	p.run(`for (let i = 0; i < 3; i++) document.querySelector("#stage-switch").click(); ` + stageAnimations + `.forEach((a) => { a.playbackRate = 0.1 })`)
	p.until(stageState + ` === "running"`)
	p.press(`#stage-switch`)
	p.until(stageState + ` === "paused" && ` + stageWord + ` === "Resume"`)
	hide("false")
	is(p, stageState, "paused", "after the page is visible again")
	p.press(`#stage-switch`)
	p.until(stageState + ` === "running" && ` + stageWord + ` === "Pause"`)
	hide("true")
	p.until(stageState + ` === "paused"`)
	hide("false")
	p.until(stageState + ` === "running"`)

	rate("10")
	p.until(stageState + ` === "finished" && ` + stageWord + ` === "Play again"`)
	p.press(`#language`, `#tab-subscriptions`, `#tab-store`)
	hide("true")
	hide("false")
	p.until(stageWord + ` === "إعادة العرض"`)
	is(p, stageState, "finished", "after the language, the tab and the window have changed")
	is(p, `document.querySelectorAll("#log-entries .method.post").length`, 4, "additions")

	p.do(look{}.emulate())
	p.run(`for (const _ of [1, 2, 3]) document.querySelector("#stage-switch").click()`) // the numbers are asked for once
	p.until(stageState + ` === "running"`)
	is(p, `document.querySelectorAll("#log-entries .method.post").length`, 8, "additions after it was played again")
	p.do(look{still: true}.emulate())
	p.until(stageState + ` === "finished"`)
}

func TestHero_ShowsItsEndToWhoCameForSomethingElse(t *testing.T) {
	for hash, l := range map[string]look{"": {still: true}, "#store": {}, "#handover=none": {}, "#play=lostAnswer": {}} {
		t.Run(hash, func(t *testing.T) {
			p := openHero(t, l, hash)
			p.expect("404 /cart/handover/redeem")
			p.until(stageState + ` === "finished" && ` + stageWord + ` === "Play"`)
			if strings.HasPrefix(hash, "#play") {
				p.until(`document.querySelector("#story .step.done") && !document.querySelector("#stage").checkVisibility()`)
				return
			}
			is(p, `document.querySelectorAll("#log-entries .path").length - document.querySelectorAll("#log-entries .badge[class*='from-']").length`, 0, "calls of its own")
			p.press(`#stage-switch`)
			p.until(stageState + ` === "running"`)
		})
	}
}

func TestHero_ShowsNoCountsWithoutAService(t *testing.T) {
	p := openHero(t, look{still: true}, "")
	p.expect("0 /cart", "0 /cart/*")
	p.offline(true)
	p.press(`#stage-switch`)
	p.until(`document.querySelector(".failure").checkVisibility() && ` + stageWord + ` === "Play"`)
	is(p, `[...document.querySelectorAll("#stage [data-count]")].filter((e) => e.checkVisibility()).length`, 0, "counts in sight")
	p.offline(false)
	p.press(`#stage-switch`)
	p.until(stageState + ` === "running" && document.querySelector(".upshot").checkVisibility()`)
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
				for _, column := range []string{"#watch", "#device-a", "#device-b", "#log"} {
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
