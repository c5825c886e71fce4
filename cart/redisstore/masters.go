package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/script"
	"commerce/cart"
)

type masters struct {
	now    func() time.Time
	mono   func() time.Time // this process' own clock
	start  time.Time        // its zero point
	mu     sync.Mutex
	byAddr map[string]*master
}

func newMasters(now, mono func() time.Time) *masters {
	return &masters{now: now, mono: mono, start: mono(), byAddr: map[string]*master{}}
}

func (m *masters) at(addr string) *master {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byAddr[addr] == nil {
		m.byAddr[addr] = &master{now: m.now, mono: m.mono, start: m.start, all: m, seen: map[int]time.Time{}}
	}
	return m.byAddr[addr]
}

// mostReplicas returns the maximum number of replicas that any master had in the last ten minutes.
func (m *masters) mostReplicas() (most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, each := range m.byAddr {
		most = max(most, each.remembered())
	}
	return most
}

type located struct {
	*master
	client *redis.Client
}

type locator func(ctx context.Context, key string) (located, error)

func newLocator(client redis.UniversalClient, known *masters) locator {
	switch client := client.(type) {
	case *redis.Client:
		only := located{known.at(client.Options().Addr), client}
		return func(context.Context, string) (located, error) { return only, nil }
	case *redis.ClusterClient:
		return func(ctx context.Context, key string) (located, error) {
			master, err := client.MasterForKey(ctx, key)
			if err != nil {
				return located{}, fmt.Errorf("%w: %w", script.ErrNotSent, err)
			}
			return located{known.at(master.Options().Addr), master}, nil
		}
	}
	return func(context.Context, string) (located, error) { return located{}, script.ErrNotSent }
}

// ServerOf names the server of a client, for errors.
func ServerOf(client *redis.Client) string {
	addr := client.Options().Addr
	if addr == "FailoverClient" { // go-redis keeps the address from sentinels to itself
		addr = "master"
	}
	return "redis " + addr
}

type guestMaster struct {
	located
	separate bool // from the customer's
}

// guestMaster finds the Redis of a guest's cart. After a timeout, it is not asked again for slowFor,
// because a customer's request can be served without it. If both carts are on one master, it is
// always asked. The caller must call noteFailure.
func (s *Store) guestMaster(ctx context.Context, customer, guest Ref) (guestMaster, error) {
	own, err := s.masterOf(ctx, customer.CartKey())
	if err != nil {
		return guestMaster{}, cart.Unavailable("find master", err)
	}
	at, err := s.masterOf(ctx, guest.CartKey())
	if err != nil {
		return guestMaster{}, cart.Unavailable("find guest's master", err)
	}
	separate := own.master != at.master
	if separate && at.unresponsive() {
		err := fmt.Errorf("%s: not called, because it has just timed out", ServerOf(at.client))
		return guestMaster{}, cart.Unavailable("look for guest cart", err)
	}
	return guestMaster{at, separate}, nil
}

// noteFailure records that the master did not answer in time, if err says so.
func (m guestMaster) noteFailure(err error) {
	if m.separate && TimedOut(err) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.unresponsiveUntil = m.now().Add(slowFor)
	}
}

// TimedOut reports whether a Redis has not answered in time.
func TimedOut(err error) bool {
	failed, isNet := errors.AsType[net.Error](err)
	return errors.Is(err, context.DeadlineExceeded) || isNet && failed.Timeout()
}

// master is what this instance knows about one Redis master. It is safe for concurrent use.
type master struct {
	now   func() time.Time
	mono  func() time.Time
	start time.Time
	all   *masters // all masters, this one included

	reads, changes batcher

	mu                sync.Mutex
	slowReplicas      bool              // its replicas did not confirm in time
	probeAt           time.Time         // when a write waits for slow replicas again
	confirmedIn       time.Duration     // how long the replicas took to confirm, the last time they did
	probeFor          time.Duration     // how long the next probe waits
	unresponsiveUntil time.Time         // set when it did not answer in time
	connected         int               // replicas, at the latest look
	seen              map[int]time.Time // when each number of replicas was last observed
	listed            int               // replicas
	listedUntil       time.Time
	clock             redisClock
}

