package torture

import (
	"slices"
	"testing"
	"time"

	"commerce/deploy/assert"
)

// Shows that the check of histories can fail.
func TestHistory_FindsWhatNoOrderExplains(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		events []cartEvent
		found  bool
	}{
		"one after the other":             {[]cartEvent{answeredCall(1, 2, addCall(1), 1, 1), answeredCall(3, 4, addCall(2), 2, 3)}, false},
		"at the same time":                {[]cartEvent{answeredCall(1, 4, addCall(2), 2, 3), answeredCall(2, 3, addCall(1), 1, 1)}, false},
		"the later one took effect first": {[]cartEvent{answeredCall(1, 2, addCall(2), 2, 3), answeredCall(3, 4, addCall(1), 1, 1)}, true},
		"an add was lost":                 {[]cartEvent{answeredCall(1, 2, addCall(1), 1, 1), answeredCall(3, 4, addCall(2), 2, 2)}, true},
		"an add counted twice":            {[]cartEvent{answeredCall(1, 2, addCall(1), 1, 1), answeredCall(3, 4, addCall(2), 2, 5)}, true},
		"a 503 changed the cart":          {[]cartEvent{answeredCall(1, 2, addCall(1), 1, 1), answeredCall(3, 4, readCall(), 2, 3)}, true},
		"a version was left out":          {[]cartEvent{answeredCall(1, 2, addCall(1), 1, 1), answeredCall(3, 4, addCall(2), 3, 3)}, true},
		"a stale read":                    {[]cartEvent{answeredCall(1, 2, addCall(1), 1, 1), answeredCall(3, 4, readCall(), 0), answeredCall(5, 6, readCall(), 1, 1)}, true},
		"a read while it was added":       {[]cartEvent{answeredCall(1, 4, addCall(1), 1, 1), answeredCall(2, 3, readCall(), 0), answeredCall(5, 6, readCall(), 1, 1)}, false},
		"a lost reply to a change":        {[]cartEvent{openCall(1, addCall(2)), answeredCall(2, 3, addCall(1), 1, 1), answeredCall(3, 4, readCall(), 2, 3)}, false},
		"a lost request":                  {[]cartEvent{openCall(1, addCall(2)), answeredCall(2, 3, addCall(1), 1, 1), answeredCall(3, 4, readCall(), 1, 1)}, false},
		"a lost reply that counts twice":  {[]cartEvent{openCall(1, addCall(2)), answeredCall(2, 3, readCall(), 1, 2), answeredCall(4, 5, readCall(), 2, 4)}, true},
		"two lost replies at once":        {[]cartEvent{openCall(1, addCall(2)), openCall(1, addCall(1)), answeredCall(2, 3, readCall(), 2, 3)}, false},
		"a change before its request":     {[]cartEvent{answeredCall(1, 2, readCall(), 1, 2), openCall(3, addCall(2))}, true},
		"a repeat":                        {[]cartEvent{{call: addCall(2), knows: made, begins: 1, ends: 4}, repeatedCall(3, 4, 1, 2)}, false},
		"a repeat that was not made":      {[]cartEvent{{call: addCall(2), knows: made, begins: 1, ends: 4}, repeatedCall(3, 4, 0)}, true},
		"a repeat that counts twice":      {[]cartEvent{{call: addCall(2), knows: made, begins: 1, ends: 4}, repeatedCall(3, 4, 2, 4)}, true},
		"an old version matched":          {[]cartEvent{answeredCall(1, 2, addCall(1), 1, 1), answeredCall(3, 4, addCall(2).onlyIf(0), 2, 3)}, true},
		"the current version matched":     {[]cartEvent{answeredCall(1, 2, addCall(1), 1, 1), answeredCall(3, 4, addCall(2).onlyIf(1), 2, 3)}, false},
		"an old version was refused":      {[]cartEvent{answeredCall(1, 2, addCall(1), 1, 1), refusedCall(3, 4, addCall(2).onlyIf(0), "version_mismatch", 1, 1)}, false},
		"the current version was refused": {[]cartEvent{answeredCall(1, 2, addCall(1), 1, 1), refusedCall(3, 4, addCall(2).onlyIf(1), "version_mismatch", 1, 1)}, true},
		"a refusal shows an old cart":     {[]cartEvent{answeredCall(1, 2, addCall(1), 1, 1), refusedCall(3, 4, addCall(2).onlyIf(7), "version_mismatch", 0), answeredCall(5, 6, readCall(), 1, 1)}, true},
		"a line that was not found":       {[]cartEvent{answeredCall(1, 2, addCall(1), 1, 1), {call: setCall(3), begins: 3, ends: 4, knows: answered, refusal: "item_not_found"}}, true},
		"a line that was not there":       {[]cartEvent{{call: setCall(3), begins: 1, ends: 2, knows: answered, refusal: "item_not_found"}, answeredCall(3, 4, addCall(1), 1, 1)}, false},
	} {
		h := newHistory()
		end := cartEvent{call: readCall(), begins: 10, ends: 11, knows: answered, showsACart: true}
		for _, e := range test.events {
			h.note(e)
			if e.showsACart && e.shows.version >= end.shows.version {
				end.shows = e.shows
			}
		}
		h.note(end)
		found := h.violation()
		assert.That(t, (found != "") == test.found, "%s: found %q", name, found)
	}
}

