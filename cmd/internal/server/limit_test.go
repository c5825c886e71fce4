package server

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// Anyone with an IPv6 network has more addresses than memory could hold. The bound is 25,000
// clients at about 220 bytes.
func TestBudget_RemembersABoundedNumberOfClients(t *testing.T) {
	b := newRateLimiter("reads", readRate, readBurst)
	before := heapInUse()
	now := time.Now()
	for i := range 1_000_000 {
		b.of(fmt.Sprintf("2001:db8:%x:%x::/64", i>>16, i&0xffff)).AllowN(now, 1)
	}
	if grown := int64(heapInUse()) - int64(before); grown > 16<<20 {
		t.Errorf("a million clients take %d MiB, want at most 16", grown>>20)
	}
	runtime.KeepAlive(b)
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
