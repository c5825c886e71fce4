package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The page of docs/storefront.md shows in a browser what the guide says. It comes from another
// origin than the service, as a storefront does.
func TestStorefrontGuide_WorksInABrowser(t *testing.T) {
	t.Parallel()
	demo := startDemo(t)
	dir := installPackages(t, "npmtrip")
	want := savePage(t, terminal{dir: dir, url: demo.url})
	files := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(files.Close)

	p := openPage(t, files.URL+"/shop.html")
	p.expect("404 /favicon.ico", "422 /cart/add")
	for i, line := range want {
		if i > 0 {
			p.press("button")
		}
		p.until(fmt.Sprintf(`document.querySelector("[role=status]").textContent === %q`, line))
	}
}

// savePage saves the guide's page. It returns the lines that the page shows, one after the
// other.
func savePage(t *testing.T, term terminal) []string {
	t.Helper()
	examples := examplesOf(t, "docs/storefront.md")
	for i, e := range examples {
		if strings.HasPrefix(e.script, "cat >shop.html ") {
			term.run(t, e.script)
			return strings.Split(strings.TrimSpace(examples[i+1].prints), "\n")
		}
	}
	t.Fatal("the guide has no page")
	return nil
}
