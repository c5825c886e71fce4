package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

type page struct {
	t   *testing.T
	ctx context.Context
	look
	faults *pageFaults
}

// look is how a page is shown: zero is a wide window with a mouse, in light colors and English.
type look struct {
	width, height int64  // of the window's content, in CSS pixels; 0 for 1280 and 900
	language      string // of the browser; "" for "en"
	dark          bool
	touch         bool // a phone's touch screen
	still         bool // the user prefers reduced motion
	keyboard      bool // the user has no mouse
}

// String is a name for a subtest or a screenshot, such as "320-ar-dark".
func (l look) String() string {
	name := fmt.Sprintf("%d-%s", cmp.Or(l.width, 1280), cmp.Or(l.language, "en"))
	if l.dark {
		name += "-dark"
	}
	if l.keyboard {
		name += "-keyboard"
	}
	return name
}

// inEachLook runs a test at the same time in each look.
func inEachLook(t *testing.T, looks []look, test func(*testing.T, look)) {
	for _, l := range looks {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			test(t, l)
		})
	}
}

var patience = ephemeral.Patience(20 * time.Second)

// open opens a URL in a tab with its own storage. pageFaults has what fails the test.
func open(t *testing.T, address string, l look) page {
	t.Helper()
	ctx, _ := chromedp.NewContext(openBrowser(t), chromedp.WithNewBrowserContext())
	return openTab(t, ctx, address, l)
}

func (p page) anotherTab(address string) page {
	p.t.Helper()
	ctx, _ := chromedp.NewContext(p.ctx)
	return openTab(p.t, ctx, address, look{})
}

func openTab(t *testing.T, ctx context.Context, address string, l look) page {
	t.Helper()
	p := page{t, ctx, l, &pageFaults{sent: map[network.RequestID]string{}}}
	p.width = cmp.Or(l.width, 1280)
	t.Cleanup(func() {
		faults := p.faults.end()
		_ = chromedp.Cancel(ctx) // waits until the tab is closed
		for _, fault := range faults {
			t.Error(fault)
		}
	})
	assert.NoError(t, chromedp.Listen(ctx, p.faults.see))
	p.do(
		send(log.Enable, chromedp.Void{}),
		send(network.Enable, network.EnableParams{}),
		// Tabs of other tests are open at the same time, and each must have the focus.
		send(emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}),
		l.emulate(),
		chromedp.Navigate(address),
	)
	return p
}

func (l look) emulate() chromedp.Action[chromedp.Void] {
	var device []chromedp.EmulateViewportOption
	if l.touch {
		device = append(device, chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	either := func(on bool, yes, no string) string {
		if on {
			return yes
		}
		return no
	}
	return chromedp.Steps(
		chromedp.EmulateViewport(cmp.Or(l.width, 1280), cmp.Or(l.height, 900), device...),
		send(emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{AcceptLanguage: cmp.Or(l.language, "en")}),
		send(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: either(l.dark, "dark", "light")},
			{Name: "prefers-reduced-motion", Value: either(l.still, "reduce", "no-preference")},
		}}),
	)
}

// send is a command of the DevTools protocol whose result is of no interest.
func send[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, command, params)
		return err
	})
}

// expect allows responses that otherwise fail the test: a status and a path, such as
// "409 /cart/add", or a pattern for path.Match. Without a response, the status is 0.
func (p page) expect(responses ...string) { p.faults.expect(responses) }

func (p page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	assert.NoError(p.t, chromedp.Do(ctx, steps...))
}

// evaluate returns the value of a JavaScript expression, or of the promise it returns.
func evaluate[T any](p page, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	assert.Require(p.t, err == nil, "%v in %.200s", err, expression)
	return value
}

func (p page) run(statements string) { p.t.Helper(); evaluate[any](p, `{ `+statements+`; null }`) }

// is checks the value of a JavaScript expression as it is now.
func is[T any](p page, expression string, want T, what string) {
	p.t.Helper()
	assert.Equal(p.t, evaluate[T](p, expression), want, "%s", what)
}

// until waits for a JavaScript expression to become true. It is not true while it fails, for
// example because an element does not exist yet.
func (p page) until(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](`(() => { try { return Boolean(`+expression+`) } catch { return false } })()`)); err != nil {
		shown, _ := chromedp.Run(p.ctx, chromedp.Text("main"))
		p.t.Fatalf("%v while waiting for %s; the page shows:\n%s", err, expression, shown)
	}
}

// sees waits for an element, with a text in it.
func (p page) sees(selector string, texts ...string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`%q.split("\0").every((text) => document.querySelector(%q).textContent.includes(text))`, strings.Join(texts, "\x00"), selector))
}

func (p page) seesNo(selector string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`!document.querySelector(%q)`, selector))
}

func (p page) reads(selector, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.querySelector(%q).textContent === %q`, selector, text))
}

// hasFocus waits until an element that matches the selector has the focus.
func (p page) hasFocus(selector string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.activeElement.matches(%q)`, selector))
}

