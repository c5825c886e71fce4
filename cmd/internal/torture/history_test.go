package torture

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// history is what clients asked of one cart and what they learned. It is safe for
// concurrent use.
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
}

// knowledge is what a client knows about an event.
type knowledge string

const (
	answered knowledge = "answered" // its effect is what the response shows
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

// seenIn completes an event with a response.
func (e cartEvent) seenIn(knows knowledge, r reply) cartEvent {
	e.knows = knows
	if r.Status != 200 {
		e.refusal = r.Code
	}
	e.shows, e.showsACart = stateIn(r)
	return e
}

// stateIn returns the cart that a response shows.
func stateIn(r reply) (s cartState, ok bool) {
	var envelope struct {
		Data *struct {
			Version *int64 `json:"version"`
			Items   []struct {
				ID       string  `json:"id"`
				Quantity int64   `json:"quantity"`
				Notice   *string `json:"notice"`
			} `json:"items"`
		} `json:"data"`
	}
	if json.Unmarshal(r.Raw, &envelope) != nil || envelope.Data == nil || envelope.Data.Version == nil {
		return s, false
	}
	s.version = *envelope.Data.Version
	for _, item := range envelope.Data.Items {
		l := stateLine{id: item.ID, quantity: item.Quantity}
		if item.Notice != nil {
			l.notice = *item.Notice
		}
		s.lines = append(s.lines, l)
	}
	return s, true
}

// checkLimit is how long porcupine may take for one history.
const checkLimit = 20 * time.Second

// violation returns why no order of the calls explains the history, "" if one does. The
// last event must be a read that began when all other calls had returned.
func (h *history) violation() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var operations []porcupine.Operation
	for _, e := range h.events {
		operations = append(operations, porcupine.Operation{Input: e, Call: int64(e.begins), Return: int64(e.ends)})
	}
	switch result := porcupine.CheckOperationsTimeout(h.model(), operations, checkLimit); result {
	case porcupine.Ok:
		return ""
	case porcupine.Illegal:
		return "no order of the calls explains this history:\n" + h.text()
	default:
		return fmt.Sprintf("the history was not decided within %v:\n%s", checkLimit, h.text())
	}
}

func (h *history) text() string {
	sorted := slices.SortedFunc(slices.Values(h.events), func(a, b cartEvent) int { return cmp.Compare(a.begins, b.begins) })
	lines := make([]string, len(sorted))
	for i, e := range sorted {
		lines[i] = e.String()
	}
	return strings.Join(lines, "\n")
}

// model returns the cart's rules. To keep the search small, it uses that each version of a
// cart is unique, and that nobody sees a version after the last read's.
func (h *history) model() porcupine.Model {
	shown := map[int64]cartState{}
	for _, e := range h.events {
		if e.showsACart {
			shown[e.shows.version] = e.shows
		}
	}
	last := int64(-1)
	if n := len(h.events); n > 0 {
		last = h.events[n-1].shows.version
	}
	return porcupine.Model{
		Init: func() any { return cartState{} },
		Step: func(state, input, _ any) (bool, any) {
			next, ok := input.(cartEvent).step(state.(cartState), shown, last)
			return ok, next
		},
		Equal: func(a, b any) bool { return a.(cartState).equal(b.(cartState)) },
		Hash:  func(state any) uint64 { return uint64(state.(cartState).version) },
	}
}

// step returns the cart after an event, and whether the event could happen to this cart as
// it was seen.
func (e cartEvent) step(before cartState, shown map[int64]cartState, last int64) (cartState, bool) {
	if e.knows == observed {
		return before, e.shows.equal(before)
	}
	if e.knows == answered && e.showsACart && e.shows.version-before.version > 1 { // decides most cases quickly
		return before, false
	}
	after, refusal := e.call.apply(before)
	if known, ok := shown[after.version]; ok && !known.equal(after) {
		return before, false
	}
	switch e.knows {
	case made:
		return after, refusal == ""
	case open:
		// An event without effect is as good at the end, where nothing is seen any more.
		if before.version >= last {
			return before, true
		}
		return after, after.version > before.version
	}
	return after, refusal == e.refusal && (!e.showsACart || e.shows.equal(after))
}
