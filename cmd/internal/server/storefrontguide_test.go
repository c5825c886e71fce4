package server_test

import (
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"commerce/deploy/ephemeral"
)

// The page of docs/storefront.md shows in a browser what the guide says. It comes from another
// origin than the service, as a storefront does.
func TestStorefrontGuide_WorksInABrowser(t *testing.T) {
	t.Parallel()
	demo := startDemo(t)
	dir := installPackages(t, "npmtrip")
	want := savePage(t, terminal{dir: dir, url: demo.url})
	p := openPage(t, serveFolder(t, dir)+"/shop.html")
	p.expect("404 /favicon.ico", "422 /cart/add")
	for i, line := range want {
		if i > 0 {
			p.press("button")
		}
		p.until(fmt.Sprintf(`document.querySelector("[role=status]").textContent === %q`, line))
	}
}

// serveFolder serves a folder with the guide's command, on another port, until the test ends. It
// returns the URL.
func serveFolder(t *testing.T, dir string) string {
	t.Helper()
	port := fmt.Sprint(ephemeral.FreePorts(t, 1)[0])
	examples := examplesOf(t, "docs/storefront.md")
	i := slices.IndexFunc(examples, func(e example) bool { return e.runBy == "TestStorefrontGuide_WorksInABrowser" })
	files := exec.Command("sh", "-euc", "exec "+strings.ReplaceAll(examples[i].script, "3000", port))
	files.Dir = dir
	if err := files.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = files.Process.Kill()
		_ = files.Wait()
	})
	url := "http://localhost:" + port
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		response, err := http.Get(url)
		if err == nil {
			response.Body.Close()
			return url
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("%s (sh deploy/ephemeral/install.sh): %v", examples[i].script, err)
		}
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
