package torture

import (
	"fmt"
	"slices"
	"time"

	"commerce/deploy/assert"
)

// run makes a call and records from the slow log how long each script took. names are the
// scripts that the call runs, in the order of their first runs. A repeated call runs some of
// them more than once.
func (l *largest) run(names []string, call func()) {
	l.t.Helper()
	ctx := l.t.Context()
	assert.NoError(l.t, l.redis.Do(ctx, "slowlog", "reset").Err())
	call()
	logged := assert.Must(l.redis.SlowLogGet(ctx, -1).Result())(l.t)
	slices.Reverse(logged) // the newest entry comes first
	fresh := names
	for _, name := range l.names {
		fresh = slices.DeleteFunc(slices.Clone(fresh), func(n string) bool { return n == name })
	}
	ran := map[string]bool{}
	for _, command := range logged {
		if command.Args[0] != "evalsha" {
			continue
		}
		name := l.names[command.Args[1]]
		if name == "" && len(fresh) > 0 {
			name, fresh = fresh[0], fresh[1:]
			l.names[command.Args[1]] = name
		}
		ran[name] = true
		l.took[name] = append(l.took[name], command.Duration)
	}
	for _, name := range names {
		assert.Require(l.t, ran[name], "the call ran the scripts %v, want %q", ran, names)
	}
}

// report adds the times of all scripts to the promise's row. In the short form, only a script
// that is always slow breaks the promise.
func (l *largest) report(p *promise, limits string) {
	worst, worstMedian := "", ""
	slowest, median := map[string]time.Duration{}, map[string]time.Duration{}
	for name, took := range l.took {
		slices.Sort(took)
		slowest[name], median[name] = took[len(took)-1], took[len(took)/2]
		if slowest[name] > slowest[worst] {
			worst = name
		}
		if median[name] > median[worstMedian] {
			worstMedian = name
		}
		l.t.Logf("%s: %s: %d runs, fastest %v, median %v, slowest %v", limits, name, len(took), took[0], median[name], slowest[name])
		bound := sized(10*scriptLimit, scriptLimit)
		if judged := sized(took[0], slowest[name]); judged > bound && l.limits.settings == nil {
			p.broke("%s: the script %s took %v", limits, name, judged)
		}
	}
	p.lasted(fmt.Sprintf("%s: slowest run of a script (%s)", limits, worst), slowest[worst])
	p.lasted(fmt.Sprintf("%s: slowest median of a script (%s)", limits, worstMedian), median[worstMedian])
}
