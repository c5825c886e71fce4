package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"commerce/cart"

	"github.com/redis/go-redis/v9"
)

// masters is what this instance has learned about each Redis master it talks to.
type masters struct {
	now    func() time.Time
	start  time.Time // of the clock that nobody sets
	mu     sync.Mutex
	byAddr map[string]*master
}

func newMasters(now func() time.Time) *masters {
	return &masters{now: now, start: time.Now(), byAddr: map[string]*master{}}
}

func (m *masters) at(addr string) *master {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byAddr[addr] == nil {
		m.byAddr[addr] = &master{now: m.now, start: m.start}
	}
	return m.byAddr[addr]
}

// located is a master and the client that reaches it.
type located struct {
	*master
	client *redis.Client
}

// masterOf finds the master that has a key.
func (s *Store) masterOf(ctx context.Context, key string) (located, error) {
	client, ok := s.client.(*redis.Client)
	if cluster, is := s.client.(*redis.ClusterClient); is {
		var err error
		if client, err = cluster.MasterForKey(ctx, key); err != nil {
			return located{}, fmt.Errorf("%w: %w", errNotSent, err)
		}
	} else if !ok {
		return located{}, errNotSent
	}
	return located{s.masters.at(client.Options().Addr), client}, nil
}

// errHangs means that a Redis did not answer in time a moment ago and was not asked again.
var errHangs = errors.New("redisstore: the guest's Redis hangs")

// askGuest asks a guest's Redis what a customer's request can be served without. After
// that Redis did not answer in time, it is not asked for a while. Where both carts lie on
// one master, that one is always asked.
func (s *Store) askGuest(ctx context.Context, customer, guest Ref, ask func(at located) error) error {
	own, err := s.masterOf(ctx, customer.cartKey())
	if err != nil {
		return cart.Unavailable("find master", err)
	}
	at, err := s.masterOf(ctx, guest.cartKey())
	if err != nil {
		return cart.Unavailable("find guest's master", err)
	}
	if own.master == at.master {
		return ask(at)
	}
	if at.hangs() {
		return cart.Unavailable("look for guest cart", errHangs)
	}
	err = ask(at)
	if timedOut(err) {
		at.noteHang()
	}
	return err
}

func timedOut(err error) bool {
	failed, isNet := errors.AsType[net.Error](err)
	return errors.Is(err, context.DeadlineExceeded) || isNet && failed.Timeout()
}

// master is one Redis master. It may be used concurrently.
type master struct {
	now   func() time.Time
	start time.Time

	mu         sync.Mutex
	lagsUntil  time.Time // its replicas did not confirm in time
	hangsUntil time.Time // it did not answer in time
	seen       []sighting
	listed     sighting
	clock      redisClock
}

// sighting is a number of replicas, and when it was seen.
type sighting struct {
	at       time.Time
	replicas int
}

const (
	// replicasRemembered is how long a replica counts after it was last seen. A
	// master forgets a replica that hangs after repl-timeout, and the replica may
	// still become master. By default Redis and Sentinel refuse to promote a replica
	// that has been disconnected for 1 to 3 minutes, well below these 10.
	replicasRemembered = 10 * time.Minute

	// listingRemembered is how long a list of replicas is not asked for again.
	listingRemembered = 10 * time.Second

	// slowFor is how long a master that hangs, or whose replicas lag, is not waited
	// for as long as others.
	slowFor = time.Second
)

// patience is how long a write waits for this master's replicas now.
func (m *master) patience() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now().Before(m.lagsUntil) {
		return laggardWait
	}
	return replicaWait
}

func (m *master) noteLag(lags bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lagsUntil = time.Time{}
	if lags {
		m.lagsUntil = m.now().Add(slowFor)
	}
}

// hangs reports whether the master did not answer in time a moment ago.
func (m *master) hangs() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now().Before(m.hangsUntil)
}

func (m *master) noteHang() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hangsUntil = m.now().Add(slowFor)
}

// mostReplicas takes how many replicas are connected now and returns the most of the
// last ten minutes.
func (m *master) mostReplicas(connected int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	// Sightings stay in falling order: one that is not more than a later one is
	// never the most again.
	for len(m.seen) > 0 && m.seen[len(m.seen)-1].replicas <= connected {
		m.seen = m.seen[:len(m.seen)-1]
	}
	m.seen = append(m.seen, sighting{now, connected})
	for now.Sub(m.seen[0].at) > replicasRemembered {
		m.seen = m.seen[1:]
	}
	return m.seen[0].replicas
}

// listedReplicas is the number that ask gave lately. When ask fails, the number of
// before counts.
func (m *master) listedReplicas(ask func() (int, error)) int {
	m.mu.Lock()
	last := m.listed
	m.mu.Unlock()
	if !last.at.IsZero() && m.now().Sub(last.at) < listingRemembered {
		return last.replicas
	}
	n, err := ask()
	if err != nil {
		return last.replicas
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listed = sighting{m.now(), n}
	return n
}
