package e2e

import (
	"cmp"
	"fmt"
	"image/png"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// axe is the source of axe-core, which checks a page's accessibility. It is installed for the first test that needs it.
var axe struct {
	install sync.Once
	source  string
}

type violation struct {
	ID, Help string
	Nodes    []faultyNode
}

type faultyNode struct{ HTML, FailureSummary string }

// axe fails the test for each rule of WCAG 2.2, levels A and AA, and for each best practice
// that the page breaks as it is shown now.
func (p page) axe() {
	p.t.Helper()
	for _, v := range p.violations() {
		for _, n := range v.Nodes {
			p.t.Errorf("axe: %s: %s\n\t%s\n\t%s", v.ID, v.Help, n.HTML, n.FailureSummary)
		}
	}
}

func (p page) violations() []violation {
	p.t.Helper()
	axe.install.Do(func() {
		axe.source = string(assert.Must(os.ReadFile(filepath.Join(installPackages(p.t, "axe"), "node_modules/axe-core/axe.min.js")))(p.t))
	})
	assert.Require(p.t, axe.source != "", "axe-core is not installed, as another test reports")
	p.settle()
	evaluate[any](p, axe.source+"; null") // by the browser's tools, to which the page's policy does not apply
	found := evaluate[[]violation](p, `axe.run(document, {
		resultTypes: ["violations"],
		runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa", "best-practice"],
	}).then((results) => results.violations)`)
	for i := range found {
		found[i].Nodes = slices.DeleteFunc(found[i].Nodes, scrolledUnderABar)
	}
	return slices.DeleteFunc(found, func(v violation) bool { return len(v.Nodes) == 0 })
}

// scrolledUnderABar reports whether a target is too small only because a bar at the edge of
// the window covers a part of it, as page.tap checks.
func scrolledUnderABar(n faultyNode) bool {
	return strings.Contains(n.FailureSummary, "because it is partially obscured")
}

// settle ends the page's animations, and waits for its fonts and pictures. Otherwise a color
// or a position may be one that nobody sees for long.
func (p page) settle() {
	p.t.Helper()
	evaluate[any](p, `(async () => {
		await document.fonts.ready;
		const shown = [...document.images].filter((image) => image.loading !== "lazy" && image.checkVisibility());
		await Promise.allSettled(shown.map((image) => image.decode()));
		for (const animation of document.getAnimations()) {
			if (animation.effect.getComputedTiming().endTime === Infinity) animation.cancel();
			else animation.finish();
		}
		return null;
	})()`)
}

// noSidewaysScroll fails the test if the document is wider than the window, or an element
// reaches beyond it. An element may do so in a container that scrolls or clips it.
func (p page) noSidewaysScroll() {
	p.t.Helper()
	for _, fault := range p.sideways() {
		p.t.Errorf("wider than the window's %d pixels: %s", p.width, fault)
	}
}

func (p page) sideways() []string {
	p.t.Helper()
	p.settle()
	return evaluate[[]string](p, fmt.Sprintf(`((width) => {
		const faults = [];
		const root = document.scrollingElement;
		if (root.scrollWidth > width) faults.push("the document: " + root.scrollWidth);
		const contained = (element) => {
			for (let e = element.parentElement; e && e !== document.body; e = e.parentElement)
				if (getComputedStyle(e).overflowX !== "visible") return true;
			return false;
		};
		for (const e of document.body.querySelectorAll(":not(svg *)")) {
			const { left, right, width: own, height } = e.getBoundingClientRect();
			const hidden = own <= 1 || height <= 1 || !e.checkVisibility({ visibilityProperty: true });
			if (hidden || (left > -1 && right < width + 1) || contained(e)) continue;
			faults.push(e.cloneNode().outerHTML + " from " + Math.round(left) + " to " + Math.round(right));
		}
		return faults;
	})(%d)`, p.width))
}

// screenshot keeps a picture of what the window shows: <test>/<name>.png in the folder
// PLAYGROUND_SCREENSHOTS. Without the variable, it does nothing.
func (p page) screenshot(name string) {
	p.t.Helper()
	folder := os.Getenv("PLAYGROUND_SCREENSHOTS")
	if folder == "" {
		return
	}
	file := filepath.Join(folder, p.t.Name(), name+".png")
	assert.NoError(p.t, os.MkdirAll(filepath.Dir(file), 0o755))
	p.settle()
	png := assert.Must(chromedp.Run(p.ctx, chromedp.CaptureScreenshot()))(p.t)
	assert.NoError(p.t, os.WriteFile(file, png, 0o644))
}

// pageFaults collects what must not happen in a page: exceptions, errors in the console,
// violations of the page's policy, and failed requests that the test does not expect.
type pageFaults struct {
	mu       sync.Mutex
	found    []pageFault
	expected []string                     // see page.expect
	sent     map[network.RequestID]string // the URLs of requests
	ended    bool
}

type pageFault struct {
	response string // of a failed request: its status and path, as in page.expect
	text     string
}

// see is called with each event of the page.
func (f *pageFaults) see(event any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		f.add("exception", thrown(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert {
			f.add("console", logged(e.Args))
		}
	case *log.EventEntryAdded:
		f.seeLog(e.Entry)
	case *network.EventRequestWillBeSent:
		f.sent[e.RequestID] = e.Request.URL
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 {
			f.seeFailure(e.Response.Status, e.Response.URL, e.Response.StatusText)
		}
	case *network.EventLoadingFailed:
		if !e.Canceled { // by the page
			f.seeFailure(0, f.sent[e.RequestID], e.ErrorText)
		}
	}
}

// seeLog ignores the browser's entries about requests, which have events of their own.
func (f *pageFaults) seeLog(entry *log.Entry) {
	if strings.Contains(entry.Text, "blocked by CORS policy") {
		return
	}
	if entry.Source == log.EntrySourceSecurity || entry.Source != log.EntrySourceNetwork && entry.Level == log.EntryLevelError {
		f.add(string(entry.Source), entry.Text+" "+entry.URL)
	}
}

func (f *pageFaults) seeFailure(status int64, address, why string) {
	if u, err := url.Parse(address); err == nil && u.Path != "" {
		address = u.Path
	}
	response := fmt.Sprintf("%d %s", status, address)
	f.found = append(f.found, pageFault{response, "request: " + response + " " + why})
}

func (f *pageFaults) add(kind, what string) {
	f.found = append(f.found, pageFault{text: kind + ": " + what})
}

func (f *pageFaults) expect(responses []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expected = append(f.expected, responses...)
}

// requested returns the URLs of all requests so far.
func (f *pageFaults) requested() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.sent))
}

