package live

import (
	"strconv"
	"strings"

	"commerce/cart"
)

// Sighting is a state of a cart that a listener learns of.
type Sighting struct {
	Tag     string // cart.Cart.Tag of the cart as it is now; of an unused cart if Gone
	Version int64
	Gone    bool // the cart was merged, handed over or erased, or has expired: nothing follows
}

// SightingOf returns what a tag says; any other text says that the cart is gone.
func SightingOf(tag string) Sighting {
	_, rest, _ := strings.Cut(tag, ".")
	version, _, _ := strings.Cut(rest, ".")
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return Sighting{Tag: cart.Cart{}.Tag(), Gone: true}
	}
	return Sighting{Tag: tag, Version: n}
}

// of reports whether s is of a cart, by its latest sighting; "" for none yet.
func (s Sighting) of(last Sighting) bool {
	id, _, _ := strings.Cut(s.Tag, ".")
	return last.Tag == "" || strings.HasPrefix(last.Tag, id+".")
}

// View is what the listeners of a cart were told of it. The zero value: nothing yet.
type View struct {
	Last Sighting
	told int // how often Last was set
}

// Tell notes a state of the cart, and returns what listeners get. Another cart under the same key means that theirs is gone.
func (v *View) Tell(s Sighting) Sighting {
	mine := s.of(v.Last)
	v.Last = s
	v.told++
	if !mine {
		return SightingOf("")
	}
	return s
}

// Told counts what was told.
func (v *View) Told() int { return v.told }

// IsNews reports whether listeners must be told the state that a sync has read. told is Told before it was read. It fails if
// another cart was announced meanwhile.
func (v *View) IsNews(now Sighting, told int) (bool, error) {
	if v.told != told && !now.of(v.Last) { // which of the two carts is the newer one?
		return false, errUnclear
	}
	return v.told == told && v.Last != now || v.Last.Version < now.Version, nil
}
