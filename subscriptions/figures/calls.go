// Package figures adds up a store's subscriptions: a summary of them as they are, and monthly figures of what they
// were. It reads them from Postgres or from memory, and serves them over HTTP.
package figures

import (
	"context"

	"commerce/auth/locale"
	"commerce/cart/wire"
	"commerce/subscriptions/subscriptionshttp"
)

// Source adds up the subscriptions of stores. The order of what it returns is undefined. A call may outlive the request
// that caused it.
type Source interface {
	// Totals adds up all subscriptions of the store by status, currency and duration.
	Totals(ctx context.Context, store int64) ([]Total, error)

	// Movements adds up all states of the store's subscriptions by month and currency. The error is
	// recorded.ErrNone if the source records none.
	Movements(ctx context.Context, store int64) ([]Movement, error)
}

type Config struct {
	Source Source

	// Fresh makes figures for each call, as a source in memory can afford.
	Fresh bool
}

// Calls returns the calls for figures.
func Calls(c Config) subscriptionshttp.Calls {
	return func(http *subscriptionshttp.API) []wire.Route {
		a := &api{http: http, summaries: newSummaries(c.Source, http.Now), measured: newMetrics(c.Source, http.Now)}
		if c.Fresh {
			a.summaries.usable = func(*Summary) bool { return false }
			a.measured.usable = func(*Metrics) bool { return false }
		}
		return []wire.Route{
			{Method: "GET", Path: "/subscriptions/summary", Handle: http.Serve(a.summary)},
			{Method: "GET", Path: "/subscriptions/metrics", Handle: http.Serve(a.metrics), Vary: "Accept"},
		}
	}
}

// api handles the calls.
type api struct {
	http      *subscriptionshttp.API
	summaries *runs[*Summary]
	measured  *runs[*Metrics]
}

// Texts for parameters that are refused.
var (
	textNoParameters = locale.Text{
		locale.En: "Unknown parameter. The summary accepts no parameters.",
		locale.Ar: "معامل غير معروف. لا يقبل الملخص أي معاملات.",
	}
	textUnknownOfMetrics = locale.Text{
		locale.En: "Unknown parameter. Metrics accept %s.",
		locale.Ar: "معامل غير معروف. تقبل المقاييس %s.",
	}
	textMonth = locale.Text{
		locale.En: "%s must be a month such as 2026-07, in UTC and not in the future.",
		locale.Ar: "يجب أن يكون %s شهرًا مثل 2026-07 بتوقيت UTC، وألا يكون في المستقبل.",
	}
	textMonthsReversed = locale.Text{
		locale.En: "from must not be after to.",
		locale.Ar: "يجب ألا يكون from بعد to.",
	}
	textManyMonths = locale.Text{
		locale.En: "from and to must include at most %d months.",
		locale.Ar: "يجب ألا تشمل المدة من from إلى to أكثر من %d شهرًا.",
	}
)
