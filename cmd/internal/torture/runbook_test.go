package torture

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"commerce/deploy/assert"
)

// runbook returns the shell blocks of a section of docs/runbook.md.
func runbook(t *testing.T, heading string) []string {
	t.Helper()
	return shellBlocks(t, "docs/runbook.md", heading)
}

// shellBlocks returns the shell blocks of a section of a page, at least one.
func shellBlocks(t *testing.T, page, heading string) []string {
	t.Helper()
	_, section, found := strings.Cut(readFile(t, "../../../"+page), "\n"+heading+"\n")
	assert.Require(t, found, "%s has no section %q", page, heading)
	section, _, _ = strings.Cut(section, "\n#")
	var blocks []string
	for _, block := range regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$").FindAllStringSubmatch(section, -1) {
		blocks = append(blocks, block[1])
	}
	assert.Require(t, len(blocks) != 0, "%s, %s: no shell block", page, heading)
	return blocks
}

// follow runs a shell block of the runbook in a folder that has the repository's deploy and the
// program commerce.
func follow(t *testing.T, dir, block string, settings ...string) {
	t.Helper()
	bin := filepath.Dir(commerce.compiled(t))
	ctx, cancel := context.WithTimeout(t.Context(), 6*startLimit)
	defer cancel()
	shell := exec.CommandContext(ctx, "sh", "-eux", "-c", block)
	shell.Dir = dir
	shell.Env = append([]string{"PATH=" + bin + ":" + os.Getenv("PATH")}, settings...)
	said, err := shell.CombinedOutput()
	assert.Require(t, err == nil, "%v:\n%s", err, said)
}
