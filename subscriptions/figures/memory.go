package figures

import (
	"context"
	"maps"
	"math/big"
	"slices"

	"commerce/subscriptions"
	"commerce/subscriptions/history"
)

// Memory makes the figures of subscriptions and histories in memory.
type Memory struct {
	rows *subscriptions.Memory
	past *history.Memory
}

func NewMemory(rows *subscriptions.Memory, past *history.Memory) *Memory { return &Memory{rows, past} }

func (m *Memory) Totals(_ context.Context, store int64) ([]Total, error) {
	groups := map[Total]Total{} // by what all of a group have
	for _, s := range m.rows.Rows(store) {
		of := Total{Status: s.Status, Currency: s.Currency, Duration: s.Duration}
		t, known := groups[of]
		if !known {
			t = of
			t.Prices = new(big.Int)
		}
		t.Count++
		if s.CancelAtPeriodEnd {
			t.Ending++
		}
		t.Prices.Add(t.Prices, big.NewInt(int64(s.Price)))
		groups[of] = t
	}
	return slices.Collect(maps.Values(groups)), nil
}

func (m *Memory) Movements(_ context.Context, store int64) ([]Movement, error) {
	return Movements(m.past.States(store))
}
