package subscriptions

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/problem"
)

var here = database{system: 7, oid: 5}

// primary returns the history of a primary on its first timeline.
func primary() history {
	return history{
		database: here, ended: 200, log: 1000,
		latest: timeline{number: 1, mark: 11}, ours: true, current: 1,
		cursorTimeline: 1,
	}
}

// seen is the cursor of a reader that has seen all changes up to transaction 100, at
// position 900 of the log.
func seen() Cursor {
	return Cursor{database: here, timeline: 11, log: 900, since: 50, transaction: 100, id: 3}
}

func TestHistory_AcceptsCursorsOfReadersThatMissNothing(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(h *history, c *Cursor){
		"on the same timeline":              func(*history, *Cursor) {},
		"from the beginning":                func(_ *history, c *Cursor) { *c = Cursor{} },
		"at the end of the log":             func(h *history, _ *Cursor) { h.log = 900 },
		"before anything was recorded":      func(h *history, c *Cursor) { h.latest, h.current, c.timeline, c.transaction = timeline{}, 0, 0, 0 },
		"of an empty store, recorded since": func(h *history, c *Cursor) { c.timeline, c.transaction, h.cursorTimeline = 0, 0, 0 },
		"pruned before the cursor":          func(h *history, _ *Cursor) { h.pruned = change{100, 2} },
		"pruned up to the cursor":           func(h *history, _ *Cursor) { h.pruned = change{100, 3} },
		"pruned before the reader started":  func(h *history, c *Cursor) { c.since, h.pruned = 120, change{119, 9} },
		"at a fork":                         func(h *history, _ *Cursor) { promote(h, 2); h.laterFork = 900 },
		"before several forks":              func(h *history, _ *Cursor) { promote(h, 3); h.laterFork = 950 },
		"on a replica that has all":         func(h *history, _ *Cursor) { h.replica, h.current, h.replayed = true, 0, 900 },
		"on a replica of another timeline":  func(h *history, _ *Cursor) { promote(h, 2); h.replica, h.replayed, h.laterFork = true, 1000, 900 },
	} {
		h, c := primary(), seen()
		edit(&h, &c)
		if err := h.check(c); err != nil || h.ahead(c) {
			t.Errorf("%s: %v, ahead %v", name, err, h.ahead(c))
		}
	}
}

// promote makes h the history after promotions to a timeline.
func promote(h *history, number int64) {
	h.latest, h.current, h.later = timeline{number: number, mark: 10*number + 1}, number, number-1
}

func TestHistory_RefusesCursorsOfReadersThatCouldMissSomething(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(h *history, c *Cursor){
		"of another server":                       func(_ *history, c *Cursor) { c.database.system++ },
		"of another database":                     func(_ *history, c *Cursor) { c.database.oid++ },
		"of an unknown timeline":                  func(h *history, _ *Cursor) { h.cursorTimeline = 0 },
		"of a copy that has recorded nothing":     func(h *history, _ *Cursor) { h.latest, h.current, h.cursorTimeline = timeline{}, 0, 0 },
		"read before anything was recorded":       func(_ *history, c *Cursor) { c.timeline = 0 },
		"ahead of the log":                        func(h *history, _ *Cursor) { h.log = 899 },
		"beyond a fork":                           func(h *history, _ *Cursor) { promote(h, 2); h.laterFork = 899 },
		"with an unknown fork":                    func(h *history, _ *Cursor) { promote(h, 2) },
		"with a timeline between that is unknown": func(h *history, _ *Cursor) { promote(h, 3); h.later, h.laterFork = 1, 950 },
		"pruned after the cursor":                 func(h *history, _ *Cursor) { h.pruned = change{100, 4} },
		"pruned long after the cursor":            func(h *history, _ *Cursor) { h.pruned = change{101, 1} },
		"pruned since the reader started":         func(h *history, c *Cursor) { c.since, h.pruned = 120, change{120, 1} },
	} {
		h, c := primary(), seen()
		edit(&h, &c)
		if err := h.check(c); !errors.Is(err, ErrCursorExpired) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHistory_IsUnavailableInACopyAndOnATimelineThatIsNotRecorded(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(h *history){
		"a copy that was not stamped again": func(h *history) { h.ours = false },
		"promoted, and not recorded yet":    func(h *history) { h.current = 2 },
	} {
		h := primary()
		edit(&h)
		for _, c := range []Cursor{{}, seen()} {
			var refused *problem.Error
			if err := h.check(c); !errors.As(err, &refused) || refused.Code != problem.Unavailable {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestHistory_LetsAReaderWaitForAReplicaThatIsBehind(t *testing.T) {
	t.Parallel()
	h := primary()
	h.replica, h.replayed, h.cursorTimeline, h.latest = true, 899, 0, timeline{} // the timeline is not there yet either
	found := Changes{Changed: make([]Subscription, 1), More: true}
	got, err := h.result(seen(), found, change{90, 1})
	if diff := cmp.Diff(Changes{Next: seen()}, got, cmp.AllowUnexported(Cursor{}, database{})); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestHistory_NextCursor(t *testing.T) {
	t.Parallel()
	started := Cursor{database: here, timeline: 11, since: 200}
	last := change{150, 8}
	for _, tc := range []struct {
		name  string
		edit  func(h *history)
		after Cursor
		last  change
		want  Cursor
	}{
		{"without a change", nil, seen(), change{}, seen()},
		{"of a start without changes", nil, Cursor{}, change{}, started},
		{"of a start with changes", nil, Cursor{}, last, Cursor{here, 11, 1000, 200, 150, 8}},
		{"after changes", nil, seen(), last, Cursor{here, 11, 1000, 50, 150, 8}},
		{
			"after changes, on a later timeline", func(h *history) { promote(h, 2); h.laterFork = 950 }, seen(), last,
			Cursor{here, 21, 1000, 50, 150, 8},
		},
	} {
		h := primary()
		if tc.edit != nil {
			tc.edit(&h)
		}
		got, err := h.result(tc.after, Changes{}, tc.last)
		if got.Next != tc.want || err != nil {
			t.Errorf("%s: %+v, %v, want %+v", tc.name, got.Next, err, tc.want)
		}
	}
}
