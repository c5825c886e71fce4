package service

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

func TestGuesses_BeginAgainWhenTheWindowEnds(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	g := NewGuesses(nil, func() time.Time { return now })
	for range 2 {
		for i := range maxGuesses {
			if made := g.begin(t.Context(), "client", "cart"); made.tooMany != nil {
				t.Fatalf("guess %d is refused", i+1)
			}
			now = now.Add(time.Second)
		}
		refused := g.begin(t.Context(), "client", "cart")
		if refused.tooMany == nil || refused.tooMany.RetryAfter != guessWindow-maxGuesses*time.Second {
			t.Fatalf("refused: %+v", refused.tooMany)
		}
		now = now.Add(refused.tooMany.RetryAfter)
	}
}

// Cart tokens can be made up, so their number must not matter. The bound is two times 20,000
// counts at about 180 bytes.
func TestGuesses_RememberABoundedNumberOfCarts(t *testing.T) {
	g := NewGuesses(nil, nil)
	before := heap()
	for i := range 500_000 {
		g.begin(t.Context(), fmt.Sprintf("2001:db8:%x:%x::/64", i>>16, i&0xffff), fmt.Sprintf("1:g:digest-of-22-characters-%d", i))
	}
	if grown := int64(heap()) - int64(before); grown > 16<<20 {
		t.Errorf("the guesses of a million carts and clients take %d MiB, want at most 16", grown>>20)
	}
	runtime.KeepAlive(g)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
