// Package monitoring tests the alerts in deploy/prometheus, the dashboard in deploy/grafana
// and docs/runbook.md against each other, and against a running service.
package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"commerce/deploy/assert"
)

var rulesFile = filepath.Join(root, "deploy/prometheus/rules.yml")

type rule struct {
	Alert, Record, Expr string
	For                 time.Duration
	Annotations         map[string]string
}

func readRules(t testing.TB) (rules []rule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	assert.NoError(t, yaml.Unmarshal(assert.Must(os.ReadFile(rulesFile))(t), &file))
	for _, group := range file.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules
}

func alertNames(t testing.TB) (names []string) {
	t.Helper()
	for _, r := range readRules(t) {
		if r.Alert != "" {
			names = append(names, r.Alert)
		}
	}
	slices.Sort(names)
	return names
}

var durations = regexp.MustCompile(`(\[|offset |for: )(\d+)([mhd])\b`)

// faster returns rules with all durations divided by factor: ranges, offsets, and how long an
// alert waits before it fires.
func faster(rules string, factor int64) string {
	ms := map[string]int64{"m": 60_000, "h": 3_600_000, "d": 86_400_000}
	return durations.ReplaceAllStringFunc(rules, func(found string) string {
		part := durations.FindStringSubmatch(found)
		n, _ := strconv.ParseInt(part[2], 10, 64) // digits
		return part[1] + strconv.FormatInt(n*ms[part[3]]/factor, 10) + "ms"
	})
}

func TestFaster_DividesDurationsOnly(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		`rate(x_5m{a="5m"}[5m]) > 300`:   `rate(x_5m{a="5m"}[3000ms]) > 300`,
		`x unless x offset 15m`:          `x unless x offset 9000ms`,
		"for: 10m # not 10m":             "for: 6000ms # not 10m",
		`max_over_time(rate(x[2m])[1h:]`: `max_over_time(rate(x[1200ms])[36000ms:]`,
	} {
		assert.Equal(t, faster(query, 100), want, "%s becomes", query)
	}
}

// The runbook has one entry for each alert, a heading with its name, to which the alert links.
func TestRunbook_HasAnEntryForEachAlert(t *testing.T) {
	t.Parallel()
	var entries []string
	for _, match := range regexp.MustCompile(`(?m)^### (Commerce\w+)$`).FindAllStringSubmatch(runbook(t), -1) {
		entries = append(entries, match[1])
	}
	slices.Sort(entries)
	assert.Equal(t, entries, alertNames(t), "docs/runbook.md has other entries than rules.yml has alerts (-rules +runbook)")
	for _, r := range readRules(t) {
		if link := r.Annotations["runbook_url"]; r.Alert != "" && !strings.HasSuffix(link, "/docs/runbook.md#"+strings.ToLower(r.Alert)) {
			t.Errorf("%s links to %s", r.Alert, link)
		}
	}
}

func TestPromtool_AcceptsTheConfigurationAndTheRules(t *testing.T) {
	t.Parallel()
	for _, arguments := range [][]string{
		{"check", "config", filepath.Join(root, "deploy/prometheus/prometheus.yml")},
		{"check", "rules", "--lint=all", "--lint-fatal", rulesFile},
		{"test", "rules", filepath.Join(root, "deploy/prometheus/rules_test.yml")},
	} {
		out, err := exec.CommandContext(t.Context(), "promtool", arguments...).CombinedOutput()
		assert.That(t, err == nil, "promtool %s (sh deploy/ephemeral/install.sh): %v\n%s", strings.Join(arguments, " "), err, out)
	}
}

// Each alert has a test in rules_test.yml in which it fires, with all its texts, and one in which
// it does not.
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
	assert.NoError(t, yaml.Unmarshal(assert.Must(os.ReadFile(filepath.Join(root, "deploy/prometheus/rules_test.yml")))(t), &file))
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
		assert.That(t, fires[name] && quiet[name],
			"%s: fires in a test: %v; stays quiet in one: %v", name, fires[name], quiet[name])
	}
}
