package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"commerce/deploy/ephemeral"
)

// The page of docs/storefront.md shows in a browser what the guide says. It comes from another
// origin than the service, as a storefront does.
func TestStorefrontGuide_WorksInABrowser(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	shop := saveGuidePage(t, startDemo(t).url)
	p := openPage(t, shop.address)
	p.expect("404 /favicon.ico", "422 /cart/add")
	for i, line := range shop.shows {
		if i > 0 {
			p.press("button")
		}
		p.untilStatus(line)
	}
}

// Two tabs that start without a cart token share one cart, and show each other's changes.
func TestStorefrontGuide_KeepsOneCartInTwoTabs(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	shop := saveGuidePage(t, startDemo(t).url)
	first := openPage(t, shop.address)
	second := first.anotherTab(shop.address)
	tabs := []page{first, second}
	for i, line := range shop.shows[:3] {
		if i > 0 {
			tabs[i-1].press("button")
		}
		for _, tab := range tabs {
			tab.expect("404 /favicon.ico")
			tab.untilStatus(line)
		}
	}
}

// One click adds one, also if the service adds it and its response is lost, or replaced by
// a gateway's page.
func TestStorefrontGuide_AddsOnce(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	for name, spoil := range map[string]http.HandlerFunc{
		"lost":     func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"replaced": gatewayPage(http.StatusBadGateway),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := proxyTo(t, startDemo(t).url)
			var adds atomic.Int64
			gateway := serveGateway(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && adds.Add(1) == 1 {
					service.ServeHTTP(httptest.NewRecorder(), r)
					spoil(w, r)
				} else {
					service.ServeHTTP(w, r)
				}
			})
			shop := saveGuidePage(t, gateway)
			p := openPage(t, shop.address)
			p.expect("404 /favicon.ico", "502 /cart/add", "0 /cart/add")
			p.untilStatus(shop.shows[0])
			p.press("button")
			p.untilStatus(shop.shows[1])
			assert(t, adds.Load() == 2, "the browser sent the add %d times, want 2", adds.Load())
		})
	}
}

// The shopper does not see what a gateway says.
func TestStorefrontGuide_HidesAGatewaysPage(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	shop := saveGuidePage(t, serveGateway(t, gatewayPage(http.StatusForbidden)))
	p := openPage(t, shop.address)
	p.expect("404 /favicon.ico", "403 /cart")
	p.untilStatus("The shop cannot be reached. Please try again.")
}

// guidePage is the page of the guide, saved by a reader.
type guidePage struct {
	address string
	shows   []string // its lines, one after the other
}

// saveGuidePage saves the guide's files and serves them. The page calls the service at a URL.
func saveGuidePage(t *testing.T, service string) guidePage {
	t.Helper()
	reader := terminal{dir: installPackages(t, "npmtrip"), url: service}
	saved := guidePage{address: serveFolder(t, reader.dir) + "/shop.html"}
	examples := examplesOf(t, "docs/storefront.md")
	for i, e := range examples {
		if strings.HasPrefix(e.script, "cat >") {
			reader.run(t, e.script)
		}
		if strings.HasPrefix(e.script, "cat >shop.html ") {
			saved.shows = strings.Split(strings.TrimSpace(examples[i+1].prints), "\n")
		}
	}
	require(t, len(saved.shows) >= 3, "the guide's page shows only %q", saved.shows)
	return saved
}

// serveFolder serves a folder with the guide's command, on another port, until the test ends. It
// returns the URL.
func serveFolder(t *testing.T, dir string) string {
	t.Helper()
	examples := examplesOf(t, "docs/storefront.md")
	i := slices.IndexFunc(examples, func(e example) bool { return e.runBy == "TestStorefrontGuide_WorksInABrowser" })
	port := fmt.Sprint(ephemeral.FreePorts(t, 1)[0])
	files := exec.Command("sh", "-euc", "exec "+strings.ReplaceAll(examples[i].script, "3000", port))
	files.Dir = dir
	noError(t, files.Start())
	t.Cleanup(func() {
		_ = files.Process.Kill()
		_ = files.Wait()
	})
	address := "http://localhost:" + port
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		response, err := http.Get(address)
		if err == nil {
			response.Body.Close()
			return address
		}
		require(t, time.Since(began) <= time.Minute, "%s (sh deploy/ephemeral/install.sh): %v", examples[i].script, err)
	}
}

// untilStatus waits for the guide's page to show a line.
func (p page) untilStatus(line string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.querySelector("[role=status]").textContent === %q`, line))
}

// gatewayPage responds with HTML, which pages of any origin may read.
func gatewayPage(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Access-Control-Allow-Headers", "*")
		w.Header().Set("Content-Type", "text/html")
		if r.Method == http.MethodOptions {
			return
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, "<h1>%s</h1>", http.StatusText(status))
	}
}

func serveGateway(t *testing.T, gateway http.HandlerFunc) (address string) {
	t.Helper()
	s := httptest.NewServer(gateway)
	t.Cleanup(s.Close)
	return s.URL
}

func proxyTo(t *testing.T, service string) http.Handler {
	t.Helper()
	target := must(url.Parse(service))(t)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
}
