package subscriptions

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"commerce/auth/store"
	"commerce/cart/wire"
)

// Stream sends all changes of a store.
type Stream struct {
	Source Source
	Store  *store.Store
	After  Cursor
	Format Format // NDJSON or CSV

	// Continues leaves out the header of CSV, because the stream is appended to another one.
	Continues bool

	// Stopping, if not nil, ends the stream with an error after the current page when it
	// returns true.
	Stopping func() bool

	Now func() time.Time // default time.Now
}

// Page is a part of a stream.
type Page struct {
	Lines   []byte // valid until the next page
	Changes int
	Next    Cursor // after the changes of this and all earlier pages
}

// errStopping ends a stream. The client continues at another instance.
var errStopping = unavailable(errors.New("the process is stopping"))

// Pages yields all changes until there are no more. Every page ends with its cursor, also
// the only page of a stream without changes. Pages reads a page after the caller has used
// the previous one, and holds no connection and no transaction in between. It ends after an
// error.
//
// It uses w, and the language of w.
func (s Stream) Pages(ctx context.Context, w *wire.Writer) iter.Seq2[Page, error] {
	if s.Now == nil {
		s.Now = time.Now
	}
	return func(yield func(Page, error) bool) {
		var lines lines = &ndjson{w}
		if s.Format == CSV {
			lines = newCSV(w, s.Continues)
		}
		q := ChangesQuery{After: s.After, Limit: maxChanges, Language: w.Language}
		for more := true; more; {
			if s.Stopping != nil && s.Stopping() {
				yield(Page{}, errStopping)
				return
			}
			c, err := s.Source.Changes(ctx, s.Store.ID, q)
			if err == nil {
				err = s.write(lines, w, &c)
			}
			if err != nil {
				yield(Page{}, err)
				return
			}
			if !yield(Page{lines.bytes(), len(c.Changed) + len(c.Deleted), c.Next}, nil) {
				return
			}
			q.After, more = c.Next, c.More
		}
	}
}

// write replaces what lines holds by the changes of a page.
func (s Stream) write(lines lines, w *wire.Writer, c *Changes) error {
	storeDigits, digits, err := digitsOf(s.Store, c.Changed)
	if err != nil {
		return err
	}
	view := view{w, storeDigits, s.Now()}
	lines.reset()
	for _, d := range c.Deleted {
		lines.deleted(&view, d)
	}
	for i := range c.Changed {
		if err := lines.changed(&view, &c.Changed[i], digits[i]); err != nil {
			return fmt.Errorf("write subscription %d of store %d: %w", c.Changed[i].ID, s.Store.ID, err)
		}
	}
	lines.next(c.Next.Text(s.Store.ID))
	return nil
}

// lines writes the lines of a page.
type lines interface {
	reset() // begins a page
	deleted(v *view, d Deletion)
	changed(v *view, s *Subscription, digits int) error // digits: decimals of its currency
	next(cursor string)
	bytes() []byte
}
