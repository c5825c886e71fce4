package torture

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// history records the calls of one cart and their responses. It is safe for concurrent use.
type history struct {
	began time.Time

	mu     sync.Mutex
	events []cartEvent
}

func newHistory() *history { return &history{began: time.Now()} }

// cartEvent is a call, or a part of one, that takes effect at one moment between its beginning
// and its end.
type cartEvent struct {
	call       cartCall
	begins     time.Duration
	ends       time.Duration
	knows      knowledge
	refusal    string    // its code; "" for none
	shows      cartState // the cart in the response
	showsACart bool
	look       int // see known
}

type knowledge string

const (
	answered knowledge = "answered" // the response shows its effect
	made     knowledge = "made"     // it took effect, but the response shows a later cart
	observed knowledge = "observed" // it changed nothing, and shows the cart
	open     knowledge = "open"     // it may take effect at any later time, or never
)

func (e cartEvent) String() string {
	seen := e.refusal
	if e.showsACart {
		seen += " " + e.shows.String()
	}
	return fmt.Sprintf("%v to %v: %v %s %s", e.begins, e.ends, e.call, e.knows, seen)
}

const noEnd = time.Duration(math.MaxInt64)

func (h *history) note(e cartEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

func (h *history) now() time.Duration { return time.Since(h.began) }

func (e cartEvent) seenIn(knows knowledge, r reply) cartEvent {
	e.knows = knows
	if r.Status != 200 {
		e.refusal = r.Code
	}
	e.shows, e.showsACart = stateIn(r)
	return e
}

// stateIn returns the cart that a response shows, if it does.
func stateIn(r reply) (s cartState, ok bool) {
	var envelope struct{ Data *struct{ Version *int64 } }
	if json.Unmarshal(r.Raw, &envelope) != nil || envelope.Data == nil || envelope.Data.Version == nil {
		return s, false
	}
	return cartState{r.Cart.Version, r.Cart.Count}, true
}

var checkLimit = ephemeral.Patience(20 * time.Second)

// violation returns why no order of the calls explains the history, or "" if an order does. The
// last event must be a read that began after all other calls had returned.
func (h *history) violation() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.SortFunc(h.events, func(a, b cartEvent) int { return cmp.Compare(a.begins, b.begins) })
	model := h.model()
	var operations []porcupine.Operation
	for _, e := range h.events {
		operations = append(operations, porcupine.Operation{Input: e, Call: int64(e.begins), Return: int64(e.ends)})
	}
	switch result := porcupine.CheckOperationsTimeout(model, operations, checkLimit); result {
	case porcupine.Ok:
		return ""
	case porcupine.Illegal:
		return "no order of the calls explains this history:\n" + h.text()
	default:
		return fmt.Sprintf("the history was not decided within %v:\n%s", checkLimit, h.text())
	}
}

func (h *history) text() string {
	lines := make([]string, len(h.events))
	for i, e := range h.events {
		lines[i] = e.String()
	}
	return strings.Join(lines, "\n")
}

func (h *history) model() porcupine.Model {
	k := h.known()
	return porcupine.Model{
		Init: func() any { return searched{} },
		Step: func(state, input, _ any) (bool, any) {
			next, ok := k.step(state.(searched), input.(cartEvent))
			return ok, next
		},
		Hash: func(state any) uint64 { return uint64(state.(searched).version) },
	}
}

// known is what all events of a history say about the cart's versions. It makes the search
// smaller without missing a solution: each version exists once, and no event sees a version
// after the last one.
type known struct {
	shown map[int64]cartState // carts that events show, by version
	added map[int64]bool      // versions that an answered add has made
	looks map[int64]int       // how many events see a version and change nothing
	last  int64               // version that the last event sees
}

type searched struct {
	cartState
	looks int // events so far that see this version and change nothing
}

// known also numbers the events that see the same version and change nothing. Any order of
// these events has the same effect, so the search uses the order in which they began.
func (h *history) known() known {
	k := known{map[int64]cartState{}, map[int64]bool{}, map[int64]int{}, -1}
	for i := range h.events {
		e := &h.events[i]
		if !e.showsACart {
			continue
		}
		k.last, k.shown[e.shows.version] = e.shows.version, e.shows
		if e.onlyLooks() {
			e.look = k.looks[e.shows.version]
			k.looks[e.shows.version]++
		} else if e.call.verb == verbAdd {
			k.added[e.shows.version] = true
		}
	}
	return k
}

// onlyLooks reports whether an event that shows a cart cannot have changed it.
func (e cartEvent) onlyLooks() bool {
	return e.knows == observed || e.refusal != "" || e.call.verb == verbRead
}