// The check finds any change that is missing in a long history, even among calls with an
// unknown outcome.
func TestHistory_FindsOneMissingChangeOfMany(t *testing.T) {
	t.Parallel()
	whole := newHistory()
	var s cartState
	for n := range time.Duration(100) {
		e := cartEvent{call: addCall(1 + int64(n)%7), begins: 10 * n, ends: 10*n + 45, knows: answered, showsACart: true}
		s, _ = e.call.apply(s)
		e.shows = s
		if n%10 == 3 {
			e = cartEvent{call: e.call, begins: e.begins, ends: noEnd, knows: open}
		}
		whole.note(e)
	}
	whole.note(cartEvent{call: readCall(), begins: 2000, ends: 2001, knows: answered, shows: s, showsACart: true})
	assert.Equal(t, whole.violation(), "", "whole.violation()")
	for n := range whole.events[:100] {
		partial := newHistory()
		partial.events = slices.Delete(slices.Clone(whole.events), n, n+1)
		found := partial.violation()
		assert.That(t, found != "", "without change %d: nothing was found", n)
	}
}

func addCall(quantity int64) cartCall {
	return cartCall{item: plainLine(0), quantity: quantity, ifMatch: noCondition}.add(0)
}

func setCall(quantity int64) cartCall {
	return cartCall{verb: verbSet, item: plainLine(0), quantity: quantity, ifMatch: noCondition}
}

func (c cartCall) onlyIf(version int64) cartCall {
	c.ifMatch = version
	return c
}

// answeredCall is a call that was answered with a cart of this version and of at most one line.
func answeredCall(begins, ends time.Duration, c cartCall, version int64, quantity ...int64) cartEvent {
	e := cartEvent{call: c, begins: begins, ends: ends, knows: answered, showsACart: true, shows: cartState{version: version}}
	for _, n := range quantity {
		e.shows.lines = append(e.shows.lines, stateLine{id: plainLine(0), quantity: n})
	}
	return e
}

// refusedCall is a call that was refused with a cart.
func refusedCall(begins, ends time.Duration, c cartCall, code string, version int64, quantity ...int64) cartEvent {
	e := answeredCall(begins, ends, c, version, quantity...)
	e.refusal = code
	return e
}

// repeatedCall is what the response to a repeat shows.
func repeatedCall(begins, ends time.Duration, version int64, quantity ...int64) cartEvent {
	e := answeredCall(begins, ends, addCall(2), version, quantity...)
	e.knows = observed
	return e
}

// openCall is a call without a response.
func openCall(begins time.Duration, c cartCall) cartEvent {
	return cartEvent{call: c, begins: begins, ends: noEnd, knows: open}
}
