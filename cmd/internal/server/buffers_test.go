package server

import "testing"

func TestBuffers_DropLargeOnes(t *testing.T) {
	t.Parallel()
	var b buffers
	for range 100 { // a sync.Pool may drop any item
		b.put(make([]byte, 0, maxKeptBuffer+1))
		if got := cap(b.get()); got > maxKeptBuffer {
			t.Fatalf("keeps %d bytes, want at most %d", got, maxKeptBuffer)
		}
	}
}

// A buffer returns to the pool with the capacity that it has grown to.
func TestBuffers_KeepUsualOnes(t *testing.T) {
	t.Parallel()
	var b buffers
	for range 100 {
		b.put(make([]byte, 10, maxKeptBuffer))
		if got := b.get(); len(got) == 0 && cap(got) == maxKeptBuffer {
			return
		}
	}
	t.Error("keeps no buffer")
}
