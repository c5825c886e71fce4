package server_test

import (
	"os"
	"regexp"
	"testing"

	"commerce/deploy/ephemeral"
)

// guides are the pages whose examples a reader can paste into a terminal, one after the
// other, while the demo runs.
var guides = []string{"README.md", "docs/cart.md", "docs/storefront.md", "docs/mobile.md", "docs/subscriptions.md"}

func TestGuides_PrintWhatTheyShow(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	installed := installPackages(t, "npmtrip")
	for _, page := range guides {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			examples := examplesOf(t, page)
			require(t, len(examples) >= 4, "found only %d examples", len(examples))
			for _, fault := range pasteOnDemo(t, installed, examples) {
				t.Error(fault)
			}
		})
	}
}

// pasteOnDemo pastes the examples while a demo of their own runs, in a folder where npm
// install finds the client. It returns their faults. On a busy machine, the demo may answer
// 503 or 504. Then it begins again.
func pasteOnDemo(t *testing.T, installed string, examples []example) []string {
	t.Helper()
	busy := regexp.MustCompile(`\bstatus=50[34]\b`)
	for tries := 1; ; tries++ {
		dir := t.TempDir()
		noError(t, os.CopyFS(dir, os.DirFS(installed)))
		d := startDemo(t)
		faults := terminal{dir: dir, url: d.url}.paste(t, examples)
		if len(faults) == 0 || tries == 3 || !busy.MatchString(d.log.String()) {
			return faults
		}
	}
}
