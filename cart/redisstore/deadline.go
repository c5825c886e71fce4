package redisstore

import (
	"context"
	"time"
)

// A Redis that stalls executes what was sent to it once it goes on, long after the
// callers were told that their outcome is unknown, and perhaps after they have sent
// the same again. So each change carries its deadline, in the time of the Redis that
// runs it, and a script that begins later changes nothing.

// redisClock is how far a Redis' clock is ahead of this process' own.
type redisClock struct {
	ahead int64 // ms
	known bool
}

// own is this process' own clock in ms. It is monotonic: setting the machine's clock
// does not move it.
func (m *master) own(t time.Time) int64 { return t.Sub(m.start).Milliseconds() }

// noDeadline is one that never passes.
const noDeadline int64 = 1<<53 - 1

// learn updates the estimate of a Redis' clock by what it said its time was, in ms,
// between sent and received. It keeps the current estimate while that is possible, and
// takes the lowest possible one otherwise: an early deadline only makes a script run
// again.
func (m *master) learn(redisMs int64, sent, received time.Time) {
	lowest, highest := redisMs-m.own(received)-1, redisMs-m.own(sent)+1
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.clock; !c.known || c.ahead < lowest || c.ahead > highest {
		m.clock = redisClock{ahead: lowest, known: true}
	}
}

// ahead is how many ms the master's clock is ahead of this process' own. It asks the
// master for its time when that is not known yet.
func (l located) ahead(ctx context.Context) (int64, error) {
	l.mu.Lock()
	clock := l.clock
	l.mu.Unlock()
	if clock.known {
		return clock.ahead, nil
	}
	sent := time.Now()
	t, err := l.client.Time(ctx).Result()
	if err != nil {
		return 0, err
	}
	l.learn(t.UnixMilli(), sent, time.Now())
	return l.ahead(ctx)
}

// aheadOf is how many ms the master's clock is ahead of another's, whose clock is known.
func (l located) aheadOf(ctx context.Context, other *master) (int64, error) {
	if l.master == other {
		return 0, nil
	}
	own, err := l.ahead(ctx)
	other.mu.Lock()
	defer other.mu.Unlock()
	return own - other.clock.ahead, err
}

// deadline is when ctx ends, in ms by the master's clock.
func (l located) deadline(ctx context.Context) (int64, error) {
	ahead, err := l.ahead(ctx)
	at, bounded := ctx.Deadline()
	if err != nil || !bounded {
		return noDeadline, err
	}
	return l.own(at) + ahead, nil
}
