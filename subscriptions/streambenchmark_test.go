package subscriptions_test

import (
	"context"
	"slices"
	"testing"

	"commerce/auth/locale"
	"commerce/cart/money"
	"commerce/cart/wire"
	"commerce/deploy/sample"
	"commerce/subscriptions"
)

// BenchmarkStream measures a page of a stream without its source.
func BenchmarkStream(b *testing.B) {
	rows := slices.Repeat(sample.Subscriptions(now), 20)[:1000]
	source := fixedChanges{changes: subscriptions.Changes{Changed: rows}}
	for name, format := range map[string]subscriptions.Format{"ndjson": subscriptions.NDJSON, "csv": subscriptions.CSV} {
		b.Run(name, func(b *testing.B) {
			w := wire.NewWriter(nil, locale.En, money.NewFormatter())
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range (subscriptions.Stream{Source: source, Store: stores()[0], Format: format}).Pages(b.Context(), w) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// fixedChanges is a source that has the same changes for every query.
type fixedChanges struct {
	subscriptions.Source
	changes subscriptions.Changes
}

func (f fixedChanges) Changes(context.Context, int64, subscriptions.ChangesQuery) (subscriptions.Changes, error) {
	return f.changes, nil
}
