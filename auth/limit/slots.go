package limit

import (
	"context"
	"errors"
	"sync"
)

// ErrBusy means that no slot is free, and too many operations of the key wait for one already.
var ErrBusy = errors.New("too many operations run or wait at the same time")

// Slots limit how many operations run at the same time, in total and for each key, such as a
// store. It is safe for concurrent use.
type Slots[K comparable] struct {
	SlotsConfig

	mu    sync.Mutex
	users int               // of all keys
	byKey map[K]*slotsOfKey // of keys with users
}

type SlotsConfig struct {
	All     int // operations of all keys, with those that wait; 0: any number
	Each    int // operations of one key
	Waiting int // operations of one key that wait for a slot
}

type slotsOfKey struct {
	taken chan struct{}
	users int // with those that wait; guarded by the mutex of Slots
}

func NewSlots[K comparable](c SlotsConfig) *Slots[K] {
	return &Slots[K]{SlotsConfig: c, byKey: map[K]*slotsOfKey{}}
}

// Enter takes a slot of a key. If none is free, it waits until ctx ends, and fails with ErrBusy at
// once if it must not wait. Without an error the caller must call leave.
func (s *Slots[K]) Enter(ctx context.Context, key K) (leave func(), err error) {
	own := s.of(key)
	if own == nil {
		return nil, ErrBusy
	}
	select {
	case own.taken <- struct{}{}: // also if ctx has ended
	default:
		select {
		case own.taken <- struct{}{}:
		case <-ctx.Done():
			s.drop(key, own)
			return nil, ctx.Err()
		}
	}
	return func() {
		<-own.taken
		s.drop(key, own)
	}, nil
}

// of returns the slots of a key with one more user, nil if it has too many.
func (s *Slots[K]) of(key K) *slotsOfKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.byKey[key]
	if s.All > 0 && s.users == s.All || own != nil && own.users == s.Each+s.Waiting {
		return nil
	}
	if own == nil {
		own = &slotsOfKey{taken: make(chan struct{}, s.Each)}
		s.byKey[key] = own
	}
	s.users++
	own.users++
	return own
}

func (s *Slots[K]) drop(key K, own *slotsOfKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	if own.users--; own.users == 0 {
		delete(s.byKey, key)
	}
}
