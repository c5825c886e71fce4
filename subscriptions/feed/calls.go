package feed

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"commerce/auth/limit"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart/wire"
	"commerce/subscriptions/formats"
	"commerce/subscriptions/recorded"
	"commerce/subscriptions/subscriptionshttp"
)

// maxStreams is how many streams of changes one instance sends at the same time. They share the
// connections with other requests. Each holds two pages of 1,000 changes, which is 2 MB, or 34 MB
// if all subscriptions have the largest metadata.
const maxStreams, maxStreamsOfStore = 8, 2

// Calls returns the call for the changes of a source.
func Calls(source Source) subscriptionshttp.Calls {
	return func(http *subscriptionshttp.API) []wire.Route {
		a := &api{http: http, source: source, streams: limit.NewSlots[int64](limit.SlotsConfig{All: maxStreams, Each: maxStreamsOfStore})}
		a.pages = recorded.NewPages(http, source.News, a.readPage, func(w *wire.Writer, m *subscriptionshttp.Merchant, c Changes) {
			writeChanges(w, http.View(m, w), &c, m.Store.ID)
		})
		return []wire.Route{{Method: "GET", Path: "/subscriptions/changes", Handle: http.Serve(a.changes), Vary: "Accept"}}
	}
}

// api handles the call.
type api struct {
	http    *subscriptionshttp.API
	source  Source
	pages   *recorded.Pages[Changes]
	streams *limit.Slots[int64] // by store
}

type request struct {
	recorded.Asked
	format formats.Format
	plain  bool // only rows
}

// parseRequest reads a raw query and an Accept header. Its problem.Error names every
// parameter at fault.
func parseRequest(query, accept string, store int64) (r request, err error) {
	r = request{Asked: recorded.Asked{Limit: recorded.DefaultPage}, format: formats.Preferred(accept, formats.JSON, formats.NDJSON, formats.CSV)}
	after, limit, wait := recorded.Parameters(func(r *request) *recorded.Asked { return &r.Asked }, OfChanges, store, textCursor.With())
	one := func(s string) (is, ok bool) { return true, s == "1" && r.format == formats.CSV }
	plain := subscriptionshttp.Parsed("plain", func(r *request) *bool { return &r.plain }, one, textPlain.With())
	if r.format != formats.JSON {
		never := func(*request, string) bool { return false }
		limit.Read, limit.Invalid = never, textLimitOfStream.With()
		wait.Read, wait.Invalid = never, textWaitOfStream.With()
	}
	faults := subscriptionshttp.ReadQuery(query, &r, []subscriptionshttp.Parameter[request]{after, limit, wait, plain}, subscriptionshttp.TextNoValue, textUnknownOfChanges)
	return r, subscriptionshttp.Refused(append(faults, r.Conflict(faults)...))
}

// changes answers with a page, or with a stream if the client prefers one of its formats.
func (a *api) changes(m *subscriptionshttp.Merchant) (wire.Answer, error) {
	r, err := parseRequest(m.Request.URL.RawQuery, formats.Accept(m.Request), m.Store.ID)
	if err != nil {
		return wire.Answer{}, err
	}
	if r.format != formats.JSON {
		return a.streamed(m, r), nil
	}
	return a.pages.Answer(m, r.Asked)
}

func (a *api) readPage(ctx context.Context, m *subscriptionshttp.Merchant, asked recorded.Asked) (Changes, recorded.Cursor, error) {
	c, err := a.readChanges(ctx, m, asked.After, asked.Limit)
	return c, c.Next, err
}

// readChanges reads changes that can be shown.
func (a *api) readChanges(ctx context.Context, m *subscriptionshttp.Merchant, after recorded.Cursor, limit int) (Changes, error) {
	c, err := a.source.Changes(ctx, m.Store.ID, Query{After: after, Limit: limit, Language: m.Language})
	if err != nil {
		return c, fmt.Errorf("read changes of store %d: %w", m.Store.ID, err)
	}
	return c, subscriptionshttp.CheckCurrencies(m.Store, c.Changed)
}

// streamed answers with a stream of everything after the cursor.
func (a *api) streamed(m *subscriptionshttp.Merchant, r request) wire.Answer {
	parts := func(ctx context.Context, w *wire.Writer) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			leave, err := a.streams.Enter(ctx, m.Store.ID)
			if err != nil {
				yield(nil, errManyStreams)
				return
			}
			defer leave()
			lines := newLines(&r, w)
			for c, err := range a.pagesAfter(ctx, m, r.After) {
				if err != nil {
					yield(nil, err)
					return
				}
				if r.plain {
					c.Deleted = nil
				}
				if !yield(writeLines(lines, a.http.ViewTo(lines, m, w), &c, m.Store.ID), nil) {
					return
				}
			}
		}
	}
	return wire.Answer{Stream: &wire.Stream{ContentType: r.format.ContentType(), Parts: parts}}
}

// pagesAfter yields pages of changes until there are no more, or until an error. It reads the next
// page while the caller uses one, and holds no connection and no transaction while it waits for
// the caller.
func (a *api) pagesAfter(ctx context.Context, m *subscriptionshttp.Merchant, after recorded.Cursor) iter.Seq2[Changes, error] {
	type result struct {
		Changes
		err error
	}
	return func(yield func(Changes, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var reading sync.WaitGroup
		defer reading.Wait()
		defer cancel()
		ahead := make(chan result, 1)
		read := func(after recorded.Cursor) {
			reading.Go(func() {
				r := result{err: a.http.MayContinue(m)}
				if r.err == nil {
					r.Changes, r.err = a.readChanges(ctx, m, after, recorded.MaxPage)
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

var errManyStreams = problem.New(problem.Unavailable, "", locale.Text{
	locale.En: "Too many streams of changes are being read. Repeat the request when one has ended.",
	locale.Ar: "تُقرأ حاليًا عمليات بث كثيرة للتغييرات. أعد إرسال الطلب بعد انتهاء إحداها.",
})

// Texts for parameters that are refused.
var (
	textUnknownOfChanges = locale.Text{
		locale.En: "Unknown parameter. Changes accept %s.",
		locale.Ar: "معامل غير معروف. تقبل التغييرات %s.",
	}
	textLimitOfStream = locale.Text{
		locale.En: "A stream does not accept limit. Omit it, or ask for application/json.",
		locale.Ar: "لا يقبل البث المعامل limit. احذفه، أو اطلب application/json.",
	}
	textWaitOfStream = locale.Text{
		locale.En: "A stream does not accept wait. Omit it, or ask for application/json.",
		locale.Ar: "لا يقبل البث المعامل wait. احذفه، أو اطلب application/json.",
	}
	textPlain = locale.Text{
		locale.En: "plain must be 1, and is only for text/csv.",
		locale.Ar: "يجب أن تكون قيمة plain هي 1، وهو لصيغة text/csv فقط.",
	}
	textCursor = locale.Text{
		locale.En: "after is not a cursor of this store's changes. Send the value of next unchanged, or omit after to start from the beginning.",
		locale.Ar: "قيمة after لا تخص تغييرات هذا المتجر. أرسل قيمة next دون تغيير، أو احذف after للبدء من البداية.",
	}
)
