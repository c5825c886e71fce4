package server

import (
	"testing"

	"commerce/auth/locale"
	"commerce/cart/wire"
)

func TestWriters_DropLargeOnes(t *testing.T) {
	t.Parallel()
	var p writers
	for range 100 { // a sync.Pool may drop any item
		p.put(wire.NewWriter(make([]byte, 0, maxKeptBuffer+1), locale.En, nil))
		if got := cap(p.get(locale.En).Bytes()); got > maxKeptBuffer {
			t.Fatalf("keeps %d bytes, want at most %d", got, maxKeptBuffer)
		}
	}
}

// A writer returns to the pool with the capacity that it has grown to, and leaves it empty.
func TestWriters_KeepUsualOnes(t *testing.T) {
	t.Parallel()
	var p writers
	for range 100 {
		p.put(wire.NewWriter(make([]byte, 10, maxKeptBuffer), locale.En, nil))
		if w := p.get(locale.Ar); len(w.Bytes()) == 0 && cap(w.Bytes()) == maxKeptBuffer && w.Language == locale.Ar {
			return
		}
	}
	t.Error("keeps no writer")
}
