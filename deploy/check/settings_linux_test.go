package check_test

import (
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ofGo are environment variables of every Go program.
var ofGo = []string{"GOMAXPROCS", "GOGC", "GOMEMLIMIT"}

// settingsOf returns the environment variables that a command knows, by its own help.
func settingsOf(t *testing.T, arguments ...string) []string {
	t.Helper()
	help, err := exec.CommandContext(t.Context(), builtImage(t).program(t), append(slices.Clone(arguments), "--help")...).Output()
	if err != nil {
		t.Fatalf("commerce %s --help: %v", strings.Join(arguments, " "), err)
	}
	var names []string
	for _, match := range regexp.MustCompile(`\(\$([A-Z0-9_]+)\)`).FindAllStringSubmatch(string(help), -1) {
		names = append(names, match[1])
	}
	if len(names) == 0 {
		t.Fatalf("found no settings in the help of commerce %s", strings.Join(arguments, " "))
	}
	return names
}

// unknown returns the variables of an environment that a command does not know.
func unknown(env map[string]string, known []string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !slices.Contains(known, strings.TrimSuffix(name, "_FILE")) && !slices.Contains(ofGo, name) {
			names = append(names, name)
		}
	}
	return names
}

func TestKubernetes_SetsOnlySettingsThatExist(t *testing.T) {
	t.Parallel()
	for _, name := range overlays {
		m := overlay(t, name)
		for _, p := range m.pods() {
			for _, c := range p.Spec.Containers {
				for _, setting := range unknown(m.env(c), settingsOf(t, c.Args...)) {
					t.Errorf("%s: %s sets %s, which commerce %s does not know", name, p.workload, setting, strings.Join(c.Args, " "))
				}
			}
		}
	}
}

func TestUnknown_FindsMisspeltSettings(t *testing.T) {
	t.Parallel()
	env := map[string]string{"DRAIN_DELAY": "4s", "DRAIN_DELAYS": "4s", "JWT_SECRET_FILE": "/f", "GOGC": "100"}
	if got := unknown(env, settingsOf(t, "serve")); !slices.Equal(got, []string{"DRAIN_DELAYS"}) {
		t.Errorf("unknown settings: %q", got)
	}
	if got := unknown(map[string]string{"REDIS_URL": "redis://r"}, settingsOf(t, "prune")); len(got) != 1 {
		t.Error("a setting of serve counts as one of prune")
	}
}
