package telemetry

import (
	"maps"
	"sync"
	"sync/atomic"
)

// memo remembers what make returns for each key. A look-up takes no lock, and less time
// than Prometheus needs to find a metric by its label values. Keys must be few, because none
// is ever forgotten.
type memo[K comparable, V any] struct {
	make  func(K) V
	known atomic.Pointer[map[K]V] // replaced, never changed
	mu    sync.Mutex              // for replacing it
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
