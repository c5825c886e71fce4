package monitoring

import (
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// faster returns the rules with all durations divided by factor: ranges, offsets, and how long
// an alert waits before it fires.
func faster(t testing.TB, groups *rulefmt.RuleGroups, factor int64) *rulefmt.RuleGroups {
	t.Helper()
	scaled := &rulefmt.RuleGroups{}
	for _, group := range groups.Groups {
		changed := rulefmt.RuleGroup{Name: group.Name}
		for _, rule := range group.Rules {
			rule.Expr = fasterQuery(t, rule.Expr, factor)
			rule.For = model.Duration(shorter(time.Duration(rule.For), factor))
			changed.Rules = append(changed.Rules, rule)
		}
		scaled.Groups = append(scaled.Groups, changed)
	}
	return scaled
}

func fasterQuery(t testing.TB, query string, factor int64) string {
	t.Helper()
	expr, err := promql().ParseExpr(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.MatrixSelector:
			n.Range = shorter(n.Range, factor)
		case *parser.VectorSelector:
			n.OriginalOffset = shorter(n.OriginalOffset, factor)
		case *parser.SubqueryExpr:
			n.Range, n.Step = shorter(n.Range, factor), shorter(n.Step, factor)
			n.OriginalOffset = shorter(n.OriginalOffset, factor)
		}
		return nil
	})
	return expr.String()
}

// shorter divides a duration. Prometheus counts in milliseconds.
func shorter(d time.Duration, factor int64) time.Duration {
	return (d / time.Duration(factor)).Round(time.Millisecond)
}

func TestFasterQuery_DividesRangesAndOffsetsOnly(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		`rate(x_5m{a="5m"}[5m]) > 300`:    `rate(x_5m{a="5m"}[3s]) > 300`,
		`x unless x offset 15m`:           `x unless x offset 9s`,
		`max_over_time(rate(x[2m])[1h:])`: `max_over_time(rate(x[1s200ms])[36s:])`,
	} {
		if got := fasterQuery(t, query, 100); got != want {
			t.Errorf("%s becomes %s, want %s", query, got, want)
		}
	}
}
