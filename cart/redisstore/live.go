package redisstore

// A stub until w-live has committed the real one.

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

type Sighting struct {
	Tag     string
	Version int64
	Gone    bool
}

var (
	ErrNoCart = errors.New("redisstore: there is no cart")
	ErrBehind = errors.New("redisstore: behind")
)

type Listener struct {
	s      *Store
	ref    Ref
	last   string
	id     string
	closed atomic.Bool
}

func (s *Store) Listen(ctx context.Context, ref Ref) (*Listener, error) {
	c, err := s.Load(ctx, ref)
	if err == nil && c.ID == "" {
		err = ErrNoCart
	}
	return &Listener{s: s, ref: ref, id: c.ID}, err
}

// Wake
func (l *Listener) Wake(f func()) {
	if l.closed.Load() {
		return
	}
	f()
	time.AfterFunc(100*time.Millisecond, func() { l.Wake(f) })
}

func (l *Listener) Next() (Sighting, bool, error) {
	c, err := l.s.Load(context.Background(), l.ref)
	if err == nil && c.ID != l.id {
		return Sighting{Tag: "0.0.0", Gone: true}, true, nil
	}
	if err == nil && c.Tag() != l.last {
		l.last = c.Tag()
		return Sighting{Tag: l.last, Version: c.Version}, true, nil
	}
	return Sighting{}, false, nil
}

func (l *Listener) Close() { l.closed.Store(true) }

func (s *Store) Listeners() int { return 0 }
