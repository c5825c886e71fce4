package server_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	pagetools "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"commerce/deploy/assert"
)

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
			p := openPageAs(t, startDemo(t).url+"/", look{width: filmWidth, height: filmHeight, dark: dark})
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

// frame is a part of a window that replaces what earlier frames show there.
type frame struct {
	image.Rectangle // in pixels
	ms              int
	picture         []byte // WebP
}

// film returns the opening as an animated WebP.
func (p page) film(length int) []byte {
	p.t.Helper()
	window := image.Rect(0, 0, filmWidth*filmScale, filmHeight*filmScale)
	var before *image.RGBA
	var frames []frame
	for at := 0; at <= length; at += frameTime {
		p.seek(at)
		now := image.NewRGBA(window)
		draw.Draw(now, window, assert.Must(png.Decode(bytes.NewReader(p.capture(pagetools.CaptureScreenshotFormatPng, window))))(p.t), image.Point{}, draw.Src)
		part := window
		if before != nil {
			part = difference(before, now)
		}
		before = now
		if part.Empty() {
			frames[len(frames)-1].ms += frameTime
			continue
		}
		frames = append(frames, frame{part, frameTime, p.capture(pagetools.CaptureScreenshotFormatWebp, part)})
	}
	frames[len(frames)-1].ms += endTime - frameTime
	return animate(window.Size(), frames)
}

// difference returns where two pictures differ. Its corners are whole CSS pixels, and even pixels, as in WebP.
func difference(a, b *image.RGBA) (part image.Rectangle) {
	const grid = 12
	for y := 0; y < a.Rect.Dy(); y += grid {
		for x := 0; x < a.Rect.Dx(); x += grid {
			for row := y; row < min(y+grid, a.Rect.Dy()); row++ {
				from, to := a.PixOffset(x, row), a.PixOffset(min(x+grid, a.Rect.Dx()), row)
				if !bytes.Equal(a.Pix[from:to], b.Pix[from:to]) {
					part = part.Union(image.Rect(x, y, x+grid, y+grid))
					break
				}
			}
		}
	}
	return part.Intersect(a.Rect)
}

func (p page) capture(format pagetools.CaptureScreenshotFormat, part image.Rectangle) []byte {
	p.t.Helper()
	quality := int64(90) // percent
	clip := &pagetools.Viewport{
		X: float64(part.Min.X) / filmScale, Y: float64(part.Min.Y) / filmScale,
		Width: float64(part.Dx()) / filmScale, Height: float64(part.Dy()) / filmScale, Scale: 1,
	}
	return assert.Must(chromedp.Run(p.ctx, chromedp.Action[[]byte](func(ctx context.Context, tab *chromedp.Target) ([]byte, error) {
		taken, err := cdp.Call(ctx, tab, pagetools.CaptureScreenshot, pagetools.CaptureScreenshotParams{Format: format, Quality: &quality, Clip: clip})
		if err != nil {
			return nil, err
		}
		return taken.Data, nil
	})))(p.t)
}

// animate makes an animated WebP of frames, the first of which is the whole picture. See
// https://developers.google.com/speed/webp/docs/riff_container.
func animate(size image.Point, frames []frame) []byte {
	const isAnimation, doNotBlend = 0x02, 0x02
	body := chunk("VP8X", []byte{isAnimation, 0, 0, 0}, uint24(size.X-1), uint24(size.Y-1))
	body = append(body, chunk("ANIM", make([]byte, 4), []byte{filmPlays, 0})...) // after a background color
	for _, f := range frames {
		body = append(body, chunk("ANMF", uint24(f.Min.X/2), uint24(f.Min.Y/2), uint24(f.Dx()-1), uint24(f.Dy()-1), uint24(f.ms),
			[]byte{doNotBlend}, pixels(f.picture))...)
	}
	return chunk("RIFF", []byte("WEBP"), body)
}

// pixels returns the chunks of a still WebP that a frame has too: ALPH, and VP8 or VP8L.
func pixels(still []byte) (found []byte) {
	const header = 8 // of a chunk: its name and size
	for rest := still[header+len("WEBP"):]; len(rest) > header; {
		size := int(binary.LittleEndian.Uint32(rest[4:]))
		whole := header + size + size%2
		if name := string(rest[:4]); name == "ALPH" || name == "VP8 " || name == "VP8L" {
			found = append(found, rest[:whole]...)
		}
		rest = rest[whole:]
	}
	return found
}

func chunk(name string, parts ...[]byte) []byte {
	data := bytes.Join(parts, nil)
	whole := append(binary.LittleEndian.AppendUint32([]byte(name), uint32(len(data))), data...)
	return append(whole, make([]byte, len(data)%2)...)
}

func uint24(n int) []byte { return []byte{byte(n), byte(n >> 8), byte(n >> 16)} }
