package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/getkin/kin-openapi/openapi3"

	"commerce/deploy/assert"
	"commerce/docs"
)

// openReference opens the API reference, and fails the test if it requests other hosts.
func openReference(t *testing.T, service, fragment string, l look) page {
	t.Helper()
	p := open(t, "about:blank", l)
	t.Cleanup(func() {
		requested := p.faults.requested()
		for _, address := range requested {
			assert.That(t, strings.HasPrefix(address, service+"/") || address == "about:blank", "the page requested %.200s", address)
		}
		assert.That(t, len(requested) >= 5, "saw only these requests: %q", requested)
	})
	p.do(
		send(cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{
			Source: `globalThis.refused = []; addEventListener("securitypolicyviolation", (e) => refused.push(e.violatedDirective + " " + e.blockedURI));`,
		}),
		chromedp.Navigate(service+"/docs"+fragment),
	)
	title := "Merchant Commerce Service"
	if l.language == "ar" {
		title = "خدمة التجارة"
	}
	p.until(`document.querySelector("h1")?.textContent.includes("` + title + `")`)
	return p
}

// The page needs no eval and no other hosts. Below a path, only its addresses differ.
func TestReference_ShowsTheDocument(t *testing.T) {
	slow(t)
	demo, below := startDemo(t), startDemo(t, "BASE_PATH=/shop")
	t.Run("below a path", func(t *testing.T) {
		t.Parallel()
		wantReference(t, below, look{width: 1440})
	})
	inEachLook(t, []look{
		{width: 1440},
		{width: 1440, dark: true},
		{width: 360, height: 640, touch: true},
		{width: 360, height: 640, touch: true, dark: true},
		{width: 320, language: "ar"},
		{width: 1440, language: "ar", dark: true},
	}, func(t *testing.T, l look) { wantReference(t, demo, l) })
}

func wantReference(t *testing.T, s *service, l look) {
	t.Helper()
	p := openReference(t, s.url, "", l)
	p.until(`document.body.innerText.includes("` + s.url + `")`) // the server
	if l.width > 1000 && l.language == "" {
		for _, group := range []string{"Cart", "Subscriptions", "OpenAPI document"} {
			p.until(`[...document.querySelectorAll("nav button, aside button, aside a")].some((e) => e.innerText.trim().startsWith("` + group + `"))`)
		}
	}
	p.until(`document.documentElement.scrollWidth <= innerWidth`)
	p.opensAtTheFirstCall()
	p.axe()
	p.screenshot(l.String())
	is(p, `document.body.classList.contains("dark-mode")`, l.dark, "dark")
	is(p, `refused`, []string{}, "what the policy of the page refused")
	is(p, `document.cookie`, "", "cookies")
	is(p, `[...document.querySelectorAll("a[href]")].filter((a) => a.checkVisibility() && a.origin !== origin).map((a) => a.href).join(" ")`, "", "links to other hosts")
}

// opensAtTheFirstCall waits until the window shows the bar, and below it a call and the button that sends it.
func (p page) opensAtTheFirstCall() {
	p.t.Helper()
	p.until(`(() => {
		const boxes = [".top", "[id$='POST/cart/add'] :is(.section-header, h3)", "[id$='POST/cart/add'] .show-api-client-button"].map((part) => {
			const element = document.querySelector(part);
			const { left, top, bottom, width, height } = element.getBoundingClientRect();
			return { top, bottom, hit: element.contains(document.elementFromPoint(left + width / 2, top + height / 2)) };
		});
		const [bar, call, button] = boxes;
		return boxes.every(({ hit }) => hit) && bar.top === 0 && call.top >= bar.bottom && button.top >= call.top && button.bottom <= innerHeight;
	})()`)
}

func TestReference_LinksToCallsAndFindsThem(t *testing.T) {
	slow(t)
	s := startDemo(t)
	inEachLook(t, []look{{width: 1440}, {width: 1440, dark: true}}, func(t *testing.T, l look) {
		p := openReference(t, s.url, "#tag/cart/POST/cart/add", l)
		p.until(`document.activeElement.innerText.includes("` + s.url + `/cart/add")`)
		p.screenshot("add-" + l.String())
		sample := evaluate[string](p, `document.activeElement.innerText`)
		own := strings.Contains(sample, "X-Cart-Token: ") && !strings.Contains(sample, "q3Zt0bWm5yV8uKc1RdXhLg") // the document's, which all visitors have
		assert.That(t, own && !strings.Contains(sample, "If-Match:") && strings.Contains(sample, "X-Public-Key: pk_demo"), "the sample request is\n%s", sample)
		p.axe()
		is(p, `[...document.querySelectorAll("button")].some((b) => b.checkVisibility() && b.innerText.includes("Markdown"))`, false, "operations offer to copy the whole document")
	})
	p := openReference(t, s.url, "", look{})
	p.do(chromedp.KeyEvent("k", chromedp.KeyModifiers(2))) // Ctrl+K
	p.hasFocus(`input`)
	p.key("coupon")
	p.until(`[...document.querySelectorAll("[role=option], [role=listbox] a")].some((e) => e.textContent.includes("Apply a coupon"))`)
	p.axe()
}

// barParts are the texts and places of what is in the bar on top of a page.
const barParts = `[...document.querySelectorAll(".top, .brand, .tabs > *, .top .api, #language")].filter((e) => e.checkVisibility()).map((e) => {
	const { x, y, width, height } = e.getBoundingClientRect();
	const scrolled = getComputedStyle(document.querySelector(".top")).position === "sticky" ? 0 : scrollY;
	return [e.matches(".top") ? "" : e.textContent.trim().replace(/\s+/g, " "), x, y + scrolled, width, height, getComputedStyle(e).fontFamily].join(" ");
}).join("\n")`

