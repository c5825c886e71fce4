package server_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	pagetools "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"commerce/deploy/ephemeral"
)

// The README's pictures show the playground after the first scenario, and their alternative
// text quotes a sentence of it. -update takes them anew.
func TestReadme_ShowsThePlayground(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	readme := must(os.ReadFile(filepath.Join(repository, "README.md")))(t)
	quoted := regexp.MustCompile(`<img src="docs/screenshot-light.webp" [^>]*alt="[^"]*“([^”]+)”`).FindSubmatch(readme)
	require(t, quoted != nil, "the README's picture quotes nothing")
	for color, l := range map[string]look{"light": {height: 820}, "dark": {height: 820, dark: true}} {
		t.Run(color, func(t *testing.T) {
			t.Parallel()
			p, _ := openScenarios(t, l)
			p.do(chromedp.EmulateViewport(1280, l.height, chromedp.EmulateScale(2)))
			p.tap(`[data-scenario="lostAnswer"]`)
			p.hurry()
			p.until(`document.querySelector("#story [data-part='done']")`)
			story := evaluate[string](p, `document.querySelector("#story").textContent`)
			assert(t, strings.Contains(story, string(quoted[1])), "the scenario does not say %q: %s", quoted[1], story)
			file := filepath.Join(repository, "docs", "screenshot-"+color+".webp")
			if *update {
				noError(t, os.WriteFile(file, p.webp(), 0o666))
			} else if picture, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(picture[8:]), "WEBP") {
				t.Errorf("%s is no picture (%v)", file, err)
			}
		})
	}
}

// webp returns a picture of what the window shows.
func (p page) webp() []byte {
	p.t.Helper()
	p.settle()
	quality := int64(90) // percent
	picture := must(chromedp.Run(p.ctx, chromedp.Action[[]byte](func(ctx context.Context, tab *chromedp.Target) ([]byte, error) {
		taken, err := cdp.Call(ctx, tab, pagetools.CaptureScreenshot, pagetools.CaptureScreenshotParams{
			Format: pagetools.CaptureScreenshotFormatWebp, Quality: &quality,
		})
		if err != nil {
			return nil, err
		}
		return taken.Data, nil
	})))(p.t)
	return picture
}
