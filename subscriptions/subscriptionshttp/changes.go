package subscriptionshttp

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"mime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"commerce/auth/problem"
	"commerce/cart/wire"
	"commerce/subscriptions"
)

type changesRequest struct {
	after  subscriptions.Cursor
	limit  int
	wait   int // seconds; 0: not at all
	format format
	plain  bool // only rows
}

// parseChanges reads a raw query and an Accept header. Its problem.Error names every
// parameter at fault.
func parseChanges(query, accept string, store int64) (r changesRequest, err error) {
	r = changesRequest{limit: subscriptions.DefaultChanges, format: preferred(accept, asJSON, asNDJSON, asCSV)}
	parse := func(s string) (subscriptions.Cursor, bool) { return subscriptions.ParseCursor(s, store) }
	after := parameter[changesRequest]{"after", into(func(r *changesRequest) *subscriptions.Cursor { return &r.after }, parse), textCursor.With()}
	limit := number("limit", func(r *changesRequest) *int { return &r.limit }, subscriptions.MaxChanges)
	wait := number("wait", func(r *changesRequest) *int { return &r.wait }, maxWait)
	one := func(s string) (is, ok bool) { return true, s == "1" && r.format == asCSV }
	plain := parameter[changesRequest]{"plain", into(func(r *changesRequest) *bool { return &r.plain }, one), textPlain.With()}
	if r.format != asJSON {
		never := func(*changesRequest, string) bool { return false }
		limit.read, limit.invalid = never, textLimitOfStream.With()
		wait.read, wait.invalid = never, textWaitOfStream.With()
	}
	faults := readQuery(query, &r, []parameter[changesRequest]{after, limit, wait, plain}, textNoValue, textUnknownOfChanges)
	if r.wait > 0 && r.after == (subscriptions.Cursor{}) && !slices.ContainsFunc(faults, func(f problem.Fault) bool { return f.Member == "after" }) {
		faults = append(faults, fault("wait", textWaitAlone))
	}
	return r, refused(faults)
}

// format is a media type of an answer.
type format string

const (
	asJSON   format = "application/json" // one page
	asNDJSON format = "application/x-ndjson"
	asCSV    format = "text/csv"
)

// contentType is the value of the header for a stream.
func (f format) contentType() string {
	if f == asCSV {
		return string(f) + "; charset=utf-8; header=present"
	}
	return string(f)
}

// preferred returns the format that an Accept header prefers: of those on offer the one with the highest
// quality, the first of several, JSON if it names none. A wildcard names none, because most
// programs send one by default.
func preferred(accept string, offered ...format) format {
	best, quality := asJSON, 0.0
	for item := range strings.SplitSeq(accept, ",") {
		name, params, err := mime.ParseMediaType(item)
		f := format(name)
		if err != nil || !slices.Contains(offered, f) {
			continue
		}
		q := 1.0
		if given, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(given, 64); err != nil {
				continue
			}
		}
		if q > quality {
			best, quality = f, q
		}
	}
	return best
}

// changes answers with a page, or with a stream if the client prefers one of its formats.
func (a *API) changes(m *merchant) (wire.Answer, error) {
	r, err := parseChanges(m.Request.URL.RawQuery, m.accept(), m.store.ID)
	if err != nil {
		return wire.Answer{}, err
	}
	if r.format != asJSON {
		return a.streamed(m, r), nil
	}
	c, err := a.readChanges(m.Request.Context(), m, r.after, r.limit)
	if err != nil {
		return wire.Answer{}, err
	}
	if r.wait > 0 && c.Next == r.after {
		return wire.Answer{Later: a.waiting(m, r, c)}, nil
	}
	return wire.Answer{Data: a.page(m, &c)}, nil
}

func (a *API) page(m *merchant, c *subscriptions.Changes) func(*wire.Writer) {
	return func(w *wire.Writer) { writeChanges(w, a.view(m, w), c, m.store.ID) }
}

