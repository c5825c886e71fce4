package server_test

import (
	"testing"

	"commerce/cmd/internal/pages"
	"commerce/deploy/ephemeral"
)

// everyLook has each end of the widths, both languages, both colors and a touch screen.
var everyLook = []look{
	{width: 320, height: 568, touch: true},
	{width: 320, height: 568, touch: true, language: "ar", dark: true},
	{width: 1440, dark: true},
	{width: 1440, language: "ar"},
}

func TestPlayground_FitsTheWindowAndIsAccessible(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	s := openShop(t, embeddedRedis(t), withPlayground(pages.Playground{}))
	for _, l := range everyLook {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			p := openPageAs(t, s.URL+"/", l)
			p.hasCarts()
			p.noSidewaysScroll()
			p.screenshot("shop")
			p.click(`#tab-subscriptions`)
			p.until(`document.querySelector("#subscriptions").checkVisibility()`)
			p.noSidewaysScroll()
			p.axe()
			p.screenshot("subscriptions")
		})
	}
}
