package server

import "sync"

// maxKeptBuffer is enough for a page of 100 ordinary subscriptions. The longest page,
// with metadata of 16 KiB in each row, takes about 3 MB.
const maxKeptBuffer = 256 << 10 // bytes

// buffers reuse the memory of responses that have been sent. The zero value is ready to
// use.
type buffers struct {
	pool sync.Pool // of *[]byte
}

// get returns an empty buffer.
func (b *buffers) get() []byte {
	if kept, ok := b.pool.Get().(*[]byte); ok {
		return (*kept)[:0]
	}
	return nil
}

// put keeps a buffer that the caller no longer uses, unless it is so large that few
// responses need it.
func (b *buffers) put(buffer []byte) {
	if cap(buffer) <= maxKeptBuffer {
		b.pool.Put(&buffer)
	}
}
