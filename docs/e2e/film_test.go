package e2e

import (
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/chromedp/chromedp"

	"commerce/deploy/assert"
)

var update = flag.Bool("update", false, "take the README's moving picture anew")

// How the README's moving picture is made: the window in CSS pixels, and how often it plays.
const (
	filmWidth, filmHeight, filmScale = 1280, 720, 1.5
	frameTime, filmFrames, filmPlays = 3000, 3, 3 // ms
	maxFilm                          = 1_000_000  // bytes
)

// The README's moving picture is the playground's first scenario, one step after the other. Its alternative text quotes what
// the last frame says. -update takes it anew.
func TestReadme_ShowsThePlayground(t *testing.T) {
	slow(t)
	readme := assert.Must(os.ReadFile(filepath.Join(repository, "README.md")))(t)
	quoted := regexp.MustCompile(`<img src="docs/demo-light.webp" [^>]*alt="[^"]*“([^”]+)”`).FindSubmatch(readme)
	assert.Require(t, quoted != nil, "the README's picture quotes nothing")
	for color, dark := range map[string]bool{"light": false, "dark": true} {
		t.Run(color, func(t *testing.T) {
			t.Parallel()
			p := open(t, startDemo(t).url+"/", look{width: filmWidth, height: filmHeight, dark: dark})
			p.do(chromedp.EmulateViewport(filmWidth, filmHeight, chromedp.EmulateScale(filmScale)))
			p.hasCarts()
			frames := [][]byte{p.frame()}
			p.play("lostAnswer")
			p.press(`#story [data-part="pause"]`)
			for i := 1; i < filmFrames; i++ {
				p.until(fmt.Sprintf(`%s === %d || document.querySelector("#story [data-part='next']").click()`, doneSteps, i))
				frames = append(frames, p.frame())
			}
			p.sees(`#story`, string(quoted[1]))
			file := filepath.Join(repository, "docs", "demo-"+color+".webp")
			if *update {
				p.film(file, frames)
			}

			film := assert.Must(os.ReadFile(file))(t)
			assert.That(t, len(film) < maxFilm, "%s has %d bytes", file, len(film))
			shown := evaluate[[]float64](p, fmt.Sprintf(`(async (data) => {
				const decoder = new ImageDecoder({ type: "image/webp", data });
				await Promise.all([decoder.tracks.ready, decoder.completed]);
				const { frameCount, repetitionCount } = decoder.tracks.selectedTrack;
				const { image } = await decoder.decode();
				return [image.codedWidth, image.codedHeight, image.duration / 1000, frameCount, repetitionCount];
			})(Uint8Array.from(atob(%q), (c) => c.charCodeAt(0)))`, base64.StdEncoding.EncodeToString(film)))
			assert.Equal(t, shown, []float64{filmWidth * filmScale, filmHeight * filmScale, frameTime, filmFrames, filmPlays - 1},
				"width, height, ms of a frame, frames and repetitions of %s", file)
		})
	}
}

func (p page) frame() []byte {
	p.t.Helper()
	p.settle()
	return assert.Must(chromedp.Run(p.ctx, chromedp.CaptureScreenshot()))(p.t)
}

// film writes an animated WebP.
func (p page) film(file string, frames [][]byte) {
	p.t.Helper()
	dir := p.t.TempDir()
	args := []string{"-loop", strconv.Itoa(filmPlays), "-lossy", "-q", "90", "-d", strconv.Itoa(frameTime), "-o", file}
	for i, frame := range frames {
		name := filepath.Join(dir, strconv.Itoa(i)+".png")
		assert.NoError(p.t, os.WriteFile(name, frame, 0o600))
		args = append(args, name)
	}
	said, err := command(p.t, "img2webp", args...).CombinedOutput() // of Debian's package webp
	assert.Require(p.t, err == nil, "img2webp: %v\n%s", err, said)
}
