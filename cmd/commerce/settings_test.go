package main

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"commerce/cmd/internal/cli"
	"commerce/deploy/assert"
)

// declared returns the settings of a command that is in no group.
func declared(t *testing.T, commandName string) []cli.Setting {
	t.Helper()
	all := allCommands().Commands
	i := slices.IndexFunc(all, func(c cli.Command) bool { return c.Name == commandName })
	assert.Require(t, i >= 0, "there is no command %s", commandName)
	return all[i].Settings
}

// settingsOf returns the settings of these commands that are environment variables.
// The value of a secret is true: it can come from a file.
func settingsOf(t *testing.T, commandNames ...string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, name := range commandNames {
		for _, s := range declared(t, name) {
			found[s.Name] = s.Secret
		}
	}
	assert.Require(t, len(found) >= 20, "only %d settings of %v", len(found), commandNames)
	return found
}

func TestSettings_AreThoseOfTheOperationsGuide(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{}
	for _, code := range regexp.MustCompile("`[^`\n]*`").FindAllString(source(t, "docs/operations.md"), -1) {
		if name := regexp.MustCompile("^`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)(?:=[^`]*)?`$").FindStringSubmatch(code); name != nil {
			documented[name[1]] = true
		}
	}
	settings := settingsOf(t, "demo", "serve")
	for _, s := range newMigrate().Commands[0].Settings {
		if s.Name == strings.ToUpper(s.Name) { // otherwise it is a flag alone
			settings[s.Name] = s.Secret
		}
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		assert.That(t, documented[name], "docs/operations.md does not mention `%s`", name)
	}
	for name := range documented {
		base, isFile := strings.CutSuffix(name, "_FILE")
		secret, known := settings[base]
		if strings.HasPrefix(name, "OTEL_") || name == "NO_COLOR" { // conventions of all programs, and no flags
			continue
		}
		assert.That(t, !strings.Contains(name, "_") || known && (!isFile || secret),
			"docs/operations.md mentions `%s`, which is not a setting", name)
	}
}

func TestSettings_AreInTheHelpOfTheProgramAndOfTheirCommand(t *testing.T) {
	t.Parallel()
	all := ended(t, program(t, nil, "--help")).out
	for _, command := range []string{"demo", "serve"} {
		own := strings.Join(strings.Fields(ended(t, program(t, nil, command, "--help")).out), " ")
		for name := range settingsOf(t, command) {
			assert.That(t, strings.Contains(all, "\n  "+name+" "), "commerce --help does not list %s", name)
			assert.That(t, strings.Contains(own, "($"+name+")"), "commerce %s --help does not list %s", command, name)
		}
	}
}

func TestSettings_AreCheckedAgainstTheBoundsInHelp(t *testing.T) {
	t.Parallel()
	checked := 0
	bound := regexp.MustCompile(`at most ([0-9]+)[.]`)
	for _, setting := range declared(t, "demo") {
		found := bound.FindStringSubmatch(setting.Help)
		if found == nil {
			continue
		}
		checked++
		for value, inBounds := range map[string]bool{found[1]: true, found[1] + "0": false} {
			// The second setting ends the program also if the value is in bounds.
			got := ended(t, program(t, []string{setting.Name + "=" + value, "TRUSTED_PROXIES=gateway"}, "demo"))
			refused := strings.HasPrefix(got.errors, "commerce: "+setting.Name+": must be from")
			assert.That(t, refused != inBounds && strings.Contains(got.errors, "commerce: TRUSTED_PROXIES: "),
				"%s=%s: %q", setting.Name, value, got.errors)
		}
	}
	assert.That(t, checked >= 4, "only %d settings have a bound in their help", checked)
}

// Not parallel: there is one standard log, by which libraries must not block either.
func TestLogger_TakesTheLinesOfTheStandardLog(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() {
		slog.SetDefault(before)
		log.SetOutput(os.Stderr)
	})
	var s settings
	var text logLines
	lines := s.openLog(&text)
	s.logger(cli.NewOutput(io.Discard, lines))
	log.Print("from a library")
	lines.Close()
	assert.That(t, strings.Contains(text.String(), `"msg":"from a library"`), "the log has %q", text.String())
}

// `commerce serve` accepts the settings that the pages show as files. It reads them from the
// environment, so this test is not parallel.
func TestSettings_OfThePagesAreAccepted(t *testing.T) {
	files := regexp.MustCompile("(?ms)^ *```ini\n(.*?)^ *```$")
	for page, want := range map[string]int{"docs/deploy.md": 1, "docs/operations.md": 1, "docs/scale.md": 1} {
		found := 0
		for _, file := range files.FindAllStringSubmatch(source(t, page), -1) {
			if strings.Contains(file[1], "[Service]") {
				continue // for systemd
			}
			found++
			t.Run(page, func(t *testing.T) { assert.Succeeds(t, faultOf(t, file[1]), "%s", file[1]) })
		}
		assert.That(t, found == want, "%s has %d files with settings, want %d", page, found, want)
	}
	assert.That(t, faultOf(t, "TRUSTED_PROXIES=nonsense") != nil, "no fault in a wrong setting")
}

// faultOf returns what is wrong with lines of settings, beside those that all need.
func faultOf(t *testing.T, file string) error {
	t.Helper()
	settings := "DATABASE_URL=postgres://localhost/commerce\nREDIS_URL=redis://localhost\nJWT_SECRET=" + strings.Repeat("s", 32) + "\n" + file
	for line := range strings.Lines(settings) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), "="); found && !strings.HasPrefix(name, "#") {
			t.Setenv(name, value)
		}
	}
	return newServe().Read(func(cli.Setting) *string { return nil })
}

