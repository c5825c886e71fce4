package recorded

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"commerce/auth/problem"
	"commerce/deploy/assert"
)

var here = Database{System: 7, OID: 5}

// primary returns the history of a primary on its first timeline.
func primary() Lineage {
	return Lineage{
		Database: here, Ended: 200, Log: 1000,
		Latest: Timeline{Number: 1, Mark: 11}, Ours: true, Current: 1,
		CursorTimeline: 1,
	}
}

// seen is the cursor of a reader that has seen all changes up to transaction 100, at
// position 900 of the log.
func seen() Cursor {
	return Cursor{here, 11, 900, 50, Change{100, 3}}
}

func TestLineage_AcceptsCursorsOfReadersThatMissNothing(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(h *Lineage, c *Cursor){
		"on the same timeline":              func(*Lineage, *Cursor) {},
		"from the beginning":                func(_ *Lineage, c *Cursor) { *c = Cursor{} },
		"at the end of the log":             func(h *Lineage, _ *Cursor) { h.Log = 900 },
		"before anything was recorded":      func(h *Lineage, c *Cursor) { h.Latest, h.Current, c.Timeline, c.Transaction = Timeline{}, 0, 0, 0 },
		"of an empty store, recorded since": func(h *Lineage, c *Cursor) { c.Timeline, c.Transaction, h.CursorTimeline = 0, 0, 0 },
		"pruned before the cursor":          func(h *Lineage, _ *Cursor) { h.Pruned, h.PrunedIn = Change{100, 2}, 100 },
		"pruned up to the cursor":           func(h *Lineage, _ *Cursor) { h.Pruned, h.PrunedIn = Change{100, 3}, 100 },
		"pruned before the reader started":  func(h *Lineage, c *Cursor) { c.Since, h.Pruned, h.PrunedIn = 120, Change{119, 9}, 119 },
		"at a fork":                         func(h *Lineage, _ *Cursor) { promote(h, 2); h.LaterFork = 900 },
		"before several forks":              func(h *Lineage, _ *Cursor) { promote(h, 3); h.LaterFork = 950 },
		"on a replica that has all":         func(h *Lineage, _ *Cursor) { h.Replica, h.Current, h.Replayed = true, 0, 900 },
		"on a replica of another timeline":  func(h *Lineage, _ *Cursor) { promote(h, 2); h.Replica, h.Replayed, h.LaterFork = true, 1000, 900 },
	} {
		h, c := primary(), seen()
		edit(&h, &c)
		assert.Succeeds(t, h.check(c), "%s", name)
		assert.That(t, !h.Ahead(c), "%s: ahead", name)
	}
}

// promote makes h the history after promotions to a timeline.
func promote(h *Lineage, number int64) {
	h.Latest, h.Current, h.Later = Timeline{number, 10*number + 1}, number, number-1
}

func TestLineage_RefusesCursorsOfReadersThatCouldMissSomething(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(h *Lineage, c *Cursor){
		"of another server":                       func(_ *Lineage, c *Cursor) { c.Database.System++ },
		"of another database":                     func(_ *Lineage, c *Cursor) { c.Database.OID++ },
		"of an unknown timeline":                  func(h *Lineage, _ *Cursor) { h.CursorTimeline = 0 },
		"of a copy that has recorded nothing":     func(h *Lineage, _ *Cursor) { h.Latest, h.Current, h.CursorTimeline = Timeline{}, 0, 0 },
		"read before anything was recorded":       func(_ *Lineage, c *Cursor) { c.Timeline = 0 },
		"ahead of the log":                        func(h *Lineage, _ *Cursor) { h.Log = 899 },
		"beyond a fork":                           func(h *Lineage, _ *Cursor) { promote(h, 2); h.LaterFork = 899 },
		"with an unknown fork":                    func(h *Lineage, _ *Cursor) { promote(h, 2) },
		"with a timeline between that is unknown": func(h *Lineage, _ *Cursor) { promote(h, 3); h.Later, h.LaterFork = 1, 950 },
		"pruned after the cursor":                 func(h *Lineage, _ *Cursor) { h.Pruned, h.PrunedIn = Change{100, 4}, 100 },
		"pruned long after the cursor":            func(h *Lineage, _ *Cursor) { h.Pruned, h.PrunedIn = Change{101, 1}, 101 },
		"pruned since the reader started":         func(h *Lineage, c *Cursor) { c.Since, h.Pruned, h.PrunedIn = 120, Change{119, 1}, 120 },
	} {
		h, c := primary(), seen()
		edit(&h, &c)
		assert.ErrorIs(t, h.check(c), ErrCursorExpired, "%s", name)
	}
}

