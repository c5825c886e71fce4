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

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"commerce/deploy/ephemeral"
)

// series are the names of metrics with the values of each of their labels.
type series map[string]map[string][]string

// known is what a query may name.
type known struct {
	series     series
	documented string // docs/metrics.md: values that occur only in case of errors
	statuses   string // docs/openapi.yaml
}

// scraped returns what a real service exposes after calls of every kind, what Prometheus adds, and
// what the rules record.
func scraped(t *testing.T) known {
	t.Helper()
	database := sharedDatabase(t)
	s := startService(t, programs.right(t), nil,
		"DATABASE_URL="+database, "DATABASE_REPLICA_URL="+database, "REDIS_URL="+ephemeral.Redis(t))
	s.browse(t, commerce(t, database, "token", "store", "--store", "1", "--name", "test"))
	text := expfmt.NewTextParser(model.LegacyValidation)
	families := must(text.TextToMetricFamilies(strings.NewReader(s.metrics(t))))(t)
	found := series{"up": {}}
	for name, family := range families {
		for _, metric := range family.GetMetric() {
			for _, suffix := range suffixes(family.GetType()) {
				found.add(name+suffix, metric.GetLabel())
			}
		}
		if family.GetType() == dto.MetricType_HISTOGRAM {
			found[name+"_bucket"]["le"] = nil
		}
	}
	for rule := range rules(readRules(t)) {
		if rule.Record != "" {
			found[rule.Record] = map[string][]string{}
		}
	}
	for _, has := range found {
		has["job"], has["instance"] = []string{"commerce"}, nil
	}
	return known{
		series:     found,
		documented: string(must(os.ReadFile(filepath.Join(root, "docs/metrics.md")))(t)),
		statuses:   string(must(os.ReadFile(filepath.Join(root, "docs/openapi.yaml")))(t)),
	}
}

func suffixes(kind dto.MetricType) []string {
	switch kind {
	case dto.MetricType_HISTOGRAM:
		return []string{"_bucket", "_sum", "_count"}
	case dto.MetricType_SUMMARY:
		return []string{"", "_sum", "_count"}
	}
	return []string{""}
}

func (s series) add(name string, pairs []*dto.LabelPair) {
	if s[name] == nil {
		s[name] = map[string][]string{}
	}
	for _, pair := range pairs {
		s[name][pair.GetName()] = append(s[name][pair.GetName()], pair.GetValue())
	}
}

// browse makes each kind of call, so that each metric has a value.
func (s *service) browse(t *testing.T, apiToken string) {
	t.Helper()
	for _, c := range everyCall(apiToken) {
		wait(t, "an answer other than 503", func() string { // the first read of something can take long
			if status, body := c.send(http.DefaultClient, s.url()); status == 0 || status == http.StatusServiceUnavailable {
				return fmt.Sprintf("%s %s: %d %s", c.method, c.path, status, body)
			}
			return ""
		})
	}
}

// everyCall returns a call of each kind.
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
		{method: "GET", path: "/subscriptions/changes", bearer: apiToken},
	}
}

// faults returns what is wrong with a query.
func (k known) faults(query string) (faults []string) {
	expr, err := promql().ParseExpr(query)
	if err != nil {
		return []string{err.Error()}
	}
	fault := func(format string, arguments ...any) { faults = append(faults, fmt.Sprintf(format, arguments...)) }
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		var names []string
		switch n := node.(type) {
		case *parser.VectorSelector:
			if k.series[n.Name] == nil {
				fault("there is no metric %s", n.Name)
				return nil
			}
			for _, matcher := range n.LabelMatchers {
				if matcher.Name != model.MetricNameLabel {
					faults = append(faults, k.faultsOfMatcher(n.Name, matcher)...)
				}
			}
		case *parser.AggregateExpr:
			names = n.Grouping
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				names = append(n.VectorMatching.MatchingLabels, n.VectorMatching.Include...)
			}
		}
		for _, name := range names {
			if !k.has(node, name) {
				fault("no metric in it has the label %s", name)
			}
		}
		return nil
	})
	return faults
}

// has reports whether a metric in a part of a query has a label.
func (k known) has(part parser.Node, label string) (found bool) {
	parser.Inspect(part, func(node parser.Node, _ []parser.Node) error {
		if n, ok := node.(*parser.VectorSelector); ok {
			_, has := k.series[n.Name][label]
			found = found || has
		}
		return nil
	})
	return found
}

func (k known) faultsOfMatcher(metric string, matcher *labels.Matcher) (faults []string) {
	values, has := k.series[metric][matcher.Name]
	if !has {
		return []string{fmt.Sprintf("%s has no label %s", metric, matcher.Name)}
	}
	if matcher.Name == "instance" {
		return nil
	}
	alternatives := []string{regexp.QuoteMeta(matcher.Value)}
	if matcher.Type == labels.MatchRegexp || matcher.Type == labels.MatchNotRegexp {
		alternatives = strings.Split(matcher.Value, "|")
	}
	for _, alternative := range alternatives {
		pattern := regexp.MustCompile("^(?:" + alternative + ")$")
		switch {
		case slices.ContainsFunc(values, pattern.MatchString):
		case matcher.Name == "status" && slices.ContainsFunc(documentedStatuses(k.statuses), pattern.MatchString):
		case strings.Contains(k.documented, "`"+alternative+"`"):
		default:
			faults = append(faults, fmt.Sprintf("%s never has %s=%q", metric, matcher.Name, alternative))
		}
	}
	return faults
}

// documentedStatuses returns the statuses in the OpenAPI document.
func documentedStatuses(page string) (statuses []string) {
	for _, match := range regexp.MustCompile(`"(\d{3})":`).FindAllStringSubmatch(page, -1) {
		statuses = append(statuses, match[1])
	}
	return statuses
}

// queries returns all queries of the project, by where they are.
func queries(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for rule := range rules(readRules(t)) {
		found["rules.yml: "+rule.Record+rule.Alert] = rule.Expr
	}
	page := string(must(os.ReadFile(filepath.Join(root, "docs/runbook.md")))(t))
	for i, match := range regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllStringSubmatch(page, -1) {
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
	k, all := scraped(t), queries(t)
	for where, query := range all {
		for _, fault := range k.faults(query) {
			t.Errorf("%s: %s\n%s", where, fault, query)
		}
	}
	if len(all) < 60 {
		t.Errorf("only %d queries: this test does not read all", len(all))
	}
}

func TestFaults_FindsWhatAQueryNamesWrongly(t *testing.T) {
	t.Parallel()
	k := known{
		series:     series{"a_total": {"kind": {"x"}, "job": nil, "status": {"200"}}, "b_total": {"job": nil}},
		documented: "| `y` |", statuses: `"503":`,
	}
	for query, want := range map[string][]string{
		`sum by (kind) (rate(a_total{kind=~"x|y",status=~"5.."}[5m]))`: nil,
		`rate(a_total[5m]`: {"1:17: parse error: unclosed left parenthesis"},
		`c_total`:          {"there is no metric c_total"},
		`a_total{kind=~"x|z"} / on (kind) b_total{kind="x"}`: {`b_total has no label kind`, `a_total never has kind="z"`},
		`sum by (kind) (b_total)`:                            {"no metric in it has the label kind"},
		`a_total{status="599"}`:                              {`a_total never has status="599"`},
	} {
		got := k.faults(query)
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}