const (
	// ReplicasRemembered is how long a replica counts after it was found missing: it may still
	// become master. By default Redis and Sentinel refuse to promote a replica that has been
	// disconnected for 1 to 3 minutes.
	ReplicasRemembered = 10 * time.Minute

	// listingRemembered is how long a list of replicas is cached; noneRemembered, an empty list
	// or a failure: after a failover, the former master is listed soon.
	listingRemembered = 10 * time.Second
	noneRemembered    = time.Second

	// slowFor is how long after a timeout a master, or its replicas, are not waited for.
	slowFor = time.Second
)

// patience returns how long a write waits for this master's replicas now: usually wait, and 0 while
// they are slow. The first caller after slowFor probes them. Replicas that are not known yet get
// all the time that there is.
func (m *master) patience(wait time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.slowReplicas && m.now().Before(m.probeAt):
		return 0
	case m.slowReplicas:
		m.probeAt = m.now().Add(slowFor)
		return m.probeFor
	case m.confirmedIn == 0:
		return replicaWait
	}
	return wait
}

// noteReplicas records whether the replicas have confirmed a write within wait, and how long they
// took. A wait that is too short for them says nothing. A probe waits twice the time that they
// needed before; each one that fails makes the next longer, up to longestProbe.
func (m *master) noteReplicas(confirmed bool, wait, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case confirmed:
		m.slowReplicas, m.confirmedIn = false, max(took, 1)
	case m.slowReplicas: // on a busy machine, they may need longer
		m.probeFor = min(2*m.probeFor, max(longestProbe, m.probeFor))
	case wait >= min(2*m.confirmedIn, replicaWait):
		m.slowReplicas, m.probeAt = true, m.now().Add(slowFor)
		m.probeFor = min(max(probeWait, 2*m.confirmedIn), replicaWait)
	}
}

func (m *master) unresponsive() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now().Before(m.unresponsiveUntil)
}

// maxReplicas records how many replicas are connected now and returns the maximum of the
// last ten minutes. Replicas that were connected at the previous call and are missing now count
// from now on, because it is not known when they were lost. If none is connected, and this
// instance has not used the master for ten minutes, the master may be a cluster node that has just
// replaced another one. The other replicas then follow it, and the former master returns as its
// replica. Their number is not known, so maxReplicas records the maximum of the other masters.
func (m *master) maxReplicas(connected int) int {
	inherited := 0
	if connected == 0 && m.remembered() < 0 {
		inherited = m.all.mostReplicas()
	}
	m.mu.Lock()
	now := m.now()
	m.seen[max(m.connected, inherited)] = now
	m.seen[connected] = now
	m.connected = connected
	m.mu.Unlock()
	return m.remembered()
}

// remembered returns the maximum of the last ten minutes, or -1 if none was recorded.
func (m *master) remembered() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	most := -1
	for replicas, at := range m.seen {
		if m.now().Sub(at) <= ReplicasRemembered {
			most = max(most, replicas)
		}
	}
	return most
}

// listedReplicas returns the number of replicas that ask returned, which is cached. If ask
// fails, the previous number counts, and ask is called again after noneRemembered.
func (m *master) listedReplicas(ask func() (int, error)) int {
	m.mu.Lock()
	last, until := m.listed, m.listedUntil
	m.mu.Unlock()
	if m.now().Before(until) {
		return last
	}
	n, err := ask()
	if err != nil {
		n = last
	}
	lasts := listingRemembered
	if err != nil || n == 0 {
		lasts = noneRemembered
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listed, m.listedUntil = n, m.now().Add(lasts)
	return n
}
