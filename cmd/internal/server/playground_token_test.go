package server_test

import (
	"testing"

	"commerce/deploy/ephemeral"
)

// fetch refuses to send such a header, so every call of the device would fail for good.
func TestPlayground_HealsATokenWithDamagedBytes(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	p := openStore(t)
	evaluate[any](p, `{ localStorage.setItem("commerce:/:a.cart_token", "مرحبا"); null }`)
	p.addProduct("1")
	p.until(`/^[A-Za-z0-9_-]{22,}$/.test(localStorage.getItem("commerce:/:a.cart_token"))`)
}