// end returns the unexpected faults so far: requests fail when the tab closes.
func (f *pageFaults) end() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	var unexpected []string
	for _, fault := range f.found {
		if fault.response == "" || !f.expects(fault.response) {
			unexpected = append(unexpected, fault.text)
		}
	}
	return unexpected
}

// expects also allows what the page asks every service for, and only the demo has.
func (f *pageFaults) expects(response string) bool {
	return strings.HasPrefix(response, "404 ") && strings.HasSuffix(response, "/playground/demo.json") ||
		slices.ContainsFunc(f.expected, func(pattern string) bool {
			matches, _ := path.Match(pattern, response)
			return matches
		})
}

func thrown(e *runtime.ExceptionDetails) string {
	if e.Exception == nil {
		return e.Text
	}
	return cmp.Or(e.Exception.Description, e.Text)
}

func logged(args []*runtime.RemoteObject) string {
	parts := make([]string, len(args))
	for i, a := range args {
		parts[i] = cmp.Or(a.Description, string(a.Value))
	}
	return strings.Join(parts, " ")
}

// The tests here are of what the other tests look with.

func TestPage_LooksAsTheTestAsksForAndKeepsAPicture(t *testing.T) {
	ephemeral.Slow(t)
	folder := t.TempDir()
	t.Setenv("PLAYGROUND_SCREENSHOTS", folder)
	address := servePage(t, `<main>Nothing</main>`)
	const seen = `JSON.stringify([innerWidth, innerHeight, navigator.language, matchMedia("(prefers-color-scheme: dark)").matches,
		matchMedia("(pointer: coarse)").matches, matchMedia("(prefers-reduced-motion: reduce)").matches, document.hasFocus()])`
	for want, l := range map[string]look{
		`[1280,900,"en",false,false,false,true]`: {},
		`[320,568,"ar",true,true,true,true]`:     {width: 320, height: 568, language: "ar", dark: true, touch: true, still: true},
		`[360,500,"ar",true,false,false,true]`:   {width: 360, height: 500, language: "ar", dark: true},
	} {
		p := open(t, address, l)
		is(p, seen, want, l.String())
		is(p, `String(localStorage.getItem("visited"))`, "null", "what a new page finds of another page")
		p.run(`localStorage.setItem("visited", "yes")`)
		p.screenshot(l.String())
	}
	file := assert.Must(os.Open(filepath.Join(folder, t.Name(), "360-ar-dark.png")))(t)
	defer file.Close()
	shown, err := png.DecodeConfig(file)
	assert.That(t, err == nil && shown.Width == 360 && shown.Height == 500, "the screenshot is %+v (%v)", shown, err)
}

