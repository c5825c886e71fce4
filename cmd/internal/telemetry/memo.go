package telemetry

import (
	"maps"
	"sync"
	"sync/atomic"
)

// memo caches the result of make for each key. A lookup takes no lock, and is faster than
// Prometheus's own lookup of a metric by label values. The number of keys must be bounded,
// because memo never removes one.
type memo[K comparable, V any] struct {
	make  func(K) V
	known atomic.Pointer[map[K]V] // replaced, never modified
	mu    sync.Mutex              // held while known is replaced
}

func (m *memo[K, V]) of(key K) V {
	if known := m.known.Load(); known != nil {
		if v, ok := (*known)[key]; ok {
			return v
		}
	}
	return m.add(key)
}

func (m *memo[K, V]) add(key K) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := map[K]V{}
	if held := m.known.Load(); held != nil {
		known = maps.Clone(*held)
	}
	v, ok := known[key]
	if !ok {
		v = m.make(key)
		known[key] = v
		m.known.Store(&known)
	}
	return v
}
