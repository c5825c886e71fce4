package main

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// settingsOf returns the settings of these commands that are environment variables.
// The value of a secret is true: it can come from a file.
func settingsOf(t *testing.T, commandNames ...string) map[string]bool {
	t.Helper()
	parser, err := kong.New(&commands{}, helpNumbers())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, command := range parser.Model.Children {
		if !slices.Contains(commandNames, command.Name) {
			continue
		}
		for _, flag := range command.Flags {
			for _, name := range flag.Envs {
				found[name] = flag.Tag.Has("secret")
			}
		}
	}
	if len(found) < 20 {
		t.Fatalf("only %d settings of %v", len(found), commandNames)
	}
	return found
}

func TestSettings_AreThoseOfTheOperationsGuide(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, code := range regexp.MustCompile("`[^`\n]*`").FindAllString(string(guide), -1) {
		if name := regexp.MustCompile("^`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)(?:=[^`]*)?`$").FindStringSubmatch(code); name != nil {
			documented[name[1]] = true
		}
	}
	settings := settingsOf(t, "demo", "serve")
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if !documented[name] {
			t.Errorf("docs/operations.md does not mention `%s`", name)
		}
	}
	for name := range documented {
		base, isFile := strings.CutSuffix(name, "_FILE")
		secret, known := settings[base]
		if strings.HasPrefix(name, "OTEL_") || name == "NO_COLOR" { // conventions of all programs, and no flags
			continue
		}
		if strings.Contains(name, "_") && (!known || isFile && !secret) {
			t.Errorf("docs/operations.md mentions `%s`, which is not a setting", name)
		}
	}
}

func TestSettings_AreInTheHelpOfTheProgramAndOfTheirCommand(t *testing.T) {
	t.Parallel()
	all := ended(t, program(t, nil, "--help")).out
	for _, command := range []string{"demo", "serve"} {
		own := strings.Join(strings.Fields(ended(t, program(t, nil, command, "--help")).out), " ")
		for name := range settingsOf(t, command) {
			if !strings.Contains(all, "\n  "+name+" ") {
				t.Errorf("commerce --help does not list %s", name)
			}
			if !strings.Contains(own, "($"+name+")") {
				t.Errorf("commerce %s --help does not list %s", command, name)
			}
		}
	}
}

func TestSettings_AreCheckedAgainstTheBoundsInHelp(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&commands{}, helpNumbers())
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	bound := regexp.MustCompile(`at most ([0-9]+)[.]`)
	for _, flag := range parser.Model.Children[0].Flags {
		found := bound.FindStringSubmatch(flag.Help)
		if found == nil || len(flag.Envs) == 0 {
			continue
		}
		checked++
		for value, inBounds := range map[string]bool{found[1]: true, found[1] + "0": false} {
			// TRUSTED_PROXIES sorts last, so it is reported only if the value is in bounds.
			got := ended(t, program(t, []string{flag.Envs[0] + "=" + value, "TRUSTED_PROXIES=gateway"}, "demo"))
			want := flag.Envs[0] + ": must be from"
			if inBounds {
				want = "TRUSTED_PROXIES: "
			}
			if !strings.HasPrefix(got.errors, "commerce: "+want) {
				t.Errorf("%s=%s: %q, want %s", flag.Envs[0], value, got.errors, want)
			}
		}
	}
	if checked < 5 {
		t.Errorf("only %d settings have a bound in their help", checked)
	}
}