func TestPage_FindsErrorsAndFailedRequests(t *testing.T) {
	slow(t)
	p := open(t, servePage(t, `<main>Nothing</main>`), look{})
	p.expect("409 /409/expected", "0 /cut/exp*")
	evaluate[any](p, `(async () => {
		for (const path of ["/409/expected", "/409/planted", "/500/expected", "/cut/expected", "/cut/planted"]) await fetch(path).catch(() => {});
		const abort = new AbortController();
		setTimeout(() => abort.abort(), 10);
		await fetch("/never", { signal: abort.signal }).catch(() => {});
		console.error("planted", 1);
		console.info("allowed");
		setTimeout(() => { throw new Error("planted exception"); });
		await new Promise((resolve) => setTimeout(resolve, 100));
		return null;
	})()`)
	want := []string{
		"request: 409 /409/planted", "request: 500 /500/expected", "request: 0 /cut/planted",
		`console: "planted" 1`, "exception: Error: planted exception",
	}
	got := p.faults.end()
	p.faults.found = nil
	assert.That(t, slices.EqualFunc(got, want, strings.HasPrefix), "found:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
}

func TestPage_FindsPlantedFaultsOfItsContent(t *testing.T) {
	slow(t)
	const scrolls = `<div style="overflow-x: auto"><p style="inline-size: 500px">In a container</p></div>`
	for body, want := range map[string]struct {
		violations []string // nil: the case is not about them
		sideways   int
	}{
		scrolls: {nil, 0},
		scrolls + `<p id="wide" style="inline-size: 500px">Wide</p>`:                                    {nil, 2}, // and the document
		`<p style="position: relative; inset-inline-start: -20px">Cut</p>`:                              {nil, 1},
		`<p dir="rtl" style="position: absolute; inset-inline-start: 0; inline-size: 330px">A word</p>`: {nil, 1},
		`<main><h1>Faults</h1><img src="data:,"><button></button><p style="color: #aaa; background: #fff">Gray on white</p></main><p>Outside</p>`: {
			[]string{"button-name", "color-contrast", "image-alt", "region"}, 0,
		},
	} {
		p := open(t, servePage(t, body), look{width: 320, touch: true})
		got := p.sideways()
		assert.That(t, len(got) == want.sideways, "%s: found %d faults, want %d:\n%s", body, len(got), want.sideways, strings.Join(got, "\n"))
		var violated []string
		for _, v := range p.violations() {
			violated = append(violated, v.ID)
		}
		slices.Sort(violated)
		assert.That(t, want.violations == nil || slices.Equal(violated, want.violations), "%s: violations %q, want %q", body, violated, want.violations)
	}
}

// servePage serves a page with this body at the URL that it returns. Its other paths answer
// with the status that they begin with; /cut ends the connection, and /never waits.
func servePage(t *testing.T, body string) string {
	t.Helper()
	return serveGateway(t, func(w http.ResponseWriter, r *http.Request) {
		switch first, _, _ := strings.Cut(r.URL.Path[1:], "/"); first {
		case "":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><link rel="icon" href="data:,"><title>Page</title>`+body)
		case "cut":
			panic(http.ErrAbortHandler)
		case "never":
			<-r.Context().Done()
		default:
			status := assert.Must(strconv.Atoi(first))(t)
			w.WriteHeader(status)
		}
	}) + "/"
}
