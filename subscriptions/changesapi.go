package subscriptions

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"commerce/cart/wire"
)

// changesRequest is a request for changes.
type changesRequest struct {
	store  int64
	after  Cursor
	limit  int
	format Format
}

var (
	pageParameters = []parameter[changesRequest]{
		{"after", (*changesRequest).readAfter, textCursor},
		{"limit", (*changesRequest).readLimit, textLimit},
	}
	streamParameters = []parameter[changesRequest]{
		{"after", (*changesRequest).readAfter, textCursor},
		{"limit", func(*changesRequest, string) bool { return false }, textLimitOfStream},
	}
)

// parseChanges reads a raw query and an Accept header. Its problem.Error names every
// parameter at fault.
func parseChanges(query, accept string, store int64) (changesRequest, error) {
	r := changesRequest{store: store, limit: defaultChanges, format: preferred(accept)}
	accepted := pageParameters
	if r.format != JSON {
		accepted = streamParameters
	}
	return r, refused(readQuery(query, &r, accepted, textNoValue, textUnknownOfChanges))
}

func (r *changesRequest) readAfter(s string) (ok bool) {
	r.after, ok = ParseCursor(s, r.store)
	return ok
}

func (r *changesRequest) readLimit(s string) (ok bool) {
	r.limit, ok = wholeNumber(s, maxChanges)
	return ok
}

// changes answers with a page, or with a stream if the client prefers one of its formats.
func (a *API) changes(v *visit) (wire.Answer, error) {
	r, err := parseChanges(v.Request.URL.RawQuery, strings.Join(v.Request.Header.Values("Accept"), ","), v.store.ID)
	if err != nil {
		return wire.Answer{}, err
	}
	if r.format != JSON {
		return a.streamed(v, r)
	}
	c, err := a.source.Changes(v.ctx(), v.store.ID, ChangesQuery{After: r.after, Limit: r.limit, Language: v.language})
	if err != nil {
		return wire.Answer{}, changesFailed(v.store.ID, err)
	}
	storeDigits, digits, err := digitsOf(v.store, c.Changed)
	if err != nil {
		return wire.Answer{}, err
	}
	return wire.Answer{Data: func(w *wire.Writer) {
		view := view{w, storeDigits, a.now()}
		view.changes(&c, digits, v.store.ID)
	}}, nil
}

// streamed answers with a stream of everything after the cursor.
func (a *API) streamed(v *visit, r changesRequest) (wire.Answer, error) {
	store := v.store
	s := Stream{Source: a.source, Store: store, After: r.after, Format: r.format, Now: a.now, Check: func() error { return a.mayContinue(v) }}
	parts := func(ctx context.Context, w *wire.Writer) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			leave, err := a.streams.Enter(ctx, store.ID)
			if err != nil {
				yield(nil, errManyStreams)
				return
			}
			defer leave()
			for page, err := range s.Pages(ctx, w) {
				if err != nil {
					yield(nil, changesFailed(store.ID, err))
					return
				}
				if !yield(page.Lines, nil) {
					return
				}
			}
		}
	}
	return wire.Answer{Stream: &wire.Stream{ContentType: r.format.contentType(), Parts: parts}}, nil
}

// errStopping ends a stream. The client continues at another instance.
var errStopping = unavailable(errors.New("the process is stopping"))

// mayContinue returns why a stream must end: the process stops, or the token was revoked.
func (a *API) mayContinue(v *visit) error {
	if a.stopping() {
		return errStopping
	}
	_, _, err := a.tokens.Identify(v.Request, wire.Client(v.Context))
	return err
}

// changesFailed turns a source's error into the one that the caller gets.
func changesFailed(store int64, err error) error {
	if errors.Is(err, ErrCursorExpired) {
		return errCursorExpired
	}
	return fmt.Errorf("read changes of store %d: %w", store, err)
}
