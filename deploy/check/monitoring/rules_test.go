package monitoring

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

var rulesFile = filepath.Join(root, "deploy/prometheus/rules.yml")

// promql returns Prometheus' own parser.
func promql() parser.Parser { return parser.NewParser(parser.Options{}) }

// readRules returns the groups of deploy/prometheus/rules.yml.
func readRules(t testing.TB) *rulefmt.RuleGroups {
	t.Helper()
	groups, errs := rulefmt.ParseFile(rulesFile, false, model.LegacyValidation, promql(), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil || t.Failed() {
		t.FailNow()
	}
	return groups
}

// rules yields the rules of all groups.
func rules(groups *rulefmt.RuleGroups) func(yield func(rulefmt.Rule) bool) {
	return func(yield func(rulefmt.Rule) bool) {
		for _, group := range groups.Groups {
			for _, rule := range group.Rules {
				if !yield(rule) {
					return
				}
			}
		}
	}
}

// alertNames returns the names of all alerts, sorted.
func alertNames(t testing.TB) []string {
	t.Helper()
	var names []string
	for rule := range rules(readRules(t)) {
		if rule.Alert != "" {
			names = append(names, rule.Alert)
		}
	}
	slices.Sort(names)
	return names
}

func TestRules_SayWhatHappensAndWhatToDo(t *testing.T) {
	t.Parallel()
	for rule := range rules(readRules(t)) {
		if rule.Alert != "" {
			for _, fault := range faultsOf(rule) {
				t.Errorf("%s: %s", rule.Alert, fault)
			}
		}
	}
}

func TestFaultsOf_FindsWhatAnAlertLacks(t *testing.T) {
	t.Parallel()
	got := faultsOf(rulefmt.Rule{
		Alert: "CommerceX", Expr: "sum by (job) (up) == 0", Labels: map[string]string{"severity": "panic"},
		Annotations: map[string]string{"description": "{{ $labels.instance }}", "runbook_url": "https://git.example.com/commerce/docs/runbook.md#y"},
	})
	want := []string{
		`severity "panic", want page or ticket`, "no summary", `runbook_url ends in "y", want docs/runbook.md#commercex`,
		"uses the label instance, which its query does not return",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// faultsOf returns what is wrong with the labels and annotations of an alert.
func faultsOf(rule rulefmt.Rule) (faults []string) {
	if severity := rule.Labels["severity"]; severity != "page" && severity != "ticket" {
		faults = append(faults, fmt.Sprintf("severity %q, want page or ticket", severity))
	}
	for _, name := range []string{"summary", "description"} {
		if rule.Annotations[name] == "" {
			faults = append(faults, "no "+name)
		}
	}
	page, anchor, _ := strings.Cut(rule.Annotations["runbook_url"], "#")
	if !strings.HasSuffix(page, "/docs/runbook.md") || anchor != strings.ToLower(rule.Alert) {
		faults = append(faults, fmt.Sprintf("runbook_url ends in %q, want docs/runbook.md#%s", anchor, strings.ToLower(rule.Alert)))
	}
	expr, err := promql().ParseExpr(rule.Expr)
	if err != nil {
		return append(faults, err.Error())
	}
	for _, name := range []string{"summary", "description"} {
		for _, match := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(rule.Annotations[name], -1) {
			if returned := labelsOf(expr); returned != nil && !slices.Contains(returned, match[1]) {
				faults = append(faults, "uses the label "+match[1]+", which its query does not return")
			}
		}
	}
	return faults
}

// labelsOf returns the labels that all series of a query have, or nil if it returns the labels of
// a metric.
func labelsOf(expr parser.Expr) []string {
	switch e := expr.(type) {
	case *parser.AggregateExpr:
		if !e.Without {
			return append([]string{}, e.Grouping...)
		}
	case *parser.BinaryExpr:
		if e.LHS.Type() == parser.ValueTypeScalar {
			return labelsOf(e.RHS)
		}
		return labelsOf(e.LHS)
	case *parser.ParenExpr:
		return labelsOf(e.Expr)
	case *parser.Call:
		if e.Func.Name == "histogram_quantile" {
			inner := labelsOf(e.Args[1])
			return slices.DeleteFunc(inner, func(name string) bool { return name == "le" })
		}
	}
	return nil
}

// The runbook has one entry for each alert: a heading with its name.
func TestRunbook_HasAnEntryForEachAlert(t *testing.T) {
	t.Parallel()
	page := must(os.ReadFile(filepath.Join(root, "docs/runbook.md")))(t)
	if diff := cmp.Diff(alertNames(t), entries(string(page))); diff != "" {
		t.Errorf("docs/runbook.md has other entries than rules.yml has alerts (-rules +runbook):\n%s", diff)
	}
}

func TestEntries_AreTheHeadingsOfAlerts(t *testing.T) {
	t.Parallel()
	got := entries("# Runbook\n## Alerts\n### CommerceB\ntext\n```\n### CommerceC\n```\n### CommerceA\n## Sizing\n")
	if diff := cmp.Diff([]string{"CommerceA", "CommerceB"}, got); diff != "" {
		t.Error(diff)
	}
}

// entries returns the headings of the runbook that name an alert, sorted.
func entries(page string) (names []string) {
	code := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "### Commerce"); ok && !code {
			names = append(names, "Commerce"+name)
		}
	}
	slices.Sort(names)
	return names
}