// step returns the cart after an event, if its response fits the cart before.
func (k known) step(before searched, e cartEvent) (after searched, ok bool) {
	if e.showsACart && e.onlyLooks() {
		if e.look != before.looks || e.shows != before.cartState {
			return before, false
		}
		_, refusal := e.call.apply(before.cartState)
		before.looks++
		return before, e.knows == observed || refusal == e.refusal
	}
	if e.knows == open && before.version >= k.last { // no later event shows its effect
		return before, true
	}
	next, refusal := e.call.apply(before.cartState)
	switch {
	case refusal != e.refusal, e.showsACart && e.shows != next:
		return before, false
	case next.version == before.version: // an open event without effect can be the last one as well
		return before, e.knows != open
	case before.looks < k.looks[before.version], e.knows != answered && k.added[next.version]:
		return before, false
	}
	shown, seen := k.shown[next.version]
	return searched{cartState: next}, !seen || shown == next
}

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
		"a 503 changed the cart":          {[]cartEvent{answeredCall(1, 2, addCall(1), 1, 1), answeredCall(3, 4, readCall, 2, 3)}, true},
		"a version was left out":          {[]cartEvent{answeredCall(1, 2, addCall(1), 1, 1), answeredCall(3, 4, addCall(2), 3, 3)}, true},
		"a stale read":                    {[]cartEvent{answeredCall(1, 2, addCall(1), 1, 1), answeredCall(3, 4, readCall, 0), answeredCall(5, 6, readCall, 1, 1)}, true},
		"a read while it was added":       {[]cartEvent{answeredCall(1, 4, addCall(1), 1, 1), answeredCall(2, 3, readCall, 0), answeredCall(5, 6, readCall, 1, 1)}, false},
		"a lost reply to a change":        {[]cartEvent{openCall(1, addCall(2)), answeredCall(2, 3, addCall(1), 1, 1), answeredCall(3, 4, readCall, 2, 3)}, false},
		"a lost request":                  {[]cartEvent{openCall(1, addCall(2)), answeredCall(2, 3, addCall(1), 1, 1), answeredCall(3, 4, readCall, 1, 1)}, false},
		"a lost reply that counts twice":  {[]cartEvent{openCall(1, addCall(2)), answeredCall(2, 3, readCall, 1, 2), answeredCall(4, 5, readCall, 2, 4)}, true},
		"two lost replies at once":        {[]cartEvent{openCall(1, addCall(2)), openCall(1, addCall(1)), answeredCall(2, 3, readCall, 2, 3)}, false},
		"a change before its request":     {[]cartEvent{answeredCall(1, 2, readCall, 1, 2), openCall(3, addCall(2))}, true},
		"a repeat":                        {[]cartEvent{{call: addCall(2), knows: made, begins: 1, ends: 4}, repeatedCall(3, 4, 1, 2)}, false},
		"a repeat that was not made":      {[]cartEvent{{call: addCall(2), knows: made, begins: 1, ends: 4}, repeatedCall(3, 4, 0)}, true},
		"a repeat that counts twice":      {[]cartEvent{{call: addCall(2), knows: made, begins: 1, ends: 4}, repeatedCall(3, 4, 2, 4)}, true},
		"an old version matched":          {[]cartEvent{answeredCall(1, 2, addCall(1), 1, 1), answeredCall(3, 4, addCall(2).onlyIf(0), 2, 3)}, true},
		"the current version matched":     {[]cartEvent{answeredCall(1, 2, addCall(1), 1, 1), answeredCall(3, 4, addCall(2).onlyIf(1), 2, 3)}, false},
		"an old version was refused":      {[]cartEvent{answeredCall(1, 2, addCall(1), 1, 1), refusedCall(3, 4, addCall(2).onlyIf(0), "version_mismatch", 1, 1)}, false},
		"the current version was refused": {[]cartEvent{answeredCall(1, 2, addCall(1), 1, 1), refusedCall(3, 4, addCall(2).onlyIf(1), "version_mismatch", 1, 1)}, true},
		"a refusal shows an old cart":     {[]cartEvent{answeredCall(1, 2, addCall(1), 1, 1), refusedCall(3, 4, addCall(2).onlyIf(7), "version_mismatch", 0), answeredCall(5, 6, readCall, 1, 1)}, true},
		"a line that was not found":       {[]cartEvent{answeredCall(1, 2, addCall(1), 1, 1), {call: setCall(3), begins: 3, ends: 4, knows: answered, refusal: "item_not_found"}}, true},
		"a line that was not there":       {[]cartEvent{{call: setCall(3), begins: 1, ends: 2, knows: answered, refusal: "item_not_found"}, answeredCall(3, 4, addCall(1), 1, 1)}, false},
	} {
		h := newHistory()
		end := cartEvent{call: readCall, begins: 10, ends: 11, knows: answered, showsACart: true}
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

// The check finds any missing change, even among calls with an unknown outcome.
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
	whole.note(cartEvent{call: readCall, begins: 2000, ends: 2001, knows: answered, shows: s, showsACart: true})
	assert.Equal(t, whole.violation(), "", "whole.violation()")
	for n := range whole.events[:100] {
		partial := newHistory()
		partial.events = slices.Delete(slices.Clone(whole.events), n, n+1)
		found := partial.violation()
		assert.That(t, found != "", "without change %d: nothing was found", n)
	}
}

func addCall(quantity int64) cartCall { return cartCall{verbAdd, quantity, noCondition} }

func setCall(quantity int64) cartCall { return cartCall{verbSet, quantity, noCondition} }

func (c cartCall) onlyIf(version int64) cartCall {
	c.ifMatch = version
	return c
}

// answeredCall is a call that was answered with a cart of this version and of at most one line.
func answeredCall(begins, ends time.Duration, c cartCall, version int64, quantity ...int64) cartEvent {
	e := cartEvent{call: c, begins: begins, ends: ends, knows: answered, showsACart: true, shows: cartState{version: version}}
	for _, n := range quantity {
		e.shows.quantity += n
	}
	return e
}

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

func openCall(begins time.Duration, c cartCall) cartEvent {
	return cartEvent{call: c, begins: begins, ends: noEnd, knows: open}
}
