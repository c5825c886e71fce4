//go:build unix

package ephemeral

import "testing"

// Slow skips a test under -short, which is how `make test` runs. `make verify` runs it.
func Slow(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("slow: make verify runs it")
	}
}
