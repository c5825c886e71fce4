package subscriptions

import (
	"errors"
	"math"
	"testing"

	"commerce/auth/problem"

	"pgregory.net/rapid"
)

func drawCursor(t *rapid.T) Cursor {
	return Cursor{
		database:    database{rapid.Int64().Draw(t, "system"), rapid.Uint32().Draw(t, "oid")},
		timeline:    rapid.Int64().Draw(t, "timeline"),
		log:         rapid.Uint64().Draw(t, "log"),
		since:       rapid.Uint64().Draw(t, "since"),
		transaction: rapid.Uint64().Draw(t, "transaction"),
		id:          rapid.Int64Range(0, math.MaxInt64).Draw(t, "id"),
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

func FuzzParseChanges(f *testing.F) {
	f.Add("", "", int64(1))
	f.Add("after="+seen().Text(1)+"&limit=7", "text/html, text/csv;q=0.3", int64(1))
	f.Add("after="+(Cursor{}).Text(2), "application/x-ndjson", int64(2))
	f.Add("limit=0&limit=1&%zz", ";q=", int64(-1))
	f.Fuzz(func(t *testing.T, query, accept string, store int64) {
		r, err := parseChanges(query, accept, store)
		var refused *problem.Error
		switch {
		case errors.As(err, &refused):
			if refused.Code != problem.InvalidParameter || len(refused.Members("en")) == 0 {
				t.Errorf("%q: %v", query, err)
			}
		case err != nil:
			t.Errorf("%q: %v", query, err)
		case r.limit < 1 || r.limit > maxChanges:
			t.Errorf("%q: limit %d", query, r.limit)
		default:
			if again, ok := ParseCursor(r.after.Text(store), store); !ok || again != r.after {
				t.Errorf("%q: %+v", query, r.after)
			}
		}
	})
}
