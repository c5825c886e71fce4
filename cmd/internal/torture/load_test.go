package torture

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/deploy/ephemeral"
)

// load is shoppers who fill carts and log in, with a record of what was acknowledged to them.
type load struct {
	p      *promise
	t      testing.TB
	client *shopper
	redis  redis.UniversalClient // shows claimed carts, which no response shows

	loses      bool          // a failover may lose changes that were not confirmed
	unkeyed    bool          // some changes have neither a key nor a stamp
	stampPause time.Duration // before a repeat that only its X-Timestamp identifies

	over    atomic.Bool // no further visits begin
	current []atomic.Pointer[visit]
	mu      sync.Mutex
	visits  []*visit // that have ended

	changes, unknown, repeats, replayedKeys, replayedStamps, asCustomer atomic.Int64
	merged, lost, twice, more, wrong                                    atomic.Int64
	reported                                                            sync.Map // the IDs of the merges in merged
}

// stampPause is for a single clock: a stamp counts after 1 s by Redis's clock.
const stampPause = 1050 * time.Millisecond

func newLoad(p *promise, client *shopper, redis redis.UniversalClient) *load {
	return &load{p: p, t: p.t, client: client, redis: redis, stampPause: stampPause}
}

// alternating returns a client whose calls go to one instance after the other.
func alternating(t testing.TB, instances []*service) *shopper {
	var calls atomic.Int64
	return shopperAt(t, func() string { return instances[int(calls.Add(1))%len(instances)].URL() })
}

// shop lets n shoppers visit, again and again, until the returned function, which waits for the last visits.
func (l *load) shop(n int, makes func(*visit)) (stop func()) {
	l.current = make([]atomic.Pointer[visit], n)
	var all sync.WaitGroup
	for i := range l.current {
		all.Go(func() {
			for n := 0; !l.over.Load() && !l.t.Failed(); n++ {
				v := l.newVisit(fmt.Sprintf("%d-%d", i, n))
				l.current[i].Store(v)
				makes(v)
			}
		})
	}
	return sync.OnceFunc(func() { l.over.Store(true); all.Wait() })
}

func (l *load) keep(v *visit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v.ended = time.Now()
	l.visits = append(l.visits, v)
}

// recount compares all carts again after all faults. failedOver reports whether a replica replaced a master in a span of
// time, which explains losses, and that both customers of a token got a guest's cart. It is nil if nothing may be lost.
func (l *load) recount(failedOver func(from, to time.Time) bool) {
	inGroups(16, len(l.visits), func(i int) {
		v := l.visits[i]
		v.compare("after all faults")
		l.lost.Add(v.lost)
		l.twice.Add(v.twice)
		l.more.Add(v.more)
		switch {
		case !l.loses:
		case v.twice > 0 && !failedOver(v.began, v.ended):
			v.isWrong(fmt.Sprintf("without a failover: two customers got %d changes of one token", v.twice))
		case v.lost > 0 && !failedOver(v.began, time.Now()):
			v.isWrong(fmt.Sprintf("without a failover: %d changes are lost", v.lost))
		}
	})
}

// inGroups calls do for each number below n, in some goroutines.
func inGroups(goroutines, n int, do func(int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	all.Wait()
}

// someKey returns a key in Redis that belongs to a current visit.
func (l *load) someKey() (key string) {
	ephemeral.Eventually(l.t, "a visit", func() bool {
		if v := l.current[rand.IntN(len(l.current))].Load(); v != nil {
			keys := v.keys()
			key = keys[rand.IntN(len(keys))]
		}
		return key != ""
	})
	return key
}

// buyer is a guest who fills one cart after another, one change at a time.
type buyer struct {
	load   *load
	client *shopper
	name   func(cart int) string
	visits []*visit
}

// linesOfBuyers make carts with as many changes as a cart remembers keys.
const linesOfBuyers = 40

// fresh begins another cart.
func (b *buyer) fresh() {
	v := b.load.newVisit(b.name(len(b.visits)))
	v.guest, v.lines, v.staysGuest = b.client.as(v.guest.Token, ""), linesOfBuyers, true
	b.visits = append(b.visits, v)
}

func (b *buyer) current() *visit {
	if n := len(b.visits); n == 0 || b.visits[n-1].full() && b.visits[n-1].latest().made {
		b.fresh()
	}
	return b.visits[len(b.visits)-1]
}

// buy makes the next change, or repeats the last one if its outcome is unknown.
func (b *buyer) buy() reply {
	v := b.current()
	p := v.latest()
	if p == nil || p.made {
		p = v.choose()
	}
	return v.try(p, v.guest)
}

// whileBuying lets buyers make changes until lose has returned. fails says which outcomes may not happen.
func whileBuying(buyers []*buyer, pause time.Duration, fails func(outcome) bool, lose func()) {
	var dead atomic.Bool
	var all sync.WaitGroup
	for _, b := range buyers {
		all.Go(func() {
			for !dead.Load() {
				if r := b.buy(); fails(r.outcome()) {
					b.load.p.broke("a change with a key: %v", r)
					return
				}
				time.Sleep(pause)
			}
		})
	}
	lose()
	dead.Store(true)
	all.Wait()
}

// tried adds how often changes were repeated to the row of the promise.
func (l *load) tried() {
	l.p.tried("repeats", l.repeats.Load())
	l.p.tried("repeats recognized by their key", l.replayedKeys.Load())
	l.p.tried("repeats as a customer", l.asCustomer.Load())
}
