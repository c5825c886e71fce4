package server

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"commerce/auth/locale"
	"commerce/auth/timing"
	"commerce/cart/wire"
	"commerce/deploy/assert"
)

func TestDeadline_EndsAtItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		waited := newRequestContext(t.Context(), time.Now().Add(time.Second))
		asked := newRequestContext(t.Context(), time.Now().Add(time.Second))
		child, cancel := context.WithTimeout(asked, time.Minute)
		defer cancel()
		assert.That(t, waited.Err() == nil && child.Err() == nil, "begin with %v and %v", waited.Err(), child.Err())
		time.Sleep(time.Second)
		synctest.Wait()
		for name, err := range map[string]error{"asked": waited.Err(), "child": child.Err()} {
			assert.That(t, errors.Is(err, context.DeadlineExceeded), "%s: %v after the deadline", name, err)
		}
		<-waited.Done()
	})
}

func TestDeadline_EndsWithItsClient(t *testing.T) {
	t.Parallel()
	client, disconnect := context.WithCancel(t.Context())
	quiet, waiting := newRequestContext(client, time.Now().Add(time.Hour)), newRequestContext(client, time.Now().Add(time.Hour))
	ended := waiting.Done()
	disconnect()
	<-ended
	assert.That(t, quiet.Err() == context.Canceled && waiting.Err() == context.Canceled, "the errors are %v and %v", quiet.Err(), waiting.Err())
	assert.That(t, timing.Of(quiet) == &quiet.Times && requestContextOf(waiting) == waiting, "a value is lost")
}

func TestDeadline_StopsItsTimer(t *testing.T) {
	t.Parallel()
	unused, used := newRequestContext(t.Context(), time.Now().Add(time.Hour)), newRequestContext(t.Context(), time.Now().Add(time.Hour))
	ended := used.Done()
	unused.stop()
	used.stop()
	<-ended
	assert.That(t, used.Err() == context.Canceled, "the error is %v", used.Err())
}

func TestWriters_DropLargeOnes(t *testing.T) {
	t.Parallel()
	var p writers
	for range 100 { // a sync.Pool may drop any item
		p.put(wire.NewWriter(make([]byte, 0, maxKeptBuffer+1), locale.En, nil))
		got := cap(p.get(locale.En).Bytes())
		assert.Require(t, got <= maxKeptBuffer, "keeps %d bytes, want at most %d", got, maxKeptBuffer)
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

// Anyone with an IPv6 network has more addresses than the 25,000 that are kept, 220 bytes each.
func TestBudget_RemembersABoundedNumberOfClients(t *testing.T) {
	b := newRateLimiter("reads", readRate, readBurst)
	before := heapInUse()
	now := time.Now()
	for i := range 1_000_000 {
		b.of(fmt.Sprintf("2001:db8:%x:%x::/64", i>>16, i&0xffff)).AllowN(now, 1)
	}
	grown := int64(heapInUse()) - int64(before)
	assert.That(t, grown <= 16<<20, "a million clients take %d MiB, want at most 16", grown>>20)
	runtime.KeepAlive(b)
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
