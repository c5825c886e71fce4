package server_test

import (
	"regexp"
	"strings"
	"testing"

	"commerce/deploy/ephemeral"
)

// nextSamples opens the groups of the page of the API reference, and scrolls on: the viewer
// renders an operation when it comes into view. It returns the requests shown so far.
const nextSamples = `(async () => {
	for (const button of document.querySelectorAll("button")) if (button.innerText.trim() === "Show More") button.click();
	const end = document.documentElement.scrollHeight - innerHeight;
	scrollTo(0, scrollY >= end ? 0 : scrollY + innerHeight / 2);
	await new Promise((resolve) => setTimeout(resolve, 100));
	return [...document.querySelectorAll("pre")].map((pre) => pre.innerText).filter((text) => text.includes("curl "));
})()`

var apiToken = regexp.MustCompile(`Bearer (\d+\|\w+)`)

// A visitor pastes the commands of the page one after another, while the demo runs.
func TestReference_SamplesWorkOneAfterAnother(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	d := startDemo(t)
	p := openPageAs(t, d.url+"/docs", look{width: 1440, height: 3000})
	doc := must(document())(t)
	want := 2 // in the description
	for _, item := range doc.Paths.Map() {
		want += len(item.Operations())
	}
	p.until(`document.querySelector("h1")?.textContent.includes("Merchant Commerce Service")`)
	var samples []string
	for tries := 0; len(samples) < want && tries < 100; tries++ {
		samples = evaluate[[]string](p, nextSamples)
	}
	require(t, len(samples) == want, "the page shows %d samples, want %d:\n%s", len(samples), want, strings.Join(samples, "\n"))
	pasted := strings.Join(samples, "\n")
	token := apiToken.FindStringSubmatch(pasted)
	require(t, token != nil && !strings.Contains(pasted, "localhost:8080"), "the samples are not this demo's:\n%s", pasted)
	script := "API_TOKEN='" + token[1] + "'\n" +
		`curl() { command curl -sS -o /dev/null -w '%{http_code} %header{idempotency-replayed}\n' "$@"; }` + "\n" + pasted
	got := strings.Fields(terminal{dir: t.TempDir(), url: d.url}.run(t, script))
	assert(t, strings.Join(got, " ") == strings.TrimSpace(strings.Repeat("200 ", want)), "the samples answered %q:\n%s", got, pasted)
}
