package subscriptions

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func drawCursor(t *rapid.T) Cursor {
	return Cursor{
		Database: Database{rapid.Int64().Draw(t, "system"), rapid.Uint32().Draw(t, "oid")},
		Timeline: rapid.Int64().Draw(t, "timeline"),
		Log:      rapid.Uint64().Draw(t, "log"),
		Since:    rapid.Uint64().Draw(t, "since"),
		Change:   Change{rapid.Uint64().Draw(t, "transaction"), rapid.Int64Range(0, math.MaxInt64).Draw(t, "id")},
	}
}

func TestCursor_ReadsItsText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want, store := drawCursor(t), rapid.Int64().Draw(t, "store")
		text := want.Text(store)
		got, ok := ParseCursor(text, store)
		if !ok || got != want || len(text) > maxCursor {
			t.Errorf("%s: %+v, %v, want %+v", text, got, ok, want)
		}
		if _, ok := ParseCursor(text, store+1); ok {
			t.Errorf("%s: accepted for another store", text)
		}
	})
}

func TestCursor_RefusesEveryChangeOfACharacter(t *testing.T) {
	t.Parallel()
	text := seen().Text(1)
	for i := range text {
		for _, other := range "AQgw_-=.0 é" {
			changed := text[:i] + string(other) + text[i+1:]
			if _, ok := ParseCursor(changed, 1); ok && changed != text {
				t.Errorf("%s: accepted instead of %s", changed, text)
			}
		}
		if _, ok := ParseCursor(text[:i], 1); ok {
			t.Errorf("%s: accepted, cut after %d characters", text[:i], i)
		}
	}
	for _, longer := range []string{text + "A", text + "=", " " + text, text + text} {
		if _, ok := ParseCursor(longer, 1); ok {
			t.Errorf("%s: accepted", longer)
		}
	}
}
