package cart

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Stamps identify the published client's own retry of a change. A retry repeats method, path, body and X-Timestamp,
// 1 s or more after the first try. A second click carries another X-Timestamp, or comes within that second.
//
// They are packed, since every read carries them, into four members, since a hash with a value of more than 64 bytes
// takes three times the memory, and a change should write only one of them.
type Stamps struct {
	// Parts are filled in turn, the first again after the last, with five entries each: the stamp, 6 characters, and
	// when its change was applied, in ms, 6 bytes. The newest StampsKept count.
	Parts [stampParts]string

	Lines map[string]LineID // the line that the change of a stamp has changed, if its request does not name it
}

const (
	stampParts = 4
	stampEntry = StampSize + 6
	stampFull  = 5 * stampEntry
)

// How long, and how many, stamps a cart remembers of the changes applied to it.
const (
	StampFrom  = time.Second // the age from which a repeat is a retry, not a second click
	StampLife  = 5 * time.Minute
	StampsKept = 16 // the newest
	StampSize  = 6  // characters: 36 bits of a digest are enough to tell the stamps of one cart apart
)

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

// Of returns the latest change with a stamp. ok is false if none counts.
func (s Stamps) Of(stamp string) (use StampUse, ok bool) {
	for entries := s.entries(); len(entries) >= stampEntry; entries = entries[stampEntry:] {
		if entries[:StampSize] == stamp {
			use, ok = StampUse{At: stampedAt(entries), Line: s.Lines[stamp]}, true
		}
	}
	return use, ok
}

// All returns the stamps that count.
func (s Stamps) All() map[string]StampUse {
	all := map[string]StampUse{}
	for entries := s.entries(); len(entries) >= stampEntry; entries = entries[stampEntry:] {
		all[entries[:StampSize]] = StampUse{At: stampedAt(entries), Line: s.Lines[entries[:StampSize]]}
	}
	return all
}

func stampedAt(entry string) time.Time {
	var ms int64
	for _, b := range []byte(entry[StampSize:stampEntry]) {
		ms = ms<<8 | int64(b)
	}
	return time.UnixMilli(ms)
}

// entries are those that count, the oldest first.
func (s Stamps) entries() string {
	last := s.last()
	all := strings.Join(s.Parts[last:], "") + strings.Join(s.Parts[:last], "")
	return all[max(0, len(all)-StampsKept*stampEntry):]
}

// last returns the place of the part that was written last, from 1; 0 for none. That is the one which is not full, or
// else the one whose last entry has the latest time, of which the first part follows the last one.
func (s Stamps) last() int {
	last, latest, first := 0, "", ""
	for i, part := range s.Parts {
		switch {
		case part == "":
			continue
		case len(part) < stampFull:
			return i + 1
		}
		written := part[len(part)-stampEntry+StampSize:]
		if written >= latest {
			last, latest = i+1, written
		}
		if i == 0 {
			first = written
		}
	}
	if first != "" && first == latest && last == stampParts {
		return 1
	}
	return last
}

// With returns the stamps with one of a change that is applied now, and the line that it changed; "" for none. Of two
// clicks within a second the first counts: a retry of either comes a second or more after it.
func (s Stamps) With(stamp string, line LineID, now time.Time) Stamps {
	if earlier, ok := s.Of(stamp); ok && now.Sub(earlier.At) <= StampLife {
		return s
	}
	ms := now.UnixMilli()
	if entries := s.entries(); entries != "" { // their order is that of their times
		ms = max(ms, stampedAt(entries[len(entries)-stampEntry:]).UnixMilli())
	}
	at := s.last() - 1
	if at < 0 || len(s.Parts[at]) >= stampFull {
		at = (at + 1) % stampParts
		s.Parts[at] = ""
	}
	s.Parts[at] += packStamp(stamp, ms)
	if line == "" && len(s.Lines) == 0 {
		return s
	}
	s.Lines = maps.Clone(s.Lines)
	if s.Lines == nil {
		s.Lines = map[string]LineID{}
	}
	delete(s.Lines, stamp)
	if line != "" {
		s.Lines[stamp] = line
	}
	entries := s.entries()
	maps.DeleteFunc(s.Lines, func(stamp string, _ LineID) bool { return !containsStamp(entries, stamp) })
	return s
}

// Join returns the newest stamps of a cart and of another one that is merged into it, whose times are by a clock that is behind.
// Of two uses of a stamp that count, the first one does.
func (s Stamps) Join(others Stamps, behind time.Duration, now time.Time) Stamps {
	all, lines := listed(s.entries()), maps.Clone(s.Lines)
	if lines == nil {
		lines = map[string]LineID{}
	}
	joined := false
	for _, other := range listed(others.entries()) {
		if other.at = other.at.Add(behind); other.at.After(now) {
			other.at = now
		}
		own := slices.IndexFunc(all, func(e stamped) bool { return e.stamp == other.stamp })
		counts := own >= 0 && now.Sub(all[own].at) <= StampLife
		if now.Sub(other.at) > StampLife || counts && !other.at.Before(all[own].at) {
			continue
		}
		if own >= 0 {
			all = slices.Delete(all, own, own+1)
		}
		all, joined = append(all, other), true
		delete(lines, other.stamp)
		if line := others.Lines[other.stamp]; line != "" {
			lines[other.stamp] = line
		}
	}
	if !joined {
		return s
	}
	slices.SortStableFunc(all, func(a, b stamped) int { return a.at.Compare(b.at) })
	return packed(all[max(0, len(all)-StampsKept):], lines)
}

type stamped struct {
	stamp string
	at    time.Time
}

// listed are the last entries of each stamp, the oldest first.
func listed(entries string) (all []stamped) {
	for ; len(entries) >= stampEntry; entries = entries[stampEntry:] {
		e := stamped{entries[:StampSize], stampedAt(entries)}
		all = append(slices.DeleteFunc(all, func(o stamped) bool { return o.stamp == e.stamp }), e)
	}
	return all
}

// packed is the inverse of listed, with the lines of those that are left.
func packed(all []stamped, lines map[string]LineID) (s Stamps) {
	for i, e := range all {
		s.Parts[i*stampEntry/stampFull] += packStamp(e.stamp, e.at.UnixMilli())
		if line := lines[e.stamp]; line != "" {
			if s.Lines == nil {
				s.Lines = map[string]LineID{}
			}
			s.Lines[e.stamp] = line
		}
	}
	return s
}

func packStamp(stamp string, ms int64) string {
	return stamp + string([]byte{byte(ms >> 40), byte(ms >> 32), byte(ms >> 24), byte(ms >> 16), byte(ms >> 8), byte(ms)})
}

func containsStamp(entries, stamp string) bool {
	for ; len(entries) >= stampEntry; entries = entries[stampEntry:] {
		if entries[:StampSize] == stamp {
			return true
		}
	}
	return false
}
