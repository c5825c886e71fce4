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

// How the README's moving picture is made: the window in CSS pixels, and times in milliseconds.
const (
	filmWidth, filmHeight, filmScale = 900, 600, 2
	frameTime, endTime, filmPlays    = 100, 3000, 3
	maxFilm                          = 1_000_000 // bytes
)

// The README's moving picture is what opens the playground. Its alternative text quotes what the last
// frame says. -update takes it anew.
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
			p.until(stageAnimations + `.some((animation) => animation.currentTime > 0)`)
			length := evaluate[int](p, `Math.max(...`+stageAnimations+`.map((animation) => animation.effect.getComputedTiming().endTime))`)
			file := filepath.Join(repository, "docs", "demo-"+color+".webp")
			var taken []byte
			if *update {
				taken = p.film(length)
			}
			p.seek(length)
			says := evaluate[bool](p, fmt.Sprintf(`[...document.querySelectorAll(".hero *")].some((e) => e.checkVisibility({ opacityProperty: true })
				&& e.textContent.replaceAll(/\s+/g, " ").trim() === %q)`, quoted[1]))
			assert.Require(t, says, "the last frame does not say %q", quoted[1])
			if *update {
				assert.NoError(t, os.WriteFile(file, taken, 0o666))
			}

			film := assert.Must(os.ReadFile(file))(t)
			assert.That(t, len(film) < maxFilm, "%s has %d bytes", file, len(film))
			got := p.playBack(film)
			assert.Equal(t, []int{got.Width, got.Height, got.MS, got.Repetitions},
				[]int{filmWidth * filmScale, filmHeight * filmScale, length + endTime, filmPlays - 1}, "the size, duration and repetitions of %s", file)
			assert.That(t, got.Frames >= 20 && got.Frames <= length/frameTime+1, "%s has %d frames", file, got.Frames)
			assert.That(t, got.Moves, "the first frame of %s is the last one", file)
		})
	}
}

// seek shows the opening at a time.
func (p page) seek(at int) {
	p.t.Helper()
	evaluate[any](p, fmt.Sprintf(`(async () => {
		await document.fonts.ready;
		for (const animation of %s) {
			animation.pause();
			animation.currentTime = %d;
			if (animation.currentTime >= animation.effect.getComputedTiming().endTime) animation.finish();
		}
		for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);
		return null;
	})()`, stageAnimations, at))
}

// playback is what the browser says about a moving picture after it has shown every frame.
type playback struct {
	Width, Height, MS, Repetitions, Frames int
	Moves                                  bool
}

func (p page) playBack(film []byte) playback {
	p.t.Helper()
	return evaluate[playback](p, fmt.Sprintf(`(async (data) => {
		const decoder = new ImageDecoder({ type: "image/webp", data });
		await Promise.all([decoder.tracks.ready, decoder.completed]);
		const { frameCount, repetitionCount } = decoder.tracks.selectedTrack;
		const seen = { Repetitions: repetitionCount, Frames: frameCount, MS: 0 };
		const pixels = [];
		for (let frameIndex = 0; frameIndex < frameCount; frameIndex++) {
			const { image } = await decoder.decode({ frameIndex });
			seen.MS += image.duration / 1000;
			[seen.Width, seen.Height] = [image.codedWidth, image.codedHeight];
			pixels.push(new Uint8Array(image.allocationSize()));
			await image.copyTo(pixels.at(-1));
			image.close();
			if (pixels.length > 2) pixels.splice(1, 1);
		}
		return { ...seen, Moves: pixels[0].some((value, i) => value !== pixels[1][i]) };
	})(Uint8Array.from(atob(%q), (c) => c.charCodeAt(0)))`, base64.StdEncoding.EncodeToString(film)))
}

// film returns the opening as an animated WebP.
func (p page) film(length int) []byte {
	p.t.Helper()
	dir := p.t.TempDir()
	made := []string{"-loop", strconv.Itoa(filmPlays), "-lossy", "-q", "90", "-d", strconv.Itoa(frameTime)}
	for at := 0; at <= length; at += frameTime {
		p.seek(at)
		frame := filepath.Join(dir, strconv.Itoa(at)+".png")
		assert.NoError(p.t, os.WriteFile(frame, assert.Must(chromedp.Run(p.ctx, chromedp.CaptureScreenshot()))(p.t), 0o600))
		if at+frameTime > length {
			made = append(made, "-d", strconv.Itoa(endTime))
		}
		made = append(made, frame)
	}
	film := filepath.Join(dir, "film.webp")
	said, err := command(p.t, "img2webp", append(made, "-o", film)...).CombinedOutput() // of Debian's package webp
	assert.Require(p.t, err == nil, "img2webp: %v\n%s", err, said)
	return assert.Must(os.ReadFile(film))(p.t)
}
