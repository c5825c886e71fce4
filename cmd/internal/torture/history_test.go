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

// knowledge is what a client knows about an event.
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

// model returns the cart's rules.
func (h *history) model() porcupine.Model {
	k := h.known()
	return porcupine.Model{
		Init: func() any { return searched{} },
		Step: func(state, input, _ any) (bool, any) {
			next, ok := k.step(state.(searched), input.(cartEvent))
			return ok, next
		},
		Equal: func(a, b any) bool { return a.(searched).equal(b.(searched)) },
		Hash:  func(state any) uint64 { return uint64(state.(searched).version) },
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

// searched is a state of the search.
type searched struct {
	cartState
	looks int // events so far that see this version and change nothing
}

func (s searched) equal(other searched) bool {
	return s.looks == other.looks && s.cartState.equal(other.cartState)
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

// step returns the cart after an event, and whether the event could have happened to this cart
// with its response.
func (k known) step(before searched, e cartEvent) (after searched, ok bool) {
	if e.showsACart && e.onlyLooks() {
		if e.look != before.looks || !e.shows.equal(before.cartState) {
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
	case refusal != e.refusal, e.showsACart && !e.shows.equal(next):
		return before, false
	case next.version == before.version: // an open event without effect can be the last one as well
		return before, e.knows != open
	case before.looks < k.looks[before.version], e.knows != answered && k.added[next.version]:
		return before, false
	}
	shown, seen := k.shown[next.version]
	return searched{cartState: next}, !seen || shown.equal(next)
}
