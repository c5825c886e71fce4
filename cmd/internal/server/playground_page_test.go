package server_test

import (
	"cmp"
	"context"
	"errors"
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
	t      *testing.T
	ctx    context.Context
	width  int64
	touch  bool
	faults *pageFaults
}

// look is how a page is shown: zero is a wide window with a mouse, in light colors and English.
type look struct {
	width, height int64  // of the window's content, in CSS pixels; 0 for 1280 and 900
	language      string // of the browser; "" for "en"
	dark          bool
	touch         bool // a phone's touch screen
	still         bool // the user prefers reduced motion
}

// String is a name for a subtest or a screenshot, such as "320-ar-dark".
func (l look) String() string {
	name := fmt.Sprintf("%d-%s", cmp.Or(l.width, 1280), cmp.Or(l.language, "en"))
	if l.dark {
		name += "-dark"
	}
	return name
}

var patience = ephemeral.Patience(20 * time.Second)

// openPage opens a URL in a tab with its own storage. pageFaults has what fails the test.
func openPage(t *testing.T, address string) page { t.Helper(); return openPageAs(t, address, look{}) }

func openPageAs(t *testing.T, address string, l look) page {
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
	p := page{t, ctx, cmp.Or(l.width, 1280), l.touch, &pageFaults{}}
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
	colors, motion := "light", "no-preference"
	if l.dark {
		colors = "dark"
	}
	if l.still {
		motion = "reduce"
	}
	return chromedp.Steps(
		chromedp.EmulateViewport(cmp.Or(l.width, 1280), cmp.Or(l.height, 900), device...),
		send(emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{AcceptLanguage: cmp.Or(l.language, "en")}),
		send(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: colors}, {Name: "prefers-reduced-motion", Value: motion},
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

func (p page) click(selector string) { p.t.Helper(); p.do(chromedp.Click(selector)) }

// tap clicks an element as a user does: where it is, after scrolling it away from what covers
// the edges of the window. Nothing may cover it in the middle and at the top.
func (p page) tap(selector string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.querySelector(%q)?.checkVisibility()`, selector))
	at := evaluate[tapPoint](p, fmt.Sprintf(`(() => {
		const element = document.querySelector(%q);
		const at = (block) => {
			element.scrollIntoView({ block, inline: "center", behavior: "instant" });
			const { left, top, width, height } = element.getBoundingClientRect();
			const [x, y] = [left + width / 2, top + height / 2];
			const hit = document.elementFromPoint(x, y);
			return { x, y, covered: element.contains(hit) ? "" : hit?.outerHTML.slice(0, 200) ?? "outside of the window" };
		};
		const middle = at("center");
		return middle.covered ? at("start") : middle;
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

// tapPoint is where to tap, and what covers the element there.
type tapPoint struct {
	X       float64 `json:"x"`
	Y       float64 `json:"y"`
	Covered string  `json:"covered"`
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

// press uses the keyboard: chromedp's own actions fail if the cart redraws its lines.
func (p page) press(selector string) {
	p.t.Helper()
	p.with(selector, `control.focus(); control.click()`)
}

func (p page) fill(selector, value string) {
	p.t.Helper()
	p.with(selector, fmt.Sprintf(`control.value = %q`, value))
}

func (p page) selects(selector, value string) {
	p.t.Helper()
	p.with(selector, fmt.Sprintf(`control.value = %q; control.dispatchEvent(new Event("change"))`, value))
}

// with waits for a control and runs a statement on it.
func (p page) with(selector, statement string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.querySelector(%q)`, selector))
	evaluate[any](p, fmt.Sprintf(`{ const control = document.querySelector(%q); %s; null }`, selector, statement))
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

// tabTo presses Tab until an element that matches the selector has the focus. The focus must
// get there before it has been everywhere.
func (p page) tabTo(selector string) { p.t.Helper(); p.moveTo("Tab", selector) }

func (p page) tabBackTo(selector string) { p.t.Helper(); p.moveTo("Shift+Tab", selector) }

func (p page) moveTo(key, selector string) {
	p.t.Helper()
	var stops []string
	for range 300 {
		p.key(key)
		stop := evaluate[focusStop](p, fmt.Sprintf(`(() => {
			const focused = document.activeElement;
			return { reached: focused.matches(%q), element: focused.cloneNode().outerHTML };
		})()`, selector))
		if stop.Reached {
			return
		}
		stops = append(stops, stop.Element)
	}
	p.t.Fatalf("%s does not reach %s, but:\n%s", key, selector, strings.Join(stops, "\n"))
}

type focusStop struct {
	Reached bool   `json:"reached"`
	Element string `json:"element"` // its tag with attributes
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
	browser.start.Do(func() { browser.ctx, browser.err = startBrowser() })
	assert.Require(t, browser.err == nil, "%v", browser.err)
	return browser.ctx
}

func startBrowser() (context.Context, error) {
	program, err := findBrowser()
	if err != nil {
		return nil, err
	}
	ctx, _ := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("lang", "en"),
		chromedp.Flag("blink-settings", "availableHoverTypes=2,primaryHoverType=2,availablePointerTypes=4,primaryPointerType=4"), // a mouse
	)...)
	ctx, _ = chromedp.NewContext(ctx)
	return ctx, chromedp.Do(ctx)
}

func findBrowser() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			return found, nil
		}
	}
	return "", errors.New("chromium is not installed (sh deploy/ephemeral/install.sh)")
}

func closeBrowser() {
	if browser.ctx != nil {
		_ = chromedp.Cancel(browser.ctx)
	}
}

// browserUsers runs the tests, and ends their browser before TestMain looks for leaks.
type browserUsers struct{ *testing.M }

func (u browserUsers) Run() int {
	defer removeProgram()
	defer closeBrowser()
	return u.M.Run()
}