func TestReference_HasTheBarOfThePlayground(t *testing.T) {
	slow(t)
	url := startDemo(t).url
	for _, looks := range [][]look{{{width: 1920}, {width: 768}, {width: 390}}, {{width: 1440, language: "ar", dark: true}, {width: 320, language: "ar", dark: true}}} {
		t.Run(looks[0].String(), func(t *testing.T) {
			t.Parallel()
			p := open(t, url+"/", looks[0])
			p.until(`[...document.querySelectorAll(".top .api, #log [data-t='reference']")].map((link) => link.getAttribute("href")).join() === "docs,docs"`)
			bars := func(p page) map[string]string {
				shown := map[string]string{}
				for _, l := range looks {
					p.do(l.emulate())
					p.until(fmt.Sprintf(`innerWidth === %d`, l.width))
					p.settle()
					shown[l.String()] = evaluate[string](p, barParts)
				}
				return shown
			}
			want := bars(p)
			p = openReference(t, url, "", looks[0])
			assert.Equal(t, bars(p), want, "the bar")
			is(p, `[...document.querySelectorAll(".top a")].map((a) => a.href).join(" ")`, url+"/ "+url+"/#store "+url+"/#subscriptions "+url+"/docs", "links")
			p.press("#language") // also the playground's from now on
			other := `document.documentElement.dir === "` + map[string]string{"": "rtl", "ar": "ltr"}[looks[0].language] + `"`
			p.until(other)
			p.do(chromedp.Navigate(url + "/"))
			p.until(other)
		})
	}
}

// A visitor sends requests from the page, while the demo runs.
func TestReference_TriesCalls(t *testing.T) {
	slow(t)
	d := startDemo(t)
	for l, calls := range map[look]map[string]string{
		{width: 1440}: {"cart/POST/cart/add": `"cart_token"`, "subscriptions/GET/subscriptions": `"current_page"`},
		{width: 390, language: "ar", dark: true, touch: true}: {"cart/GET/cart": `"cart_token"`},
	} {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			for call, want := range calls {
				p := openReference(t, d.url, "#tag/"+call, l)
				p.press("[id$='" + call + "'] .show-api-client-button")
				p.sees(`.scalar-client--open [data-addressbar-action=send]`)
				p.axe()
				p.press(".scalar-client--open [data-addressbar-action=send]")
				p.until(`document.querySelector(".scalar-client--open").innerText.includes("200 OK")`)
				p.until(`(() => { const body = [...document.querySelectorAll(".scalar-client--open .cm-content")].at(-1); body.scrollIntoView(); return body.innerText.includes('` + want + `') })()`)
				p.axe()
				p.screenshot(strings.ReplaceAll(call, "/", "-") + "-" + l.String())
				p.key("Escape")
				p.seesNo(`.scalar-client--open`)
			}
		})
	}
}

// nextSamples opens the groups of the page of the API reference, and scrolls on: the viewer
// renders an operation when it comes into view. It returns the requests shown so far.
const nextSamples = `(async () => {
	for (const button of document.querySelectorAll("button")) if (button.innerText.trim() === "Show More") button.click();
	const end = document.documentElement.scrollHeight - innerHeight;
	scrollTo(0, scrollY >= end ? 0 : scrollY + innerHeight / 2);
	await new Promise((resolve) => setTimeout(resolve, 100));
	return [...document.querySelectorAll("pre")].map((pre) => pre.innerText).filter((text) => text.includes("curl "));
})()`

// A visitor pastes the commands of the page one after another, while the demo runs.
func TestReference_SamplesWorkOneAfterAnother(t *testing.T) {
	slow(t)
	d := startDemo(t)
	p := open(t, d.url+"/docs", look{width: 1440, height: 3000})
	doc := assert.Must(openapi3.NewLoader().LoadFromData(docs.OpenAPI))(t)
	want := 2 // in the description
	for _, item := range doc.Paths.Map() {
		want += len(item.Operations())
	}
	p.sees(`h1`, "Merchant Commerce Service")
	var samples []string
	for tries := 0; len(samples) < want && tries < 100; tries++ {
		samples = evaluate[[]string](p, nextSamples)
	}
	assert.Require(t, len(samples) == want, "the page shows %d samples, want %d:\n%s", len(samples), want, strings.Join(samples, "\n"))
	pasted := strings.Join(samples, "\n")
	token := regexp.MustCompile(`Bearer (\d+\|\w+)`).FindStringSubmatch(pasted)
	assert.Require(t, token != nil && !strings.Contains(pasted, "localhost:8080"), "the samples are not this demo's:\n%s", pasted)
	// The visitor ends the stream of events, which never ends by itself (28).
	script := "API_TOKEN='" + token[1] + "'\n" +
		`curl() { command curl -sS -m 5 -o /dev/null -w '%{http_code} %header{idempotency-replayed}\n' "$@" 2>/dev/null || [ $? = 28 ]; }` + "\n" + pasted
	got := strings.Fields(terminal{dir: t.TempDir(), url: d.url}.run(t, script))
	statuses := slices.Repeat([]string{"200"}, want)
	for i, sample := range samples {
		switch {
		case strings.Contains(sample, "/ucp/pk_demo/carts \\"):
			statuses[i] = "201"
		case strings.Contains(sample, "/buy/"):
			statuses[i] = "303"
		case strings.Contains(sample, "/cart/handover/redeem"), strings.Contains(sample, "/cart/share/"):
			statuses[i] = "404" // its code is one of another demo
		case strings.Contains(sample, "/cart/merge/undo"):
			statuses[i] = "401" // the page has no customer's token
		}
	}
	assert.That(t, slices.Equal(got, statuses), "the samples answered %q, want %q:\n%s", got, statuses, pasted)
}
