package e2e

import (
	"fmt"
	"strings"
	"testing"

	"commerce/deploy/assert"
)

// The page asks the service for nothing until somebody wants it to. The scenarios are cards at every width. In a narrow window, the bar leads to the reference, and nothing covers what an
// empty cart says to do.
func TestPlayground_OpensOnTheScenarios(t *testing.T) {
	for _, l := range []look{
		{width: 360, height: 740, touch: true},
		{width: 360, height: 740, touch: true, language: "ar", dark: true},
		{width: 768, height: 1024, dark: true},
		{width: 1440, language: "ar"},
	} {
		t.Run(l.String(), func(t *testing.T) {
			p := openPlayground(t, l, "")
			p.shows("home")
			is(p, `document.querySelectorAll("#log-entries .entry").length`, 0, "requests before anybody asks")
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
func TestPlayground_GivesTheShopItsRoom(t *testing.T) {
	for _, l := range []look{
		{width: 390, height: 844, touch: true},
		{width: 390, height: 844, touch: true, language: "ar"},
		{width: 768, height: 1024},
		{width: 1440},
		{width: 1440, language: "ar"},
		{width: 1920, height: 1080, dark: true},
	} {
		t.Run(l.String(), func(t *testing.T) {
			p := openPlayground(t, l, "#store")
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

func openPlayground(t *testing.T, l look, hash string) page {
	t.Helper()
	slow(t)
	p := open(t, startDemo(t).url+"/"+hash, l)
	p.hasCarts()
	return p
}
