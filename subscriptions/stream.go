package subscriptions

import (
	"context"
	"iter"
	"sync"
	"time"

	"commerce/auth/locale"
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

	// Check, if not nil, is called before each page is read. Its error ends the stream.
	Check func() error

	Now func() time.Time // default time.Now
}

// Page is a part of a stream.
type Page struct {
	Lines   []byte // valid until the next page
	Changes int
	Next    Cursor // after the changes of this and all earlier pages
}

// Pages yields all changes until there are no more. Every page ends with its cursor, also
// the only page of a stream without changes. Pages reads the next page while the caller uses
// one, and holds no connection and no transaction while it waits for the caller. It stops at
// the first error.
//
// It uses w, and the language of w.
func (s Stream) Pages(ctx context.Context, w *wire.Writer) iter.Seq2[Page, error] {
	if s.Now == nil {
		s.Now = time.Now
	}
	return func(yield func(Page, error) bool) {
		var lines lines = &ndjson{w}
		if s.Format == CSV {
			lines = &csvLines{begun: s.Continues}
		}
		for c, err := range s.changes(ctx, w.Language) {
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
		}
	}
}

// changes yields what the pages show. It reads one page ahead.
func (s Stream) changes(ctx context.Context, l locale.Locale) iter.Seq2[Changes, error] {
	return func(yield func(Changes, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var reading sync.WaitGroup
		defer reading.Wait()
		defer cancel()
		type result struct {
			Changes
			err error
		}
		ahead := make(chan result, 1)
		read := func(after Cursor) {
			reading.Go(func() {
				c, err := s.read(ctx, ChangesQuery{After: after, Limit: maxChanges, Language: l})
				ahead <- result{c, err}
			})
		}
		read(s.After)
		for more := true; more; {
			r := <-ahead
			if more = r.err == nil && r.More; more {
				read(r.Next)
			}
			if !yield(r.Changes, r.err) {
				return
			}
		}
	}
}

func (s Stream) read(ctx context.Context, q ChangesQuery) (Changes, error) {
	if s.Check != nil {
		if err := s.Check(); err != nil {
			return Changes{}, err
		}
	}
	return s.Source.Changes(ctx, s.Store.ID, q)
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
		lines.changed(&view, &c.Changed[i], digits[i])
	}
	lines.next(c.Next.Text(s.Store.ID))
	return nil
}

// lines writes the lines of a page.
type lines interface {
	reset() // begins a page
	deleted(v *view, d Deletion)
	changed(v *view, s *Subscription, digits int) // digits: decimals of its currency
	next(cursor string)
	bytes() []byte
}
