package limit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Rate allows a number of uses in a period, all at once or spread over the period. Uses are
// restored one at a time, evenly over the period.
type Rate struct {
	Uses int64
	Per  time.Duration
}

// maxUses is the maximum number of uses of a parsed rate. It keeps the interval at 1 microsecond or
// more, which is the precision of the times in Redis.
const maxUses = 1_000_000

// Parse parses rates such as "200/s,20000/h": uses per s, m or h. All of them apply. For "off",
// it returns no rates.
func Parse(s string) ([]Rate, error) {
	if s == "off" {
		return nil, nil
	}
	var rates []Rate
	for part := range strings.SplitSeq(s, ",") {
		uses, unit, _ := strings.Cut(strings.TrimSpace(part), "/")
		n, err := strconv.ParseInt(uses, 10, 64)
		per := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}[unit]
		if err != nil || n < 1 || n > maxUses || per == 0 {
			return nil, fmt.Errorf("%q is neither off nor rates such as 200/s,20000/h, of at most %d", s, maxUses)
		}
		rates = append(rates, Rate{n, per})
	}
	return rates, nil
}

// ofSite returns the rates of a site.
func ofSite(rates []Rate) []Rate {
	rates = slices.Clone(rates)
	for i, r := range rates {
		rates[i].Uses = min(siteFactor*r.Uses, int64(r.Per/time.Microsecond))
	}
	return rates
}

func (r Rate) interval() time.Duration { return r.Per / time.Duration(r.Uses) }

// use counts n uses at a time. whole is when all uses will have come back. It returns the new
// value, and how long the client must wait for its next use; 0 or less: it need not wait.
// quota.lua has the same rule, and a bound for clocks that are set back.
func (r Rate) use(whole, now time.Time, n int64) (_ time.Time, wait time.Duration) {
	if whole.Before(now) {
		whole = now
	}
	whole = whole.Add(time.Duration(n) * r.interval())
	return whole, whole.Add(r.interval() - r.Per).Sub(now)
}
