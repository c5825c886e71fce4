package server_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// repository is its root, from here.
const repository = "../../.."

// example is a shell block of a page, or a file that the page asks its reader to save.
type example struct {
	script string
	prints string // what the page says that the script prints: the blocks that follow it
	notRun string // why a test cannot run the script; "": it can
}

var (
	fence = regexp.MustCompile("(?ms)^(?:<!-- not-run: ([^\n]+) -->\n+)?( *)```(\\w+)\n(.*?)^ *```$")

	// savedAs is the first line of a module or page that readers save as a file.
	savedAs = regexp.MustCompile(`^(?://|<!--) ([\w.-]+\.(?:mjs|html))\b`)
)

// examplesOf returns the examples of a page, whose path is relative to the repository.
func examplesOf(t *testing.T, page string) (all []example) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, page))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range fence.FindAllStringSubmatch(string(text), -1) {
		notRun, indent, language := block[1], block[2], block[3]
		code := strings.TrimPrefix(strings.ReplaceAll("\n"+block[4], "\n"+indent, "\n"), "\n")
		switch language {
		case "sh":
			all = append(all, example{script: code, notRun: notRun})
		case "js", "html":
			file := savedAs.FindStringSubmatch(code)
			if file == nil {
				t.Fatalf("%s: the first line of this code does not say as which file to save it:\n%s", page, code)
			}
			all = append(all, example{script: "cat >" + file[1] + " <<'the end of the file'\n" + code + "the end of the file\n"})
		case "json", "text":
			if len(all) == 0 {
				t.Fatalf("%s shows an output before any command:\n%s", page, code)
			}
			all[len(all)-1].prints += code
		}
	}
	return all
}

// terminal runs shell scripts of guides.
type terminal struct {
	dir string // where scripts run
	url string // of a service with the sample's data, instead of the demo's usual URL
}

// run returns what a script printed. It must succeed.
func (term terminal) run(t *testing.T, script string) string {
	t.Helper()
	sh := command(t, "sh", "-eu")
	sh.Dir = term.dir
	sh.Env = append(os.Environ(), "npm_config_prefer_offline=true", "npm_config_ignore_scripts=true")
	sh.Stdin = strings.NewReader(strings.ReplaceAll(script, "http://localhost:8080", term.url))
	var out, problems bytes.Buffer
	sh.Stdout, sh.Stderr = &out, &problems
	if err := sh.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, out.Bytes(), problems.Bytes())
	}
	return out.String()
}

// paste runs the examples one after the other in one shell, as a reader does who copies them
// into a terminal. It returns how they print anything else than the page shows below them.
func (term terminal) paste(t *testing.T, examples []example) (faults []string) {
	t.Helper()
	const mark = "--- the next example ---\n"
	var all strings.Builder
	for _, e := range examples {
		if e.notRun == "" {
			all.WriteString(e.script)
		}
		all.WriteString("printf %s '" + mark + "'\n")
	}
	printed := strings.Split(term.run(t, all.String()), mark)
	if len(printed) != len(examples)+1 {
		t.Fatalf("%d examples, %d outputs", len(examples), len(printed)-1)
	}
	for i, e := range examples {
		if e.notRun != "" {
			continue
		}
		if diff := cmp.Diff(likeThis(e.prints), likeThis(printed[i])); diff != "" {
			faults = append(faults, e.script+"(-the guide +printed):\n"+diff)
		}
	}
	return faults
}

// likeThis replaces what differs between two runs by its form.
func likeThis(printed string) string {
	for _, form := range [][2]string{
		{`\b\d{4}-\d\d-\d\d`, "YYYY-MM-DD"},
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
