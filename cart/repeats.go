package cart

import "time"

// How long, and how many, stamps a cart remembers of the changes applied to it.
const (
	StampFrom  = time.Second // the age from which a repeat is a retry, not a second click
	StampLife  = 5 * time.Minute
	StampsKept = 16 // the newest
	StampSize  = 6  // characters: 36 bits of a digest are enough to tell the stamps of one cart apart
)

// KeysKept is how many idempotency keys a cart remembers, the newest, each for KeyLife.
const (
	KeysKept = 256
	KeyLife  = 24 * time.Hour
)

// KeyUse is the change that was applied under an idempotency key.
type KeyUse struct {
	At          time.Time
	Fingerprint string      // of its request
	Line        LineID      // the line that it changed, if its request names another; else ""
	Ops         []OpOutcome // of a list; nil for other changes
}

// OpOutcome is what became of one change of a list.
type OpOutcome struct {
	Line    LineID   // that it changed; "" for none
	Refusal *Refusal // nil if it was not refused
}

type StampUse struct {
	At   time.Time
	Line LineID // as in KeyUse
}

// IsRetry reports whether a change with the same stamp is the client's own retry. Below
// StampFrom it is a second click, which counts. The zero value is no use of the stamp.
func (u StampUse) IsRetry(now time.Time) bool {
	age := now.Sub(u.At)
	return age >= StampFrom && age <= StampLife
}
