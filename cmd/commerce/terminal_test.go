package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// onTerminal runs a command line on a terminal with a number of columns, and returns what it
// prints. The line has the program as commerce.
func onTerminal(t *testing.T, columns int, settings []string, line string) string {
	t.Helper()
	line = strings.Replace(line, "commerce", assert.Must(os.Executable())(t), 1)
	cmd := exec.CommandContext(t.Context(), "script", "-qec", "stty cols "+strconv.Itoa(columns)+"; "+line, "/dev/null")
	cmd.Env = append(program(t, settings).Env, "PATH="+os.Getenv("PATH"))
	cmd.Stdin = strings.NewReader("")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Logf("%s: %v", line, err)
	}
	return strings.ReplaceAll(string(out), "\r\n", "\n")
}

const stopsDemo = "timeout -s TERM 3 commerce demo"

func TestDemo_PrintsTokensOnLinesOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, columns := range []int{80, 120} {
		printed := onTerminal(t, columns, []string{"TERM=xterm", "NO_COLOR=1"}, stopsDemo)
		for what, line := range map[string]string{"JWT": `(?m)^eyJ[\w-]+\.[\w-]+\.[\w-]+$`, "API token": `(?m)^1\|\w+$`} {
			assert.That(t, regexp.MustCompile(line).MatchString(printed),
				"%d columns: no line with only the %s:\n%s", columns, what, printed)
		}
		for line := range strings.Lines(printed) {
			token := strings.Contains(line, "eyJ") || strings.Contains(line, "1|")
			assert.That(t, len(strings.TrimRight(line, "\n")) <= 80 || token || strings.HasPrefix(line, "time="),
				"%d columns: a line of %d: %s", columns, len(line), line)
		}
	}
}

func TestDemo_IsBoldOnlyOnATerminalThatMayBe(t *testing.T) {
	slow(t)
	for name, tc := range map[string]struct {
		settings []string
		pipe     string
		bold     bool
	}{
		"a terminal":      {[]string{"TERM=xterm"}, "", true},
		"NO_COLOR":        {[]string{"TERM=xterm", "NO_COLOR=1"}, "", false},
		"a dumb terminal": {[]string{"TERM=dumb"}, "", false},
		"a pipe":          {[]string{"TERM=xterm"}, " | cat", false},
	} {
		printed := onTerminal(t, 80, tc.settings, stopsDemo+tc.pipe)
		assert.That(t, strings.Contains(printed, "\x1b[") == tc.bold && strings.Contains(printed, "API token"),
			"%s: want bold: %t\n%q", name, tc.bold, printed)
	}
}

// The printed calls, as someone pastes them into a shell.
func TestDemo_PrintsCallsThatWorkAsPasted(t *testing.T) {
	t.Parallel()
	demo := start(t, "demo")
	demo.log.wait(t, 0, `^Open http://localhost:\d+\n`)
	_, calls, _ := strings.Cut(demo.log.String(), "another terminal:")
	calls, page, _ := strings.Cut(calls, "\n\nOpen ")
	assert.That(t, regexp.MustCompile(`^http://localhost:\d+\n\n$`).MatchString(page), "the output ends with %q", page)
	for _, shell := range []string{"bash", "zsh"} {
		out := string(assert.Must(exec.CommandContext(t.Context(), shell, "-c", calls).Output())(t))
		assert.That(t, strings.Count(out, `"code":`) == strings.Count(out, `"code":null`) &&
			strings.Count(out, `"api":"merchant-commerce"`) == 3, "%s: %s", shell, out)
	}
}

func TestWaiting_IsShownOnATerminalOnly(t *testing.T) {
	t.Parallel()
	var terminal logLines // anything but a file counts as one
	end := startWaiting(&terminal, "applying")
	time.Sleep(1500 * time.Millisecond)
	end()
	assert.Equal(t, terminal.String(), "\rapplying: 1 s\n", "terminal.String()")
	var quick logLines
	startWaiting(&quick, "applying")()
	assert.Equal(t, quick.String(), "", "a quick command shows")
}

func TestSeed_ShowsProgressOnATerminalOnly(t *testing.T) {
	slow(t)
	url := "DATABASE_URL=" + ephemeral.Migrated(t)
	const line = "commerce seed --subscriptions 5000"
	for _, width := range []int{60, 100} {
		printed := onTerminal(t, width, []string{"TERM=xterm", url}, line)
		assert.That(t, strings.Contains(printed, "writing rows 100%"), "no progress on a terminal: %q", printed)
		for _, shown := range strings.FieldsFunc(printed, func(r rune) bool { return r == '\r' || r == '\n' }) {
			assert.That(t, utf8.RuneCountInString(shown) <= width || !strings.Contains(shown, "%"),
				"wraps at %d columns: %q", width, shown)
		}
	}
	printed := onTerminal(t, 100, []string{"TERM=dumb", url}, line)
	assert.That(t, !strings.Contains(printed, "%"), "progress on a dumb terminal: %q", printed)
	got := ended(t, program(t, []string{"TERM=xterm", url}, strings.Fields(line)[1:]...))
	assert.That(t, got.status == 0 && got.errors == "" && !strings.Contains(got.out, "\r"), "in a pipe: %+v", got)
}
