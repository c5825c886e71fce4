package main

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The short commands of docs/performance.md run as the page shows them, but the plots go to another
// directory.
func TestPerformancePage_CommandsRun(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile(root + "/docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	plots := t.TempDir()
	if err := os.CopyFS(plots, os.DirFS(root+"/docs/performance")); err != nil {
		t.Fatal(err)
	}
	marked := regexp.MustCompile("(?ms)^<!-- run-by: "+t.Name()+" -->\n```sh\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	if len(marked) != 2 {
		t.Fatalf("%d blocks, want those of bench and of compare", len(marked))
	}
	for _, block := range marked {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		sh := exec.CommandContext(ctx, "sh", "-euc", strings.ReplaceAll(block[1], "docs/performance", plots))
		sh.Dir = root
		printed, err := sh.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", block[1], err, printed)
		}
		if !regexp.MustCompile("guest, 5 lines|AppendMajor").Match(printed) {
			t.Errorf("%s: no figures:\n%s", block[1], printed)
		}
	}
}
