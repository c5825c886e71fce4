package server_test

import (
	"bytes"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// The tests here are of what the playground's other tests look with.

func TestPage_LooksAsTheTestAsksFor(t *testing.T) {
	slow(t)
	address := servePage(t, `<main>Nothing</main>`)
	const seen = `JSON.stringify([innerWidth, innerHeight, navigator.language, matchMedia("(prefers-color-scheme: dark)").matches,
		matchMedia("(pointer: coarse)").matches, matchMedia("(prefers-reduced-motion: reduce)").matches, document.hasFocus()])`
	for want, l := range map[string]look{
		`[1280,900,"en",false,false,false,true]`: {},
		`[320,568,"ar",true,true,true,true]`:     {width: 320, height: 568, language: "ar", dark: true, touch: true, still: true},
	} {
		assert.Equal(t, evaluate[string](openPageAs(t, address, l), seen), want, "%v", l)
	}
}

func TestPage_HasStorageOfItsOwn(t *testing.T) {
	slow(t)
	address := servePage(t, `<main>Nothing</main>`)
	evaluate[any](openPage(t, address), `localStorage.setItem("visited", "yes")`)
	assert.Equal(t, evaluate[string](openPage(t, address), `String(localStorage.getItem("visited"))`), "null", "what a new page finds of another page")
}

func TestPage_FindsErrorsAndFailedRequests(t *testing.T) {
	slow(t)
	p := openPage(t, servePage(t, `<main>Nothing</main>`))
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
	begins := func(fault, start string) bool { return strings.HasPrefix(fault, start) }
	got := p.faults.end()
	p.faults.found = nil
	assert.That(t, slices.EqualFunc(got, want, begins), "found:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
}

func TestAxe_FindsPlantedFaults(t *testing.T) {
	slow(t)
	p := openPage(t, servePage(t, `<main><h1>Faults</h1><img src="data:,"><button></button>
		<p style="color: #aaa; background: #fff">Gray on white</p></main><p>Outside of any landmark</p>`))
	var got []string
	for _, v := range p.violations() {
		got = append(got, v.ID)
	}
	slices.Sort(got)
	assert.Equal(t, got, []string{"button-name", "color-contrast", "image-alt", "region"}, "violations")
}

func TestSideways_FindsWhatReachesBeyondTheWindow(t *testing.T) {
	slow(t)
	const scrolls = `<div style="overflow-x: auto"><p style="inline-size: 500px">In a container</p></div>`
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"nothing":              {scrolls, 0},
		"an element":           {scrolls + `<p id="wide" style="inline-size: 500px">Wide</p>`, 2}, // and the document
		"beyond the start":     {`<p style="position: relative; inset-inline-start: -20px">Cut</p>`, 1},
		"a word in right-left": {`<p dir="rtl" style="position: absolute; inset-inline-start: 0; inline-size: 330px">Cut</p>`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := openPageAs(t, servePage(t, c.body), look{width: 320, touch: true})
			got := p.sideways()
			assert.That(t, len(got) == c.want, "found %d faults, want %d:\n%s", len(got), c.want, strings.Join(got, "\n"))
		})
	}
}

func TestScreenshot_IsKept(t *testing.T) {
	ephemeral.Slow(t)
	folder := t.TempDir()
	t.Setenv("PLAYGROUND_SCREENSHOTS", folder)
	l := look{width: 360, height: 500, language: "ar", dark: true}
	p := openPageAs(t, servePage(t, `<main>Nothing</main>`), l)
	p.screenshot(l.String())
	file := assert.Must(os.Open(filepath.Join(folder, t.Name(), "360-ar-dark.png")))(t)
	defer file.Close()
	shown, err := png.DecodeConfig(file)
	assert.That(t, err == nil && shown.Width == 360 && shown.Height == 500, "the screenshot is %+v (%v)", shown, err)
}

// servePage serves a page with this body at the URL that it returns. Its other paths answer
// with the status that they begin with; /cut ends the connection, and /never waits.
func servePage(t *testing.T, body string) string {
	t.Helper()
	statuses := map[string]int{"409": http.StatusConflict, "500": http.StatusInternalServerError}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch first, _, _ := strings.Cut(r.URL.Path[1:], "/"); first {
		case "":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.Copy(w, bytes.NewBufferString(`<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><link rel="icon" href="data:,"><title>Page</title>`+body))
		case "cut":
			panic(http.ErrAbortHandler)
		case "never":
			<-r.Context().Done()
		default:
			status, known := statuses[first]
			if !known {
				status = http.StatusNotFound
			}
			w.WriteHeader(status)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL + "/"
}
