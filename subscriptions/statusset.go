package subscriptions

import (
	"slices"
	"strings"
)

// allStatuses has every state once.
var allStatuses = [...]Status{Trialing, Active, PastDue, Paused, Canceled, Expired}

// StatusSet is a set of states: one bit for each, in the order of allStatuses.
type StatusSet uint8

// everyStatus is the set of all states.
const everyStatus = StatusSet(1<<len(allStatuses) - 1)

// parseStatusSet reads distinct states between commas, in any order.
func parseStatusSet(s string) (StatusSet, bool) {
	var set StatusSet
	for name := range strings.SplitSeq(s, ",") {
		at := slices.Index(allStatuses[:], Status(name))
		if at < 0 || set&(1<<at) != 0 {
			return 0, false
		}
		set |= 1 << at
	}
	return set, true
}

func (s StatusSet) has(status Status) bool {
	at := slices.Index(allStatuses[:], status)
	return at >= 0 && s&(1<<at) != 0
}

// names returns the states in the order of allStatuses.
func (s StatusSet) names() []string {
	var names []string
	for at, status := range allStatuses {
		if s&(1<<at) != 0 {
			names = append(names, string(status))
		}
	}
	return names
}
