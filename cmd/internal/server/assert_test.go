package server_test

import (
	"encoding/json"
	"testing"

	"commerce/deploy/assert"
)

// decode returns the value of a JSON text. Other members than those of T may be there.
func decode[T any](t testing.TB, text []byte) (value T) {
	t.Helper()
	err := json.Unmarshal(text, &value)
	assert.Require(t, err == nil, "%v in %s", err, text)
	return value
}
