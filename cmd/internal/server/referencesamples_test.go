package server_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// shownSamples returns the requests that the page of the API reference shows, in its order.
// The viewer renders an operation when it comes into view, in a group that is open.
const shownSamples = `(async (want) => {
	const samples = () => [...document.querySelectorAll("pre")].map((pre) => pre.innerText).filter((text) => text.includes("curl "));
	for (let tries = 0; tries < 5 && samples().length < want; tries++) {
		for (const button of document.querySelectorAll("button")) if (button.innerText.trim() === "Show More") button.click();
		for (let y = 0; y < document.documentElement.scrollHeight; y += 800) {
			scrollTo(0, y);
			await new Promise((resolve) => setTimeout(resolve, 50));
		}
	}
	return samples();
})`

var apiToken = regexp.MustCompile(`Bearer (\d+\|\w+)`)

// A visitor pastes the commands of the page one after another, while the demo runs.
func TestReference_SamplesWorkOneAfterAnother(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	p := openPageAs(t, d.url+"/docs", look{width: 1440})
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	want := 2 // in the description
	for _, item := range doc.Paths.Map() {
		want += len(item.Operations())
	}
	p.until(`document.querySelector("h1")?.textContent.includes("Merchant Commerce Service")`)
	samples := evaluate[[]string](p, fmt.Sprintf("%s(%d)", shownSamples, want))
	if len(samples) != want {
		t.Fatalf("the page shows %d samples, want %d:\n%s", len(samples), want, strings.Join(samples, "\n"))
	}
	pasted := strings.Join(samples, "\n")
	token := apiToken.FindStringSubmatch(pasted)
	if token == nil || strings.Contains(pasted, "localhost:8080") {
		t.Fatalf("the samples are not this demo's:\n%s", pasted)
	}
	script := "API_TOKEN='" + token[1] + "'\n" +
		`curl() { command curl -sS -o /dev/null -w '%{http_code} %header{idempotency-replayed}\n' "$@"; }` + "\n" + pasted
	got := strings.Fields(terminal{dir: t.TempDir(), url: d.url}.run(t, script))
	if strings.Join(got, " ") != strings.TrimSpace(strings.Repeat("200 ", want)) {
		t.Errorf("the samples answered %q:\n%s", got, pasted)
	}
}

// Otherwise all visitors of a page would share a cart.
func TestReference_EachVisitHasACartOfItsOwn(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t), withReference)
	token := regexp.MustCompile(`X-Cart-Token: ([A-Za-z0-9_-]{22})'`)
	seen := map[string]bool{exampleToken: true}
	for range 2 {
		p := openReference(t, s, "#tag/cart/POST/cart/add", look{width: 1440})
		p.until(`document.activeElement.innerText.includes("` + s.URL + `/cart/add")`)
		found := token.FindStringSubmatch(evaluate[string](p, `document.activeElement.innerText`))
		if found == nil || seen[found[1]] {
			t.Fatalf("the sample has the cart token %q", found)
		}
		seen[found[1]] = true
	}
}