// waiting answers with the changes that come after the cursor, or without any, as empty is.
func (a *API) waiting(m *merchant, r changesRequest, empty subscriptions.Changes) wire.Later {
	return func(pause wire.Pause) (func(*wire.Writer), error) {
		c, until := empty, time.Now().Add(time.Duration(r.wait)*time.Second)
		for waits := true; waits; {
			var err error
			if c, waits, err = a.awaitChanges(m, r, empty, until, pause); err != nil {
				return nil, err
			}
		}
		return a.page(m, &c), nil
	}
}

// awaitChanges waits for news and reads them. A read without them, as of a replica that is late, must
// be repeated.
func (a *API) awaitChanges(
	m *merchant, r changesRequest, empty subscriptions.Changes, until time.Time, pause wire.Pause,
) (c subscriptions.Changes, again bool, err error) {
	news, leave := false, func() {}
	err = pause(func(ctx context.Context) bool {
		waiting, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		if news = a.waiter.Wait(waiting, m.store.ID, r.after.Change); news {
			leave = a.waiter.takeTurn(ctx)
		}
		return news
	})
	defer leave()
	if err == nil {
		err = a.mayContinue(m)
	}
	if err != nil || !news {
		return empty, false, err
	}
	c, err = a.readChanges(m.Request.Context(), m, r.after, r.limit)
	return c, c.Next == r.after, err
}

// readChanges reads changes that can be shown.
func (a *API) readChanges(ctx context.Context, m *merchant, after subscriptions.Cursor, limit int) (subscriptions.Changes, error) {
	c, err := a.Source.Changes(ctx, m.store.ID, subscriptions.ChangesQuery{After: after, Limit: limit, Language: m.language})
	if err != nil {
		return c, fmt.Errorf("read changes of store %d: %w", m.store.ID, err)
	}
	return c, checkCurrencies(m.store, c.Changed)
}

// streamed answers with a stream of everything after the cursor.
func (a *API) streamed(m *merchant, r changesRequest) wire.Answer {
	parts := func(ctx context.Context, w *wire.Writer) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			leave, err := a.streams.Enter(ctx, m.store.ID)
			if err != nil {
				yield(nil, errManyStreams)
				return
			}
			defer leave()
			lines := newLines(&r, w)
			for c, err := range a.pagesAfter(ctx, m, r.after) {
				if err != nil {
					yield(nil, err)
					return
				}
				if r.plain {
					c.Deleted = nil
				}
				if !yield(writeLines(lines, &view{lines, w, m.store, a.Now()}, &c, m.store.ID), nil) {
					return
				}
			}
		}
	}
	return wire.Answer{Stream: &wire.Stream{ContentType: r.format.contentType(), Parts: parts}}
}

// pagesAfter yields pages of changes until there are no more, or until an error. It reads the next
// page while the caller uses one, and holds no connection and no transaction while it waits for
// the caller.
func (a *API) pagesAfter(ctx context.Context, m *merchant, after subscriptions.Cursor) iter.Seq2[subscriptions.Changes, error] {
	type result struct {
		subscriptions.Changes
		err error
	}
	return func(yield func(subscriptions.Changes, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var reading sync.WaitGroup
		defer reading.Wait()
		defer cancel()
		ahead := make(chan result, 1)
		read := func(after subscriptions.Cursor) {
			reading.Go(func() {
				r := result{err: a.mayContinue(m)}
				if r.err == nil {
					r.Changes, r.err = a.readChanges(ctx, m, after, subscriptions.MaxChanges)
				}
				ahead <- r
			})
		}
		read(after)
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

// errStopping ends a stream. The client continues at another instance.
var errStopping = subscriptions.Unavailable(errors.New("the process is stopping"))

// mayContinue returns why a stream, or a call that waited, must end: the process stops, or the token was revoked.
func (a *API) mayContinue(m *merchant) error {
	if a.Stopping != nil && a.Stopping() {
		return errStopping
	}
	_, _, err := a.Tokens.Identify(m.Request, wire.Client(m.Context))
	return err
}
