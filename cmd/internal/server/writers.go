package server

import (
	"sync"

	"commerce/auth/locale"
	"commerce/cart/money"
	"commerce/cart/wire"
)

// maxKeptBuffer is enough for a page of 100 ordinary subscriptions. The longest page,
// with metadata of 16 KiB in each row, takes about 3 MB.
const maxKeptBuffer = 256 << 10 // bytes

// writers reuse the writers, and so the memory, of responses that have been sent.
type writers struct {
	prices *money.Formatter
	pool   sync.Pool // of *wire.Writer
}

// get returns a writer for an empty response.
func (p *writers) get(l locale.Locale) *wire.Writer {
	w, ok := p.pool.Get().(*wire.Writer)
	if !ok {
		return wire.NewWriter(nil, l, p.prices)
	}
	w.Reset(l)
	return w
}

// put keeps a writer that the caller no longer uses, unless it is so large that few
// responses need it.
func (p *writers) put(w *wire.Writer) {
	if cap(w.Bytes()) <= maxKeptBuffer {
		p.pool.Put(w)
	}
}
