package subscriptions

import "sync"

// maxKeptBuffer holds a page of 100 ordinary rows. The longest page, with metadata of
// 16 KiB in each row, is some 3 MB.
const maxKeptBuffer = 256 << 10 // bytes

// buffers are the memory of answers that have been sent, for the next ones. The zero
// value is ready to use.
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

// put keeps a buffer that the caller no longer uses, unless it is so large that only
// a rare answer needs it.
func (b *buffers) put(buffer []byte) {
	if cap(buffer) <= maxKeptBuffer {
		b.pool.Put(&buffer)
	}
}
