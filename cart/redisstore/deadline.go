package redisstore

import (
	"context"
	"time"
)

// Each commit and each claim carries a deadline by the clock of the Redis that runs it: see docs/design.md.

// redisClock is how far a Redis' clock is ahead of this process' own clock.
type redisClock struct {
	ahead int64 // ms, at least
	error int64 // ms by which it may be further ahead
	known bool
}

// own returns t in ms by this process' own clock, which is monotonic.
func (m *master) own(t time.Time) int64 { return t.Sub(m.start).Milliseconds() }

const noDeadline int64 = 1<<53 - 1

// learn updates the estimate of a Redis' clock by the time that Redis reported between sent and
// received. If the current estimate contradicts it, the lowest possible one replaces it: a
// deadline that is too early only makes a change be decided again.
func (m *master) learn(redisMs int64, sent, received time.Time) {
	lowest, highest := redisMs-m.own(received)-1, redisMs-m.own(sent)+1
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &m.clock
	if !c.known || c.ahead < lowest || c.ahead > highest {
		*c = redisClock{ahead: lowest, error: highest - lowest, known: true}
	}
	c.error = min(c.error, highest-c.ahead)
}

// ahead returns how many ms the master's clock is ahead of this process' own. If there is no
// estimate yet, it asks the master for its time.
func (l located) ahead(ctx context.Context) (int64, error) {
	l.mu.Lock()
	clock := l.clock
	l.mu.Unlock()
	if clock.known {
		return clock.ahead, nil
	}
	sent := l.mono()
	t, err := l.client.Time(ctx).Result()
	if err != nil {
		return 0, err
	}
	l.learn(t.UnixMilli(), sent, l.mono())
	return l.ahead(ctx)
}

// redisNow returns the time in ms by the master's clock.
func (l located) redisNow(ctx context.Context) (int64, error) {
	ahead, err := l.ahead(ctx)
	return l.own(l.mono()) + ahead, err
}

// clockError returns by how many ms redisNow may be too early: the time of a round trip.
func (l located) clockError() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clock.error
}

// aheadOf returns how many ms the master is ahead of another, whose estimate must exist.
func (l located) aheadOf(ctx context.Context, other *master) (int64, error) {
	if l.master == other {
		return 0, nil
	}
	own, err := l.ahead(ctx)
	other.mu.Lock()
	defer other.mu.Unlock()
	return own - other.clock.ahead, err
}

// deadline returns ctx's deadline in ms by the master's clock, or noDeadline.
func (l located) deadline(ctx context.Context) (int64, error) {
	ahead, err := l.ahead(ctx)
	at, bounded := ctx.Deadline()
	if err != nil || !bounded {
		return noDeadline, err
	}
	return l.own(l.mono().Add(time.Until(at))) + ahead, nil
}
