package inspect

import (
	"fmt"
	"slices"
	"time"
)

type clock struct {
	code   string
	breaks string        // what a wrong clock breaks
	known  bool          // the server shows its clock
	ahead  time.Duration // negative: it is behind
	within time.Duration // the maximum error of ahead: half of the round trip
}

const maxSkew = time.Second

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

func (c Config) readClock(code, breaks string, ask func() (time.Time, error)) *clock {
	sent := c.Now()
	at, err := ask()
	within := c.Now().Sub(sent) / 2
	return &clock{code, breaks, err == nil, at.Sub(sent.Add(within)), within}
}

// judgeClocks compares every clock, also this machine's, with the median of all, so that one wrong
// clock causes only one finding. Of two medians, it takes the one that is closer to this machine's
// clock.
func judgeClocks(servers []*report) []*report {
	reports := []*report{{server: "this machine", clock: &clock{code: "machine_clock", breaks: machineClockBreaks, known: true}}}
	known := []time.Duration{0}
	for _, s := range servers {
		if s.clock == nil {
			continue
		}
		reports = append(reports, &report{server: s.server, clock: s.clock})
		if s.clock.known {
			known = append(known, s.clock.ahead)
		}
	}
	if len(known) == 1 { // there is nothing to compare this machine's clock with
		reports = reports[1:]
	}
	slices.Sort(known)
	median := known[(len(known)-1)/2]
	if upper := known[len(known)/2]; upper.Abs() < median.Abs() {
		median = upper
	}
	for _, r := range reports {
		r.judgeClock(median)
	}
	return reports
}

func (r *report) judgeClock(median time.Duration) {
	c := r.clock
	off, tolerated := c.ahead-median, maxSkew+c.within
	side := "ahead of"
	if off < 0 {
		side = "behind"
	}
	r.judge(c.code,
		unknown(!c.known, "TIME", "The clock is not visible."),
		warning(off.Abs() > tolerated, "the machine's time synchronization (NTP)", "The clock is %s %s the other clocks. %s",
			fmt.Sprintf("%.1f seconds", off.Abs().Seconds()), side, c.breaks),
		ok("The clock differs from the others by at most about %s.", tolerated.Round(100*time.Millisecond)))
}