func TestLineage_IsUnavailableInACopyAndOnATimelineThatIsNotRecorded(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(h *Lineage){
		"a copy that was not stamped again": func(h *Lineage) { h.Ours = false },
		"promoted, and not recorded yet":    func(h *Lineage) { h.Current = 2 },
	} {
		h := primary()
		edit(&h)
		for _, c := range []Cursor{{}, seen()} {
			var refused *problem.Error
			err := h.check(c)
			assert.That(t, errors.As(err, &refused) && refused.Code == problem.Unavailable, "%s: %v", name, err)
		}
	}
}

func TestLineage_LetsAReaderWaitForAReplicaThatIsBehind(t *testing.T) {
	t.Parallel()
	h := primary()
	h.Replica, h.Replayed, h.CursorTimeline, h.Latest = true, 899, 0, Timeline{} // the timeline is not there yet either
	got, err := h.Next(seen(), Change{90, 1})
	assert.NoError(t, err)
	assert.Equal(t, got, seen(), "next")
}

func TestLineage_NextCursor(t *testing.T) {
	t.Parallel()
	started := Cursor{Database: here, Timeline: 11, Since: 200}
	last := Change{150, 8}
	for _, tc := range []struct {
		name  string
		edit  func(h *Lineage)
		after Cursor
		last  Change
		want  Cursor
	}{
		{"without a change", nil, seen(), Change{}, seen()},
		{"of a start without changes", nil, Cursor{}, Change{}, started},
		{"of a start with changes", nil, Cursor{}, last, Cursor{here, 11, 1000, 200, last}},
		{ // the old timeline lost transactions, so later ones have IDs below Since
			"of a start without changes, on a later timeline", func(h *Lineage) { promote(h, 2); h.LaterFork, h.Ended = 950, 160 }, started, last,
			Cursor{here, 21, 1000, 160, last},
		},
		{"after changes", nil, seen(), last, Cursor{here, 11, 1000, 50, last}},
		{
			"after changes, on a later timeline", func(h *Lineage) { promote(h, 2); h.LaterFork = 950 }, seen(), last,
			Cursor{here, 21, 1000, 50, last},
		},
	} {
		h := primary()
		if tc.edit != nil {
			tc.edit(&h)
		}
		got, err := h.Next(tc.after, tc.last)
		assert.That(t, got == tc.want && err == nil, "%s: %+v, %v, want %+v", tc.name, got, err, tc.want)
	}
}

func drawCursor(t *rapid.T) Cursor {
	return Cursor{
		Database: Database{rapid.Int64().Draw(t, "system"), rapid.Uint32().Draw(t, "oid")},
		Timeline: rapid.Int64().Draw(t, "timeline"),
		Log:      rapid.Uint64().Draw(t, "log"),
		Since:    rapid.Uint64().Draw(t, "since"),
		Change:   Change{rapid.Uint64().Draw(t, "transaction"), rapid.Int64Range(0, math.MaxInt64).Draw(t, "id")},
	}
}

const kind Kind = "changes cursor"

func TestCursor_ReadsItsText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want, store := drawCursor(t), rapid.Int64().Draw(t, "store")
		text := kind.Text(want, store)
		got, ok := kind.Parse(text, store)
		_, others := kind.Parse(text, store+1)
		if !ok || got != want || len(text) > maxCursor || others {
			t.Errorf("%s: %+v, %v, want %+v; accepted for another store: %v", text, got, ok, want, others)
		}
	})
}

func TestCursor_RefusesEveryChangeOfACharacter(t *testing.T) {
	t.Parallel()
	text := kind.Text(seen(), 1)
	for i := range text {
		for _, other := range "AQgw_-=.0 é" {
			changed := text[:i] + string(other) + text[i+1:]
			_, ok := kind.Parse(changed, 1)
			assert.That(t, !ok || changed == text, "%s: accepted instead of %s", changed, text)
		}
		_, ok := kind.Parse(text[:i], 1)
		assert.That(t, !ok, "%s: accepted, cut after %d characters", text[:i], i)
	}
	for _, longer := range []string{text + "A", text + "=", " " + text, text + text} {
		_, ok := kind.Parse(longer, 1)
		assert.That(t, !ok, "%s: accepted", longer)
	}
}
