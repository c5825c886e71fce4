package redisstore

// A stub until w-live has committed the real one.

import (
	"context"
	"errors"
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
	s    *Store
	ref  Ref
	last string
	id   string
}

func (s *Store) Listen(ctx context.Context, ref Ref) (*Listener, error) {
	c, err := s.Load(ctx, ref)
	if err == nil && c.ID == "" {
		err = ErrNoCart
	}
	return &Listener{s: s, ref: ref, id: c.ID}, err
}

func (l *Listener) Next(ctx context.Context) (Sighting, error) {
	for {
		c, err := l.s.Load(context.WithoutCancel(ctx), l.ref)
		if err == nil && c.ID != l.id {
			return Sighting{Tag: "0.0.0", Gone: true}, nil
		}
		if err == nil && c.Tag() != l.last {
			l.last = c.Tag()
			return Sighting{Tag: l.last, Version: c.Version}, nil
		}
		select {
		case <-ctx.Done():
			return Sighting{}, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (l *Listener) Close() {}

func (s *Store) Listeners() int { return 0 }
