package torture

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"commerce/deploy/assert"
)

// Each promise of the page names the command that tests it, here or in simulations, and each test has a promise.
func TestGuaranteesPage_NamesTheCommandForEachTest(t *testing.T) {
	t.Parallel()
	page := assert.Must(os.ReadFile("../../../docs/guarantees.md"))(t)
	var source []byte
	for _, file := range assert.Must(filepath.Glob("*_test.go"))(t) {
		source = append(source, assert.Must(os.ReadFile(file))(t)...)
	}
	commands, simulated := numbersIn(page, "(?m)^`make torture PROMISE=0?(\\d+)`"), numbersIn(page, "(?m)^## (\\d+)\\. .*\n(?:(?:[^#\n].*)?\n)*?`make schedules`$")
	promises, tests := numbersIn(page, `(?m)^## (\d+)\. `), numbersIn(source, `(?m)^func TestPromise0?(\d+)_`)
	shown := slices.Sorted(slices.Values(slices.Concat(commands, simulated)))
	assert.Equal(t, shown, promises, "promises with a command, compared with all")
	assert.Equal(t, tests, commands, "promises with a test here, compared with those whose command runs one")
}

// numbersIn returns the distinct submatches of a pattern, sorted.
func numbersIn(text []byte, pattern string) []string {
	var found []string
	for _, match := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
		found = append(found, string(match[1]))
	}
	slices.Sort(found)
	return slices.Compact(found)
}

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

// follow runs a block of the runbook, with deploy and the program commerce in its folder. It returns what
// the block prints, also the commands.
func follow(t *testing.T, dir, block string, settings ...string) string {
	t.Helper()
	said, err := attempt(t, dir, block, settings...)
	assert.Require(t, err == nil, "%v:\n%s", err, said)
	return said
}

// attempt is follow for a block that may fail.
func attempt(t *testing.T, dir, block string, settings ...string) (said string, err error) {
	t.Helper()
	bin := filepath.Dir(compiled(t))
	ctx, cancel := context.WithTimeout(t.Context(), 6*startLimit)
	defer cancel()
	shell := exec.CommandContext(ctx, "sh", "-eux", "-c", block)
	shell.Dir = dir
	shell.Env = append([]string{"PATH=" + bin + ":" + os.Getenv("PATH")}, settings...)
	out, err := shell.CombinedOutput()
	return string(out), err
}
