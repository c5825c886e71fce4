package sample_test

import (
	"strings"
	"testing"

	"commerce/auth/store"
	"commerce/deploy/assert"
	"commerce/deploy/sample"
)

func TestWriteStores_RefusesAnUnknownCurrency(t *testing.T) {
	t.Parallel()
	err := sample.WriteStores(t.Context(), nil, []*store.Store{{ID: 3, Currency: "XYZ"}}, nil, nil)
	assert.That(t, err != nil && strings.Contains(err.Error(), `store 3: unknown currency "XYZ"`),
		"%v, want an error that names the store and the currency", err)
}