var everyCommand = []string{
	"", "demo", "serve", "check", "migrate", "migrate up", "migrate down", "migrate status", "seed", "subscriptions",
	"subscriptions prune", "token", "token customer", "token store", "token list", "token revoke", "cart", "cart show", "cart erase", "cart abandoned", "cart digest", "completion", "version",
}

func TestHelp_FitsEightyColumnsAndSucceeds(t *testing.T) {
	t.Parallel()
	for _, command := range everyCommand {
		flag := append(strings.Fields(command), "--help")
		word := append([]string{"help"}, strings.Fields(command)...)
		for _, args := range [][]string{flag, word} {
			got := ended(t, program(t, []string{"COLUMNS=200"}, args...))
			assert.That(t, got.status == 0 && got.errors == "" && strings.HasPrefix(got.out, "Usage: commerce "+command),
				"commerce %v: %+v", args, got)
			for line := range strings.Lines(got.out) {
				n := utf8.RuneCountInString(strings.TrimRight(line, "\n"))
				assert.That(t, n <= 80, "commerce %v prints a line of %d columns: %q", args, n, line)
			}
		}
	}
	alone := ended(t, program(t, nil))
	assert.That(t, alone.status == 0 && strings.HasPrefix(alone.out, "Usage: commerce") &&
		strings.Count(alone.out, "\n") <= 24, "commerce alone: %+v", alone)
	for _, before := range []string{"--help demo", "--help token store"} {
		want := "Usage: commerce" + strings.TrimPrefix(before, "--help")
		got := ended(t, program(t, nil, strings.Fields(before)...))
		assert.That(t, got.status == 0 && strings.HasPrefix(got.out, want), "commerce %s: %+v, want %q", before, got, want)
	}
	got := ended(t, program(t, nil, "help", "nothing"))
	assert.That(t, got.status == 2 && got.out == "", "commerce help nothing: %+v, want a failure", got)
}

func TestHelp_ShowsCustomerAndTokenAsAlternatives(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"show", "erase"} {
		got := ended(t, program(t, nil, "cart", command, "--help"))
		want := "Usage: commerce cart " + command + " (--customer=ID | --token=TOKEN) [flags]\n"
		assert.That(t, strings.HasPrefix(got.out, want), "help begins %.90q, want %q", got.out, want)
	}
}

// The scripts that the shells load ask the program.
func TestCompletion_KnowsCommandsAndFlags(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"token\x00":     "customer store list revoke",
		"seed\x00--sub": "--subscriptions",
	} {
		got := ended(t, program(t, nil, append([]string{"__complete"}, strings.Split(line, "\x00")...)...))
		for word := range strings.SplitSeq(want, " ") {
			assert.That(t, strings.Contains(got.out, word+"\t"), "%q: completes %q, want %s", line, got.out, word)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		got := ended(t, program(t, nil, "completion", shell))
		assert.That(t, got.status == 0 && strings.Contains(got.out, "commerce"), "%s: ended with %d", shell, got.status)
	}
}

func TestQuotas_ApplyToTheProgram(t *testing.T) {
	t.Parallel()
	limited := start(t, "demo", "CREATE_LIMIT=1000/s,2/h")
	unlimited := start(t, "demo", "CREATE_LIMIT=2/h", "RATE_LIMIT=off")
	for n := range 4 {
		token := fmt.Sprintf("made-up-cart-token-%010d", n)
		want := http.StatusOK
		if n >= 2 {
			want = http.StatusTooManyRequests
		}
		a, err := limited.call(token, "POST", "/cart/add", `{"product_id":1}`)
		assert.That(t, err == nil && a.Status == want, "cart %d: %v, %d %s, want %d", n+1, err, a.Status, a.Body, want)
		unlimited.mustCall(t, token, "POST", "/cart/add", `{"product_id":1}`)
	}
	var metadata []string
	for n := range 20 {
		metadata = append(metadata, fmt.Sprintf(`"%02d":"%s"`, n, strings.Repeat("😀", 500)))
	}
	const clear = `{"ops":[{"op":"clear"}]}`
	list := `{"ops":[{"op":"metadata","metadata":{` + strings.Join(metadata, ",") + `}}]}` // 40,040 bytes of text
	stored, status := 0, 0
	for tries := 0; tries < 800 && status != http.StatusTooManyRequests; tries++ {
		if a, err := limited.call("made-up-cart-token-0000000000", "POST", "/cart/ops", list); err == nil {
			status = a.Status
		}
		if status == http.StatusOK {
			stored++
			limited.mustCall(t, "made-up-cart-token-0000000000", "POST", "/cart/ops", clear)
		}
	}
	assert.That(t, stored > 450 && status == http.StatusTooManyRequests, "%d times 40 KB were stored, then %d; want 20 MB and what comes back meanwhile", stored, status)
	const n = failuresPerMinute + 10
	guesses := func(i instance) map[int]int { // by the status of the answer
		counts := map[int]int{}
		for range n {
			counts[i.send(t, "GET", "/cart", "", "Authorization", "Bearer garbage").Status]++
		}
		return counts
	}
	refused, sent := 0, 0
	for ; refused == 0 && sent < 100*n; sent += n { // on a slow machine, many come back meanwhile
		refused = guesses(limited.instance)[http.StatusTooManyRequests]
	}
	assert.That(t, refused != 0 && (sent != n || refused <= 10), "of %d invalid tokens %d are refused", sent, refused)
	got := guesses(unlimited.instance)
	assert.That(t, got[http.StatusUnauthorized] == n, "without limits, invalid tokens get %v", got)
}
