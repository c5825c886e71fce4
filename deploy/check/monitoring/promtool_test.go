package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// promtool runs promtool, of Debian's package prometheus, and returns what it prints.
func promtool(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("promtool is not installed (sh deploy/ephemeral/install.sh)")
	}
	out, err := exec.Command(program, arguments...).CombinedOutput()
	return string(out), err
}

func TestPromtool_AcceptsTheConfigurationAndTheRules(t *testing.T) {
	t.Parallel()
	for _, arguments := range [][]string{
		{"check", "config", filepath.Join(root, "deploy/prometheus/prometheus.yml")},
		{"check", "rules", "--lint=all", "--lint-fatal", rulesFile},
		{"test", "rules", filepath.Join(root, "deploy/prometheus/rules_test.yml")},
	} {
		if out, err := promtool(t, arguments...); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, out)
		}
	}
}

func TestPromtool_RefusesARuleThatCannotBeParsed(t *testing.T) {
	t.Parallel()
	text := must(os.ReadFile(rulesFile))(t)
	broken := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(broken, []byte(strings.Replace(string(text), "sum by (job)", "sum by job", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := promtool(t, "check", "rules", broken); err == nil {
		t.Errorf("promtool accepts a broken rule:\n%s", out)
	}
}

// Each alert has a test in rules_test.yml in which it fires, and one in which it does not.
func TestPromtool_TestsEachAlertBothWays(t *testing.T) {
	t.Parallel()
	var file struct {
		Tests []struct {
			AlertRuleTest []struct {
				Alertname string
				ExpAlerts []any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal(must(os.ReadFile(filepath.Join(root, "deploy/prometheus/rules_test.yml")))(t), &file); err != nil {
		t.Fatal(err)
	}
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, alert := range test.AlertRuleTest {
			if len(alert.ExpAlerts) > 0 {
				fires[alert.Alertname] = true
			} else {
				quiet[alert.Alertname] = true
			}
		}
	}
	for _, name := range alertNames(t) {
		if !fires[name] || !quiet[name] {
			t.Errorf("%s: fires in a test: %v; stays quiet in one: %v", name, fires[name], quiet[name])
		}
	}
}
