package subscriptions

import (
	"context"
	"sync"
)

// shares bounds how many connections of the pool one store uses at the same time, so that
// its slow requests do not delay other stores.
type shares struct {
	size int // maximum connections of one store

	mu      sync.Mutex
	byStore map[int64]*share // of stores that use or wait for a connection
}

type share struct {
	taken chan struct{}
	users int // including waiting ones; guarded by the mutex of shares
}

func newShares(size int) *shares {
	return &shares{size: size, byStore: map[int64]*share{}}
}

// enter waits until the store may use another connection or the context ends. Without an
// error the caller must call leave.
func (s *shares) enter(ctx context.Context, store int64) (leave func(), err error) {
	held := s.of(store)
	select {
	case held.taken <- struct{}{}:
		return func() {
			<-held.taken
			s.drop(store, held)
		}, nil
	case <-ctx.Done():
		s.drop(store, held)
		return nil, ctx.Err()
	}
}

func (s *shares) of(store int64) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.byStore[store]
	if held == nil {
		held = &share{taken: make(chan struct{}, s.size)}
		s.byStore[store] = held
	}
	held.users++
	return held
}

func (s *shares) drop(store int64, held *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held.users--; held.users == 0 {
		delete(s.byStore, store)
	}
}
