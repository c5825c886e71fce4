package transfer

import (
	"maps"
	"slices"
	"strings"
	"time"

	"commerce/cart"
)

// Owner is the slot of a cart that gets another one, as far as transfers depend on it.
type Owner struct {
	cart.Cell
	Keys   map[string]cart.KeyUse // of the changes applied to the cart
	Offers Offers                 // what the guest's cart has offered so far
	Came   map[string]CameIn      // what merges of the last UndoLife have brought, by their IDs
}

// Arrival is a claimed cart that arrives.
type Arrival struct {
	Aside
	Guest  string        // the digest of the token
	Behind time.Duration // by how much the clock of the guest's Redis is behind that of the owner's
	MergeRules
	NewID    string // of a cart that begins here
	Mark     string // of the version that this makes
	Undoable bool   // whether the merge can be undone
}

// HandoverNote is the prefix of the name of a hand-over's note. The names of other notes never have it.
const HandoverNote = "mh"

// mergeID is the ID that the merge under a note has in its report.
func mergeID(note string) string { return strings.TrimPrefix(note, "m") }

// Apply returns the owner's slot with the lines of the guest's cart, and with what recognizes retries of its changes. A repeat
// adds nothing. The report is of what this call has merged; nil for nothing.
func (a *Arrival) Apply(to Owner, now time.Time) (Owner, *cart.MergeReport) {
	handedOver := strings.HasPrefix(a.Note, HandoverNote)
	merged := Merge(to.Cart, a.Cart, a.MergeRules, to.Offers)
	to.Offers = merged.Offers
	if handedOver && to.Offers.Note == "" {
		to.Offers.Note = a.Note
	}
	to.Pending = a.applied(to.Pending, now)
	to.Removed = to.Removed.With(a.Removed.Later(a.Behind))
	to.Stamps = to.Stamps.Join(a.Stamps, a.Behind, now)
	to.Keys = joinKeys(to.Keys, a.Keys, a.Behind, now)
	if merged.Report == nil {
		return to, nil
	}
	if merged.ID == "" {
		merged.ID = a.NewID
		if handedOver {
			to.Agent = "0.0" // an agent that the shopper keeps follows to this cart only
		}
	}
	merged.Mark = a.Mark
	to.Cart, to.Report = merged.Cart, merged.Report
	to.Report.ID, to.Report.At = mergeID(a.Note), now
	if a.Undoable {
		merged.Came.At = now
		to.Came = bring(to.Came, to.Report.ID, merged.Came)
	}
	return to, to.Report
}

// applied returns the notes with those of the guest's cart marked: their room is no longer reserved, and changes need not wait for
// them. A note that another try has deleted is written again: until the lines are confirmed, it prevents a claim of the cart that
// has them.
func (a *Arrival) applied(notes cart.Notes, now time.Time) cart.Notes {
	notes = slices.Clone(notes)
	own := slices.ContainsFunc(notes, func(n cart.Note) bool { return n.Name == a.Note })
	if !own {
		notes = append(notes, cart.Note{Name: a.Note, Guest: a.Guest, At: now, Reservation: cart.Reservation{CartID: ShortID(a.ID)}})
	}
	for i := range notes {
		if n := &notes[i]; n.CartID == ShortID(a.ID) {
			n.Lines, n.Text, n.Applied = 0, 0, true
		}
	}
	return notes
}

// joinKeys adds the guest's keys. If both carts have a key, the later use counts. Only the newest cart.KeysKept are kept.
func joinKeys(own, guests map[string]cart.KeyUse, behind time.Duration, now time.Time) map[string]cart.KeyUse {
	all := maps.Clone(own)
	for key, use := range guests {
		if use.At = use.At.Add(behind); use.At.After(now) {
			use.At = now
		}
		if now.Sub(use.At) < cart.KeyLife && use.At.After(all[key].At) {
			if all == nil {
				all = map[string]cart.KeyUse{}
			}
			all[key] = use
		}
	}
	if len(all) <= cart.KeysKept {
		return all
	}
	byAge := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return all[a].At.Compare(all[b].At) })
	for _, key := range byAge[:len(all)-cart.KeysKept] {
		delete(all, key)
	}
	return all
}

// bring adds what a merge has brought, and drops what can no longer be undone. If the merge has brought something before, as a
// redemption does whose claim a failover has lost, one undo takes out both. What it brings after its undo stays.
func bring(before map[string]CameIn, id string, more CameIn) map[string]CameIn {
	all := map[string]CameIn{}
	for other, came := range before {
		if !came.At.Before(more.At) { // the times are those of the order
			more.At = came.At.Add(time.Millisecond)
		}
		if came.counts(more.At) {
			all[other] = came
		}
	}
	first, again := all[id]
	switch {
	case again && first.UndoneAs != "":
		return all
	case again:
		for other, between := range all {
			if other != id && between.UndoneAs == "" && between.At.After(first.At) {
				first, all[other] = first.Above(between), between.Below(first.brought())
			}
		}
		more = first.Again(more)
	}
	all[id] = more
	return all
}
