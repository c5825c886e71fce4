package inspect

import (
	"fmt"
	"slices"
	"time"
)

// Clock is a server's clock, compared with that of this machine.
type Clock struct {
	Ahead  time.Duration // negative: it is behind
	Within time.Duration // the maximum error of Ahead: half of the round trip
}

// maxSkew is how far a clock may be off.
const maxSkew = time.Second

// machine is the server in the finding about this machine's clock.
const machine = "this machine"

// clockOf is a clock to judge.
type clockOf struct {
	server, code string
	breaks       string // what a wrong clock breaks
	clock        *Clock
}

// What each clock decides. Redis's scripts use the clock of the server that runs them. After a
// failover, or after a slot has moved, they compare it with times that another server has
// stored. See docs/operations.md, "Clocks".
const (
	redisClockBreaks = "After a failover from or to this server, or when a slot moves, " +
		"carts expire early or late by this much, and a retry without an idempotency key can count twice."
	postgresClockBreaks = "Times that the platform takes from Postgres's clock, such as the end of a subscription, " +
		"take effect early or late by this much."
	machineClockBreaks = "On an instance with this clock, access tokens, coupons and subscriptions " +
		"begin and end early or late by this much, and expires_at in responses is wrong by this much."
)

// judgeClocks compares every clock with the median of all, so that one wrong clock causes only
// one finding.
func judgeClocks(o Observation) []Finding {
	clocks := []clockOf{{machine, "machine_clock", machineClockBreaks, &Clock{}}}
	for _, r := range o.Redis {
		if r.Failure == "" {
			clocks = append(clocks, clockOf{r.Server, "redis_clock", redisClockBreaks, r.Clock})
		}
	}
	if p := o.Postgres; p != nil && p.Failure == "" {
		clocks = append(clocks, clockOf{p.Server, "postgres_clock", postgresClockBreaks, p.Clock})
	}
	var known []time.Duration
	for _, c := range clocks {
		if c.clock != nil {
			known = append(known, c.clock.Ahead)
		}
	}
	if len(known) == 1 { // only this machine's own
		known = nil
	}
	slices.Sort(known)
	var all []Finding
	for _, c := range clocks {
		if f := judgeClock(c, known); f.Code != "" {
			f.Server = c.server
			all = append(all, f)
		}
	}
	return all
}

// judgeClock compares a clock with the median of the known clocks, which are sorted. If there
// are two medians, it takes the one that is closer to this machine's clock.
func judgeClock(c clockOf, others []time.Duration) Finding {
	switch {
	case c.clock == nil:
		return unknown(c.code, "TIME", "The clock is not visible.")
	case len(others) == 0:
		return Finding{}
	}
	median := others[(len(others)-1)/2]
	if upper := others[len(others)/2]; upper.Abs() < median.Abs() {
		median = upper
	}
	off := c.clock.Ahead - median
	if off.Abs() <= maxSkew+c.clock.Within {
		return ok(c.code, "The clock differs from the others by at most about %s.", (maxSkew + c.clock.Within).Round(100*time.Millisecond))
	}
	side := "ahead of"
	if off < 0 {
		side = "behind"
	}
	return warning(c.code, "the machine's time synchronization (NTP)", "The clock is %s %s the other clocks. %s",
		fmt.Sprintf("%.1f seconds", off.Abs().Seconds()), side, c.breaks)
}
