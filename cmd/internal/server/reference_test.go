package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/klauspost/compress/gzip"

	"commerce/cmd/internal/pages"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/docs"
)

func withReference(p *server.Parts) { p.Playground = &pages.Playground{} }

func under(basePath string) func(*server.Parts) {
	return func(p *server.Parts) { p.BasePath = basePath }
}

type visited struct {
	mu   sync.Mutex
	urls []string
}

func (v *visited) see(event any) {
	if e, ok := event.(*network.EventRequestWillBeSent); ok {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.urls = append(v.urls, e.Request.URL)
	}
}

// openReference opens the API reference, and fails the test if it requests other hosts.
func openReference(t *testing.T, service, fragment string, l look) page {
	t.Helper()
	p := openPageAs(t, "about:blank", l)
	var seen visited
	assert.NoError(t, chromedp.Listen(p.ctx, seen.see))
	t.Cleanup(func() {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		for _, address := range seen.urls {
			assert.That(t, strings.HasPrefix(address, service+"/") || address == "about:blank", "the page requested %.200s", address)
		}
		assert.That(t, len(seen.urls) >= 5, "saw only these requests: %q", seen.urls)
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

// The page needs no eval and no other hosts.
func TestReference_ShowsTheDocument(t *testing.T) {
	slow(t)
	for _, basePath := range []string{"", "/shop"} {
		s := openShop(t, embeddedRedis(t), under(basePath), withPlayground(pages.Playground{Demo: &pages.Demo{APIToken: "1|lent"}}))
		looks := []look{{width: 1440}, {width: 1440, dark: true}, {width: 360, touch: true}, {width: 360, touch: true, dark: true}, {width: 320, language: "ar"}, {width: 1440, language: "ar", dark: true}}
		if basePath != "" { // which differs in its addresses only
			looks = looks[:1]
		}
		for _, l := range looks {
			t.Run(strings.TrimPrefix(basePath+"/"+l.String(), "/"), func(t *testing.T) {
				t.Parallel()
				p := openReference(t, s.URL, "", l)
				p.until(`document.body.innerText.includes("` + s.URL + `")`) // the server
				if l.width > 1000 && l.language == "" {
					for _, group := range []string{"Cart", "Subscriptions", "OpenAPI document"} {
						p.until(`[...document.querySelectorAll("nav button, aside button, aside a")].some((e) => e.innerText.trim().startsWith("` + group + `"))`)
					}
				}
				p.until(`document.documentElement.scrollWidth <= innerWidth`)
				p.axe()
				p.screenshot(l.String())
				assert.Equal(t, evaluate[bool](p, `document.body.classList.contains("dark-mode")`), l.dark, "dark")
				refused := evaluate[[]string](p, `refused`)
				assert.That(t, len(refused) == 0, "the policy of the page refused %q", refused)
				assert.Equal(t, evaluate[string](p, `document.cookie`), "", "cookies")
				assert.Equal(t, evaluate[string](p, `[...document.querySelectorAll("a[href]")].filter((a) => a.checkVisibility() && a.origin !== origin).map((a) => a.href).join(" ")`), "", "links to other hosts")
			})
		}
	}
}

func TestReference_LinksToCallsAndFindsThem(t *testing.T) {
	slow(t)
	s := openShop(t, embeddedRedis(t), withReference)
	for _, dark := range []bool{false, true} {
		t.Run(look{dark: dark}.String(), func(t *testing.T) {
			t.Parallel()
			p := openReference(t, s.URL, "#tag/cart/POST/cart/add", look{width: 1440, dark: dark})
			p.until(`document.activeElement.innerText.includes("` + s.URL + `/cart/add")`)
			p.screenshot("add-" + look{width: 1440, dark: dark}.String())
			sample := evaluate[string](p, `document.activeElement.innerText`)
			own := strings.Contains(sample, "X-Cart-Token: ") && !strings.Contains(sample, exampleToken) // not all visitors'
			assert.That(t, own && !strings.Contains(sample, "If-Match:") && strings.Contains(sample, "X-Public-Key: pk_demo"), "the sample request is\n%s", sample)
			p.axe()
			assert.That(t, !evaluate[bool](p, `[...document.querySelectorAll("button")].some((b) => b.checkVisibility() && b.innerText.includes("Markdown"))`), "operations offer to copy the whole document")
		})
	}
	p := openReference(t, s.URL, "", look{})
	p.do(chromedp.KeyEvent("k", chromedp.KeyModifiers(2))) // Ctrl+K
	p.until(`document.activeElement.matches("input")`)
	p.key("coupon")
	p.until(`[...document.querySelectorAll("[role=option], [role=listbox] a")].some((e) => e.textContent.includes("Apply a coupon"))`)
	p.axe()
}

func TestReference_ServesItsFilesBoundToItsOrigin(t *testing.T) {
	s := newShop(t, withReference, under("/shop"))
	const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self'; font-src 'self'; " +
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	for path, contentType := range map[string]string{
		"/docs": "text/html", "/docs/page.css": "text/css", "/docs/page.js": "text/javascript", "/docs/ar.json": "application/json", "/docs/icon.svg": "image/svg+xml",
		"/docs/viewer.js": "text/javascript", "/docs/LICENSE.txt": "text/plain",
	} {
		a := get(t, s.URL+path, "Accept-Encoding", "gzip")
		assert.That(t, a.StatusCode == http.StatusOK && a.Header.Get("Content-Security-Policy") == policy && strings.HasPrefix(a.Header.Get("Content-Type"), contentType), "%s: %d %v", path, a.StatusCode, a.Header)
		assert.Equal(t, get(t, s.URL+path, "Accept-Encoding", "gzip", "If-None-Match", a.Header.Get("ETag")).StatusCode, http.StatusNotModified, "%s: status for its own ETag", path)
	}
}

// The service may be behind a proxy that strips a prefix, so no redirect may name a path.
func TestReference_RedirectsRelatively(t *testing.T) {
	s := newShop(t, withReference, under("/shop"))
	for path, want := range map[string]string{"/docs/": "../docs", "/docs/?dark=1": "../docs?dark=1"} {
		a := get(t, s.URL+path)
		assert.That(t, a.StatusCode == http.StatusPermanentRedirect && a.Header.Get("Location") == want && a.Header.Get("Cache-Control") == "public, max-age=300", "%s: %d %v", path, a.StatusCode, a.Header)
	}
}

// net/http would refuse these conditions without the envelope of errors.
func TestPageFiles_IgnoreRangesAndIfMatch(t *testing.T) {
	s := newShop(t, withReference)
	for _, path := range []string{
		"/docs", "/docs/page.js", "/docs/viewer.js", "/", "/playground/icon.svg", "/openapi.json", "/openapi.yaml", "/storefront.js",
	} {
		for header, value := range map[string]string{"Range": "bytes=900000000-", "If-Match": `"x"`} {
			assert.Equal(t, get(t, s.URL+path, header, value).StatusCode, http.StatusOK, "%s with %s: status", path, header)
		}
	}
}

// A strong tag would be wrong for one of the two, whose bytes differ.
func TestPageFiles_HaveOneWeakTagForCompressedAndPlainContent(t *testing.T) {
	s := newShop(t, withReference)
	for _, path := range []string{"/docs/page.js", "/docs/viewer.js", "/openapi.json", "/openapi.yaml", "/storefront.js"} {
		plain, compressed := get(t, s.URL+path, "Accept-Encoding", "identity"), get(t, s.URL+path, "Accept-Encoding", "gzip")
		assert.That(t, compressed.Header.Get("Content-Encoding") == "gzip", "%s is not compressed", path)
		tag := plain.Header.Get("ETag")
		assert.That(t, strings.HasPrefix(tag, `W/"`) && compressed.Header.Get("ETag") == tag, "%s: tags %s and %s", path, tag, compressed.Header.Get("ETag"))
		assert.Equal(t, get(t, s.URL+path, "If-None-Match", tag, "Accept-Encoding", "gzip").StatusCode, http.StatusNotModified, "%s: status for its own tag", path)
	}
}

func TestReference_SendsItsViewerCompressedWhereAccepted(t *testing.T) {
	s := newShop(t, withReference)
	stored := assert.Must(docs.Reference.ReadFile("reference/viewer.js.gz"))(t)
	r := assert.Must(gzip.NewReader(bytes.NewReader(stored)))(t)
	plain := assert.Must(io.ReadAll(r))(t)
	for accepted, want := range map[string][]byte{
		"gzip": stored, "br, GZIP;q=0.5": stored, "identity": plain, "gzip;q=0": plain, "gzip; q=0.0, br": plain, "br": plain,
	} {
		response, got := exchange(t, s.guest(t).request("GET", "/docs/viewer.js", nil, "Accept-Encoding", accepted))
		assert.That(t, bytes.Equal(got, want) && response.Header.Get("Vary") != "", "%s: %d bytes, want %d, headers %v", accepted, len(got), len(want), response.Header)
	}
}

// barParts are the texts and places of what is in the bar on top of a page.
const barParts = `[...document.querySelectorAll(".top, .brand, .tabs > *, .top .api, #language")].filter((e) => e.checkVisibility()).map((e) => {
	const { x, y, width, height } = e.getBoundingClientRect();
	return [e.matches(".top") ? "" : e.textContent.trim().replace(/\s+/g, " "), x, y, width, height, getComputedStyle(e).fontFamily].join(" ");
}).join("\n")`

func TestReference_HasTheBarOfThePlayground(t *testing.T) {
	slow(t)
	s := openShop(t, embeddedRedis(t), withPlayground(pages.Playground{Demo: &pages.Demo{APIToken: "1|lent"}}))
	for _, looks := range [][]look{{{width: 1920}, {width: 768}, {width: 390}}, {{width: 1440, language: "ar", dark: true}, {width: 320, language: "ar", dark: true}}} {
		t.Run(looks[0].String(), func(t *testing.T) {
			t.Parallel()
			p := openPageAs(t, s.URL+"/", looks[0])
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
			p = openReference(t, s.URL, "", looks[0])
			assert.Equal(t, bars(p), want, "the bar")
			assert.Equal(t, evaluate[string](p, `[...document.querySelectorAll(".top a")].map((a) => a.href).join(" ")`), s.URL+"/ "+s.URL+"/#subscriptions "+s.URL+"/docs", "links")
			p.click("#language") // also the playground's from now on
			p.until(`document.documentElement.dir === "` + map[string]string{"": "rtl", "ar": "ltr"}[looks[0].language] + `"`)
			p.do(chromedp.Navigate(s.URL + "/"))
			p.until(`document.documentElement.dir === "` + map[string]string{"": "rtl", "ar": "ltr"}[looks[0].language] + `"`)
		})
	}
}

func TestReference_IsInArabicWhereReadersScan(t *testing.T) {
	t.Parallel()
	var arabic struct {
		Title, Introduction string
		Headings            map[string]string
		Tags                map[string]struct{ Name, Description string }
		Operations          map[string]string
	}
	assert.NoError(t, json.Unmarshal(assert.Must(docs.Reference.ReadFile("reference/ar.json"))(t), &arabic))
	doc := assert.Must(document())(t)
	var headings, tags, operations []string
	for _, match := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(doc.Info.Description, -1) {
		headings = append(headings, match[1])
	}
	for _, tag := range doc.Tags {
		tags = append(tags, tag.Name)
	}
	for _, item := range doc.Paths.Map() {
		for _, operation := range item.Operations() {
			operations = append(operations, operation.OperationID)
		}
	}
	for kind, ids := range map[string][2][]string{
		"headings":   {slices.Sorted(maps.Keys(arabic.Headings)), headings},
		"tags":       {slices.Sorted(maps.Keys(arabic.Tags)), tags},
		"operations": {slices.Sorted(maps.Keys(arabic.Operations)), operations},
	} {
		slices.Sort(ids[1])
		assert.Equal(t, ids[0], ids[1], "%s in ar.json", kind)
	}
	texts := slices.Concat(slices.Collect(maps.Values(arabic.Headings)), slices.Collect(maps.Values(arabic.Operations)), []string{arabic.Title, arabic.Introduction})
	for _, tag := range arabic.Tags {
		texts = append(texts, tag.Description)
	}
	for _, text := range texts {
		assert.That(t, regexp.MustCompile(`\p{Arabic}`).MatchString(text), "%q is not in Arabic", text)
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
				p.until(`document.querySelector(".scalar-client--open [data-addressbar-action=send]")`)
				p.axe()
				p.press(".scalar-client--open [data-addressbar-action=send]")
				p.until(`document.querySelector(".scalar-client--open").innerText.includes("200 OK")`)
				p.until(`(() => { const body = [...document.querySelectorAll(".scalar-client--open .cm-content")].at(-1); body.scrollIntoView(); return body.innerText.includes('` + want + `') })()`)
				p.axe()
				p.screenshot(strings.ReplaceAll(call, "/", "-") + "-" + l.String())
				p.key("Escape")
				p.until(`!document.querySelector(".scalar-client--open")`)
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
	p := openPageAs(t, d.url+"/docs", look{width: 1440, height: 3000})
	doc := assert.Must(document())(t)
	want := 2 // in the description
	for _, item := range doc.Paths.Map() {
		want += len(item.Operations())
	}
	p.until(`document.querySelector("h1")?.textContent.includes("Merchant Commerce Service")`)
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
		case strings.Contains(sample, "/cart/handover/redeem"), strings.Contains(sample, "/cart/share/"):
			statuses[i] = "404" // its code is one of another demo
		case strings.Contains(sample, "/cart/merge/undo"):
			statuses[i] = "401" // the page has no customer's token
		}
	}
	assert.That(t, slices.Equal(got, statuses), "the samples answered %q, want %q:\n%s", got, statuses, pasted)
}