// tap clicks an element as a user does: where it is, after scrolling it away from what covers
// the edges of the window. Nothing may cover it in the middle and at the top. Without a mouse, it uses the
// keys that a button has.
func (p page) tap(selector string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.querySelector(%q)?.checkVisibility()`, selector))
	if p.keyboard {
		p.moveTo(selector)
		p.key(evaluate[string](p, `document.activeElement.matches("input, [aria-pressed]") ? "Space" : "Enter"`))
		return
	}
	at := evaluate[struct {
		X, Y    float64
		Covered string // by what
	}](p, fmt.Sprintf(`(() => {
		const element = document.querySelector(%q);
		const at = (block) => {
			element.scrollIntoView({ block, inline: "center", behavior: "instant" });
			const { left, top, width, height } = element.getBoundingClientRect();
			const [X, Y] = [left + width / 2, top + height / 2];
			const hit = document.elementFromPoint(X, Y);
			return { X, Y, Covered: element.contains(hit) ? "" : hit?.outerHTML.slice(0, 200) ?? "outside of the window" };
		};
		const middle = at("center");
		return middle.Covered ? at("start") : middle;
	})()`, selector))
	if at.Covered != "" {
		p.screenshot("covered")
		p.t.Fatalf("%s is covered at %.0f, %.0f: %s", selector, at.X, at.Y, at.Covered)
	}
	if p.touch {
		p.do(chromedp.TapXY(at.X, at.Y))
	} else {
		p.do(chromedp.MouseClickXY(at.X, at.Y))
	}
}

// press uses the keyboard: chromedp's own actions fail if the cart redraws its lines.
func (p page) press(selectors ...string) {
	p.t.Helper()
	for _, selector := range selectors {
		p.with(selector, `control.focus(); control.click()`)
	}
}

func (p page) fill(selector, value string) {
	p.t.Helper()
	p.with(selector, fmt.Sprintf(`control.value = %q`, value))
}

// with waits for a control and runs a statement on it.
func (p page) with(selector, statement string) {
	p.t.Helper()
	p.sees(selector)
	p.run(fmt.Sprintf(`const control = document.querySelector(%q); %s`, selector, statement))
}

// resize shows the page in a window of another size.
func (p page) resize(width, height int64) {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(width, height))
}

// offline takes the network from the page, or gives it back.
func (p page) offline(off bool) {
	p.t.Helper()
	var blocked network.SetBlockedURLsParams
	if off {
		blocked.URLPatterns = []*network.BlockPattern{{URLPattern: "*://*:*/*", Block: true}}
	}
	p.do(send(network.SetBlockedURLs, blocked))
}

func (p page) sleep(d time.Duration) {
	p.t.Helper()
	evaluate[any](p, fmt.Sprintf(`new Promise((done) => setTimeout(done, %d))`, d.Milliseconds()))
}

// holdAnswers keeps the page's answers of paths that begin so back until deliver is called in the page.
func (p page) holdAnswers(path string) {
	p.t.Helper()
	p.run(fmt.Sprintf(`const { text } = Response.prototype; const delivered = new Promise((done) => { window.deliver = done; });
		Response.prototype.text = async function () { if (this.url.includes(%q)) { window.kept = true; await delivered; } return text.call(this); }`, path))
}

var namedKeys = map[string]string{
	"Tab": kb.Tab, "Enter": kb.Enter, "Escape": kb.Escape, "Space": " ", "ArrowDown": kb.ArrowDown, "ArrowRight": kb.ArrowRight,
}

// key presses keys one after the other: names, such as "Tab" and "Shift+Tab", or text.
func (p page) key(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		var held []chromedp.KeyOption
		if rest, shift := strings.CutPrefix(key, "Shift+"); shift {
			key, held = rest, append(held, chromedp.KeyModifiers(chromedp.ModifierShift))
		}
		p.do(chromedp.KeyEvent(cmp.Or(namedKeys[key], key), held...))
	}
}

// enters writes a text as a user does.
func (p page) enters(selector, text string) {
	p.t.Helper()
	if !p.keyboard {
		p.fill(selector, text)
		return
	}
	p.moveTo(selector)
	p.key(text)
}

// moveTo presses Tab, or Shift+Tab if the element comes before, until it has the focus. The focus must
// get there before it has been everywhere.
func (p page) moveTo(selector string) {
	p.t.Helper()
	key := evaluate[string](p, fmt.Sprintf(`document.activeElement.compareDocumentPosition(document.querySelector(%q)) & Node.DOCUMENT_POSITION_PRECEDING ? "Shift+Tab" : "Tab"`, selector))
	var stops []string
	for range 300 {
		stop := evaluate[string](p, fmt.Sprintf(`document.activeElement.matches(%q) ? "" : document.activeElement.cloneNode().outerHTML`, selector))
		if stop == "" {
			return
		}
		stops = append(stops, stop)
		p.key(key)
	}
	p.t.Fatalf("%s does not reach %s, but:\n%s", key, selector, strings.Join(stops, "\n"))
}

// browser is the one that all tests share. It starts for the first page, and closeBrowser
// ends it. Each page has its own storage and cookies.
var browser struct {
	start sync.Once
	ctx   context.Context
	err   error
}

// openBrowser returns the browser's context, which is the parent of each page's.
func openBrowser(t *testing.T) context.Context {
	t.Helper()
	browser.start.Do(func() {
		var program string
		for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
			if program, browser.err = exec.LookPath(name); browser.err == nil {
				break
			}
		}
		if browser.err != nil {
			return // sh deploy/ephemeral/install.sh
		}
		ctx, _ := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("lang", "en"),
			chromedp.Flag("blink-settings", "availableHoverTypes=2,primaryHoverType=2,availablePointerTypes=4,primaryPointerType=4"), // a mouse
		)...)
		browser.ctx, _ = chromedp.NewContext(ctx)
		browser.err = chromedp.Do(browser.ctx)
	})
	assert.Require(t, browser.err == nil, "%v", browser.err)
	return browser.ctx
}

func closeBrowser() {
	if browser.ctx != nil {
		_ = chromedp.Cancel(browser.ctx)
	}
}
