package monitoring

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// series are the names of metrics with the values of each of their labels, and with the words of
// their help for the label "".
type series map[string]map[string][]string

var (
	help     = regexp.MustCompile(`(?m)^# HELP (\w+) (.*)$`)
	sample   = regexp.MustCompile(`(?m)^(\w+)(?:{(.*)})? \S+$`)                          // a line of /metrics
	label    = regexp.MustCompile(`(\w+)="([^"]*)"`)                                     // of a sample
	selector = regexp.MustCompile(`\b((?:commerce|process|go)[_:][\w:]+)(?:{([^}]*)})?`) // of a query
	matcher  = regexp.MustCompile(`(\w+)(=~|!~|!=|=)"([^"]*)"`)                          // of a selector
)

// scraped returns what a real service exposes after calls of every kind, and what the rules
// record.
func scraped(t *testing.T) series {
	t.Helper()
	database := sharedDatabase(t)
	s := startService(t, assert.Must(program())(t), nil,
		"DATABASE_URL="+database, "DATABASE_REPLICA_URL="+database, "REDIS_URL="+ephemeral.Redis(t))
	for _, c := range everyCall(commerce(t, database, "token", "store", "--store", "1", "--name", "test")) {
		wait(t, "an answer other than 503", func() string { // the first read of something can take long
			if status, body := c.send(http.DefaultClient, s.url()); status == 0 || status == http.StatusServiceUnavailable {
				return fmt.Sprintf("%s %s: %d %s", c.method, c.path, status, body)
			}
			return ""
		})
	}
	var page string
	wait(t, "the first check of the servers", func() string {
		if page = s.metrics(t); strings.Contains(page, "commerce_check_findings") {
			return ""
		}
		return page
	})
	found, explained := series{}, map[string][]string{}
	for _, line := range help.FindAllStringSubmatch(page, -1) {
		explained[line[1]] = regexp.MustCompile(`\w+`).FindAllString(line[2], -1)
	}
	for _, line := range sample.FindAllStringSubmatch(page, -1) {
		if found[line[1]] == nil {
			found[line[1]] = map[string][]string{"": explained[regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(line[1], "")]}
		}
		for _, pair := range label.FindAllStringSubmatch(line[2], -1) {
			found[line[1]][pair[1]] = append(found[line[1]][pair[1]], pair[2])
		}
	}
	for _, r := range readRules(t) {
		if r.Record != "" {
			found[r.Record] = map[string][]string{}
		}
	}
	return found
}

func everyCall(apiToken string) []call {
	const guest = "a-guest-who-browses-0001"
	return []call{
		{method: "POST", path: "/cart/add", body: `{"product_id":1}`, cart: guest},
		{method: "POST", path: "/cart/add", body: `{"product_id":3}`, cart: guest}, // refused
		{method: "POST", path: "/cart/add", body: `{"product_id":2,"qty":3}`, cart: guest},
		{method: "GET", path: "/cart", cart: guest},
		{method: "GET", path: "/cart/validate", cart: guest},
		{method: "POST", path: "/cart/coupon", body: `{"coupon":"TEN"}`, cart: guest},
		{method: "GET", path: "/cart", cart: guest, bearer: customerToken(7, jwtSecret)}, // merges
		{method: "GET", path: "/subscriptions", bearer: apiToken},
		{method: "GET", path: "/subscriptions/summary", bearer: apiToken},
		{method: "GET", path: "/subscriptions/metrics", bearer: apiToken},
		{method: "GET", path: "/subscriptions/changes", bearer: apiToken},
	}
}

// faults returns what a query names that there is not. Values that are documented, or in the help
// of the metric, occur only in case of errors.
func (s series) faults(query, documented string) (faults []string) {
	for _, found := range selector.FindAllStringSubmatch(query, -1) {
		metric, labels := found[1], s[found[1]]
		if labels == nil {
			faults = append(faults, "there is no metric "+metric)
			continue
		}
		for _, m := range matcher.FindAllStringSubmatch(found[2], -1) {
			values, has := labels[m[1]]
			if !has && m[1] != "job" && m[1] != "instance" { // which Prometheus adds
				faults = append(faults, metric+" has no label "+m[1])
				continue
			}
			for alternative := range strings.SplitSeq(m[3], "|") {
				is := regexp.MustCompile("^(?:" + alternative + ")$").MatchString
				if has && !slices.ContainsFunc(slices.Concat(values, labels[""]), is) && !strings.Contains(documented, "`"+alternative+"`") && m[1] != "status" {
					faults = append(faults, fmt.Sprintf("%s never has %s=%q", metric, m[1], alternative))
				}
			}
		}
	}
	return faults
}

// queries returns all queries of the project, by where they are.
func queries(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, r := range readRules(t) {
		found["rules.yml: "+r.Record+r.Alert] = r.Expr
	}
	for i, match := range regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllStringSubmatch(runbook(t), -1) {
		found[fmt.Sprintf("runbook.md: query %d", i+1)] = match[1]
	}
	for _, panel := range readDashboard(t).Panels {
		for _, target := range panel.Targets {
			found[fmt.Sprintf("dashboard: %s: %s", panel.Title, target.RefID)] = withoutVariables(target.Expr)
		}
	}
	return found
}

func TestQueries_NameOnlyWhatARealServiceExposes(t *testing.T) {
	t.Parallel()
	all := queries(t)
	exposed, documented := scraped(t), section(t, "### Errors", "\n## ")+section(t, "### CommerceTokensRefused", "\n### ")
	for where, query := range all {
		for _, fault := range exposed.faults(query, documented) {
			t.Errorf("%s: %s\n%s", where, fault, query)
		}
	}
	assert.That(t, len(all) >= 60, "only %d queries: this test does not read all", len(all))
	for query, want := range map[string]string{
		`rate(commerce_merge_total[5m])`:                                 "no metric",
		`sum(commerce_merges_total{result="postponed"}) / go_goroutines`: "no label result",
		`commerce_merges_total{outcome=~"postponed|delayed"}`:            `never has outcome="delayed"`,
	} {
		got := strings.Join(exposed.faults(query, documented), "\n")
		assert.That(t, strings.Contains(got, want), "%s: faults %q, want %q", query, got, want)
	}
}

// section returns the runbook from a heading to the next text end.
func section(tb testing.TB, heading, end string) string {
	tb.Helper()
	_, text, found := strings.Cut(runbook(tb), "\n"+heading+"\n")
	assert.Require(tb, found, "docs/runbook.md has no section %q", heading)
	text, _, _ = strings.Cut(text, end)
	return text
}

func runbook(tb testing.TB) string {
	tb.Helper()
	return string(assert.Must(os.ReadFile(filepath.Join(root, "docs/runbook.md")))(tb))
}
