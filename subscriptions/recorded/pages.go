package recorded

import (
	"context"
	"slices"
	"time"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart/wire"
	"commerce/subscriptions/subscriptionshttp"
)

// Pages answers with pages of records P after a cursor, which may wait for news.
type Pages[P any] struct {
	http   *subscriptionshttp.API
	waiter *Waiter
	read   func(context.Context, *subscriptionshttp.Merchant, Asked) (P, Cursor, error)
	write  func(*wire.Writer, *subscriptionshttp.Merchant, P)
}

// NewPages returns pages that read and write show. read also returns the cursor after a page: the one that was asked for if there are
// no records yet. news is that of a Waiter.
func NewPages[P any](
	http *subscriptionshttp.API, news News,
	read func(context.Context, *subscriptionshttp.Merchant, Asked) (P, Cursor, error), write func(*wire.Writer, *subscriptionshttp.Merchant, P),
) *Pages[P] {
	return &Pages[P]{http, NewWaiter(news, http.Places), read, write}
}

// Asked is which page a request asks for.
type Asked struct {
	After Cursor
	Limit int
	Wait  int // seconds; 0: not at all
}

// Parameters returns those of a page, which are read into a part of T. refusal is for a cursor that is not of the kind and store.
func Parameters[T any](part func(*T) *Asked, of Kind, store int64, refusal locale.Sentence) (after, limit, wait subscriptionshttp.Parameter[T]) {
	parse := func(s string) (Cursor, bool) { return of.Parse(s, store) }
	after = subscriptionshttp.Parsed("after", func(t *T) *Cursor { return &part(t).After }, parse, refusal)
	limit = subscriptionshttp.Number("limit", func(t *T) *int { return &part(t).Limit }, MaxPage)
	wait = subscriptionshttp.Number("wait", func(t *T) *int { return &part(t).Wait }, maxWait)
	return after, limit, wait
}

// ParsePage reads a raw query for a page alone. Its problem.Error names every parameter at fault.
func ParsePage(query string, of Kind, store int64, refusal locale.Sentence, unknown locale.Text) (asked Asked, err error) {
	asked.Limit = DefaultPage
	after, limit, wait := Parameters(func(a *Asked) *Asked { return a }, of, store, refusal)
	faults := subscriptionshttp.ReadQuery(query, &asked, []subscriptionshttp.Parameter[Asked]{after, limit, wait}, subscriptionshttp.TextNoValue, unknown)
	return asked, subscriptionshttp.Refused(append(faults, asked.Conflict(faults)...))
}

// Conflict returns the fault of a wait without a cursor, unless the cursor is at fault.
func (a *Asked) Conflict(faults []problem.Fault) []problem.Fault {
	if a.Wait == 0 || a.After != (Cursor{}) || slices.ContainsFunc(faults, func(f problem.Fault) bool { return f.Member == "after" }) {
		return nil
	}
	return []problem.Fault{subscriptionshttp.Fault("wait", textWaitAlone)}
}

// Answer answers with a page. If nothing is new, and the request waits, it answers later.
func (p *Pages[P]) Answer(m *subscriptionshttp.Merchant, asked Asked) (wire.Answer, error) {
	page, next, err := p.read(m.Request.Context(), m, asked)
	if err != nil {
		return wire.Answer{}, err
	}
	if asked.Wait > 0 && next == asked.After {
		return wire.Answer{Later: p.waiting(m, asked, page)}, nil
	}
	return wire.Answer{Data: p.shown(m, page)}, nil
}

func (p *Pages[P]) shown(m *subscriptionshttp.Merchant, page P) func(*wire.Writer) {
	return func(w *wire.Writer) { p.write(w, m, page) }
}

// waiting answers with the records that come after the cursor, or without any, as empty is.
func (p *Pages[P]) waiting(m *subscriptionshttp.Merchant, asked Asked, empty P) wire.Later {
	return func(pause wire.Pause) (func(*wire.Writer), error) {
		page, until := empty, time.Now().Add(time.Duration(asked.Wait)*time.Second)
		for waits := true; waits; {
			var err error
			if page, waits, err = p.await(m, asked, empty, until, pause); err != nil {
				return nil, err
			}
		}
		return p.shown(m, page), nil
	}
}

// await waits for news and reads them. A read without them, as of a replica that is late, must
// be repeated.
func (p *Pages[P]) await(m *subscriptionshttp.Merchant, asked Asked, empty P, until time.Time, pause wire.Pause) (page P, again bool, err error) {
	news, leave := false, func() {}
	err = pause(func(ctx context.Context) bool {
		waiting, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		if news = p.waiter.Wait(waiting, m.Store.ID, asked.After.Change); news {
			leave = p.waiter.takeTurn(ctx)
		}
		return news
	})
	defer leave()
	if err == nil {
		err = p.http.MayContinue(m)
	}
	if err != nil || !news {
		return empty, false, err
	}
	page, next, err := p.read(m.Request.Context(), m, asked)
	return page, next == asked.After, err
}

var textWaitAlone = locale.Text{
	locale.En: "wait needs after. Read everything first, then wait for what comes after the last next.",
	locale.Ar: "يتطلب wait المعامل after. اقرأ كل شيء أولًا، ثم انتظر ما بعد آخر قيمة next.",
}
