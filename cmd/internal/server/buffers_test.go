package server

import "testing"

func TestBuffers_KeepNoneOfUnusualSize(t *testing.T) {
	t.Parallel()
	var b buffers
	for range 100 { // a pool may drop what it is given
		b.put(make([]byte, 0, maxKeptBuffer+1))
		if got := cap(b.get()); got > maxKeptBuffer {
			t.Fatalf("keeps %d bytes, want %d at most", got, maxKeptBuffer)
		}
	}
}

// The buffer of an answer goes back as large as the answer made it.
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
