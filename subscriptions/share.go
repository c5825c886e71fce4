package subscriptions

import (
	"context"
	"errors"
	"sync"
)

// maxWaiting is how many requests of one store wait for each of its connections. More would
// hardly get one in time. Meanwhile they would take the places of other stores' requests,
// which are limited for each instance.
const maxWaiting = 16

// errManyWait means that too many requests of the store wait already.
var errManyWait = errors.New("too many requests of this store wait for a connection")

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

// enter waits until the store may use another connection or the context ends. It fails
// immediately if too many requests of the store wait already. Without an error the caller must
// call leave.
func (s *shares) enter(ctx context.Context, store int64) (leave func(), err error) {
	held := s.of(store)
	if held == nil {
		return nil, errManyWait
	}
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

// of returns the store's share, nil if too many requests wait for it.
func (s *shares) of(store int64) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.byStore[store]
	switch {
	case held == nil:
		held = &share{taken: make(chan struct{}, s.size)}
		s.byStore[store] = held
	case store != noStore && held.users == s.size*(1+maxWaiting):
		return nil
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
