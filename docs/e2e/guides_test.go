package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/deploy/assert"
)

// guides are pages whose examples can be pasted into a terminal while the demo runs.
var guides = []string{"README.md", "docs/cart.md", "docs/storefront.md", "docs/agents.md", "docs/subscriptions.md"}

func TestGuides_PrintWhatTheyShow(t *testing.T) {
	slow(t)
	installed := installPackages(t, "npmtrip")
	for _, page := range guides {
		examples := examplesOf(t, page)
		assert.Require(t, len(examples) >= 2, "%s: found only %d examples", page, len(examples))
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			for _, fault := range pasteOnDemo(t, installed, examples) {
				t.Error(fault)
			}
		})
	}
	t.Run(subscriptionsGuide+" on Postgres", func(t *testing.T) {
		t.Parallel()
		for _, fault := range newReader(t).paste(t, examplesOf(t, subscriptionsGuide)) {
			t.Error(fault)
		}
	})
}

// pasteOnDemo pastes the examples while a demo of their own runs, in a folder where npm
// install finds the client. It returns their faults. On a busy machine, the demo may answer
// 503 or 504. Then it begins again.
func pasteOnDemo(t *testing.T, installed string, examples []example) []string {
	t.Helper()
	busy := regexp.MustCompile(`\bstatus=50[34]\b`)
	for tries := 1; ; tries++ {
		dir := t.TempDir()
		assert.NoError(t, os.CopyFS(dir, os.DirFS(installed)))
		assert.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(repository, connectors))))
		d := startDemo(t)
		faults := terminal{dir: dir, url: d.url}.paste(t, examples)
		if len(faults) == 0 || tries == 3 || !busy.MatchString(d.log.String()) {
			return faults
		}
	}
}

// example is a shell block of a page, or a file that the page asks its reader to save.
type example struct {
	script string
	prints string // what the page says that the script prints: the blocks that follow it
	notRun string // why a test cannot run the script; "": it can
	runBy  string // the test that runs the script, instead of those of this package; "": none
}

// elsewhere reports whether the tests of guides and manuals leave the example out.
func (e example) elsewhere() bool { return e.notRun != "" || e.runBy != "" }

var (
	fence = regexp.MustCompile("(?ms)^(?: *<!-- (not-run|run-by): ([^\n]+) -->\n+)?( *)```(\\w+)\n(.*?)^ *```$")

	// savedAs is the first line of a module or page that readers save as a file.
	savedAs = regexp.MustCompile(`^(?://|<!--) ([\w.-]+\.(?:mjs|html))\b`)
)

func examplesOf(t *testing.T, page string) (all []example) {
	t.Helper()
	text := assert.Must(os.ReadFile(filepath.Join(repository, page)))(t)
	for _, block := range fence.FindAllStringSubmatch(string(text), -1) {
		marks, indent, language := map[string]string{block[1]: block[2]}, block[3], block[4]
		code := strings.TrimPrefix(strings.ReplaceAll("\n"+block[5], "\n"+indent, "\n"), "\n")
		switch language {
		case "sh", "bash", "shell", "zsh", "console": // the prompts of console are for a test elsewhere
			all = append(all, example{script: code, notRun: marks["not-run"], runBy: marks["run-by"]})
		case "js", "html":
			file := savedAs.FindStringSubmatch(code)
			assert.Require(t, file != nil, "%s: the first line of this code does not say as which file to save it:\n%s", page, code)
			all = append(all, example{script: "cat >" + file[1] + " <<'the end of the file'\n" + code + "the end of the file\n"})
		case "json", "text":
			assert.Require(t, len(all) != 0, "%s shows an output before any command:\n%s", page, code)
			all[len(all)-1].prints += code
		}
	}
	return all
}

type terminal struct {
	dir     string            // where scripts run
	url     string            // of a service with the sample's data, instead of the demo's usual URL
	env     []string          // further variables
	replace *strings.Replacer // of further addresses and paths of the page; nil: none
	typed   string            // what the reader types when a command asks
}

// run returns what a script printed. It must succeed.
func (term terminal) run(t *testing.T, script string) string {
	t.Helper()
	script = strings.ReplaceAll(script, "http://localhost:8080", term.url)
	if term.replace != nil {
		script = term.replace.Replace(script)
	}
	file := filepath.Join(t.TempDir(), "script")
	assert.NoError(t, os.WriteFile(file, []byte(script), 0o600))
	sh := command(t, "sh", "-eu", file)
	sh.Dir = term.dir
	sh.Env = slices.Concat(os.Environ(), []string{"npm_config_prefer_offline=true", "npm_config_ignore_scripts=true"}, term.env)
	sh.Stdin = strings.NewReader(term.typed)
	sh.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // so that no command asks at the terminal of the tests
	var out, problems bytes.Buffer
	sh.Stdout, sh.Stderr = &out, &problems
	err := sh.Run()
	assert.Require(t, err == nil, "%v\n%s%s", err, out.Bytes(), problems.Bytes())
	return out.String()
}

// paste runs the examples one after the other in one shell, as a reader does who copies them
// into a terminal. It returns how they print anything else than the page shows below them.
func (term terminal) paste(t *testing.T, examples []example) (faults []string) {
	t.Helper()
	printed := term.outputs(t, examples)
	for i, e := range examples {
		if e.elsewhere() {
			continue
		}
		if diff := cmp.Diff(likeThis(e.prints), likeThis(printed[i])); diff != "" {
			faults = append(faults, e.script+"(-the guide +printed):\n"+diff)
		}
	}
	return faults
}

// outputs returns what each example prints if they run one after the other in one shell.
func (term terminal) outputs(t *testing.T, examples []example) []string {
	t.Helper()
	const mark = "--- the next example ---\n"
	var all strings.Builder
	for _, e := range examples {
		if !e.elsewhere() {
			all.WriteString(e.script)
		}
		all.WriteString("printf %s '" + mark + "'\n")
	}
	printed := strings.Split(term.run(t, all.String()), mark)
	assert.Require(t, len(printed) == len(examples)+1, "%d examples, %d outputs", len(examples), len(printed)-1)
	return printed[:len(examples)]
}

// likeThis replaces what differs between two runs by its form.
func likeThis(printed string) string {
	for _, form := range [][2]string{
		{`\b\d{4}-\d\d-\d\d`, "YYYY-MM-DD"},
		{`"\d{4}-\d\d"`, `"YYYY-MM"`},
		{`\d\d:\d\d:\d\d(\.\d{6}Z)?`, "hh:mm:ss$1"},
		{`\.\d{6}Z`, ".ffffffZ"},
		{`"timestamp": \d{10}\b`, `"timestamp": N`},
		{`"[A-Za-z0-9_-]{22,}"`, `"opaque"`},
		{`\x{a0}`, " "},
		{`(?m)^ +(\d+) `, "$1 "}, // of uniq
	} {
		printed = regexp.MustCompile(form[0]).ReplaceAllString(printed, form[1])
	}
	return printed
}
