package torture

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// Shoppers add to their carts and log in while one in fifty replies is cut, both from Redis to
// the service and from the service to the shopper. They repeat each change until they get a
// response.
func TestPromise02_ARetriedChangeCountsOnce(t *testing.T) {
	t.Parallel()
	p := promised(t, 2, "a retried change counts once", "0 doubled of 100,000")
	redis, database := ephemeral.StartRedis(t), catalog(t)
	back, url := lineTo(t, redis.URL)
	front, base := lineToService(t, startService(t, "REDIS_URL="+url, "DATABASE_URL="+database))
	r := &retries{p: p, wanted: sized[int64](2_000, 100_000), client: shopperAt(t, base)}

	back.cutReplies(50)
	front.cutReplies(50)
	r.run()
	r.whileMergesWait(startUncached(t, url, database), sized(1, 40))
	back.cutReplies(0)
	front.cutReplies(0)
	r.recount()

	p.counted("changes", r.changes.Load())
	p.counted("doubled", r.doubled.Load())
	p.counted("lost", r.lost.Load())
	p.detail("replies of Redis cut", float64(back.replies.cut.Load()), "")
	p.detail("replies of the service cut", float64(front.replies.cut.Load()), "")
	for _, tried := range []struct {
		name string
		n    *atomic.Int64
	}{
		{"repeats by shoppers", &r.repeats},
		{"repeats recognized, with a key", &r.replayedKeys},
		{"repeats recognized, with X-Timestamp only", &r.replayedStamps},
		{"repeats as a customer", &r.asCustomer},
		{"repeats while the merge waited", &r.waiting},
	} {
		p.detail(tried.name, float64(tried.n.Load()), "")
		assert.That(t, tried.n.Load() != 0, "%s: none", tried.name)
	}
}

type retries struct {
	p      *promise
	client *shopper
	wanted int64

	mu     sync.Mutex
	visits []*retryVisit

	changes, doubled, lost, repeats                   atomic.Int64
	replayedKeys, replayedStamps, asCustomer, waiting atomic.Int64
}

type retryVisit struct {
	*retries
	rnd             *rand.Rand
	guest, customer *shopper
	loggedIn        bool
	waits           bool             // only whileMergesWait logs in
	made            map[string]int64 // quantity by line
}

const (
	retryShoppers   = 64
	changesPerVisit = 16
)

func (r *retries) run() {
	var all sync.WaitGroup
	bar := r.p.progress("changes", int(r.wanted))
	for i := range retryShoppers {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), uint64(os.Getpid())))
			for n := 0; r.changes.Load() < r.wanted && !r.p.t.Failed(); n++ {
				r.visit(rnd, fmt.Sprintf("%d-%d", i, n)).shop()
				_ = bar.Set64(min(r.wanted, r.changes.Load()))
			}
		})
	}
	all.Wait()
}

func (r *retries) visit(rnd *rand.Rand, name string) *retryVisit {
	token := "a-token-that-is-retried-" + name
	v := &retryVisit{
		retries: r, rnd: rnd, made: map[string]int64{},
		guest: r.client.as(token, ""), customer: r.client.as(token, customer(r.p.t, token)),
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.visits = append(r.visits, v)
	return v
}

// shop makes changes, the first half of them as a guest, and checks the cart.
func (v *retryVisit) shop() {
	for i := range changesPerVisit {
		v.loggedIn = v.loggedIn || i >= changesPerVisit/2
		item := plainLine(v.rnd.IntN(10))
		if !v.insist(item, fmt.Sprint(i), v.rnd.IntN(3) == 0) {
			return
		}
	}
	v.compare()
}

// insist adds one of a product, and repeats that until it gets a 200. A repeat with a key may be
// the first request after the login. A repeat with only a stamp (X-Timestamp) has the tokens of
// the first try, as the published client sends them, and comes a second later.
func (v *retryVisit) insist(item, mark string, stamped bool) bool {
	headers := []string{"Idempotency-Key", mark}
	if stamped {
		headers[0] = "X-Timestamp"
	}
	for tries, began := 0, time.Now(); ; tries++ {
		c := v.guest
		if v.loggedIn {
			c = v.customer
		}
		a := c.send("POST", "/cart/add", addOne(item), headers...)
		if a.outcome() == applied {
			v.made[item]++
			v.changes.Add(1)
			v.countReplay(a, stamped)
			return true
		}
		if a.outcome() == refused || time.Since(began) > 3*startLimit {
			v.p.broke("a change was not made in %d tries: %v", tries, a)
			return false
		}
		v.repeats.Add(1)
		if stamped {
			time.Sleep(1050 * time.Millisecond)
		} else if !v.loggedIn && !v.waits && v.rnd.IntN(2) == 0 {
			v.loggedIn = true
			v.asCustomer.Add(1)
		}
	}
}

func addOne(item string) string { return fmt.Sprintf(`{"product_id":%s}`, item) }

func (v *retryVisit) countReplay(a reply, stamped bool) {
	switch {
	case !a.replayed():
	case stamped:
		v.replayedStamps.Add(1)
	default:
		v.replayedKeys.Add(1)
	}
}

// compare reads the cart until it holds all, because a later request may complete the merge.
func (v *retryVisit) compare() {
	var held map[string]int64
	var a reply
	for began := time.Now(); time.Since(began) < 3*startLimit; time.Sleep(20 * time.Millisecond) {
		a = v.customer.send("GET", "/cart", "")
		if a.Status != 200 {
			continue
		}
		held = a.Cart.quantities()
		if more, less := v.differs(held); more > 0 {
			v.doubled.Add(more)
			v.p.broke("%d changes of %s count twice: %v, added %v", more, v.guest.Token, held, v.made)
			return
		} else if less == 0 {
			return
		}
	}
	if held == nil {
		v.p.broke("the cart of %s cannot be read: %v after %v", v.guest.Token, a, a.Took)
		return
	}
	_, less := v.differs(held)
	v.lost.Add(less)
	v.p.broke("%d changes of %s are lost: %v, added %v", less, v.guest.Token, held, v.made)
}

// differs returns how many changes a cart holds too often, and how many it does not hold.
func (v *retryVisit) differs(held map[string]int64) (more, less int64) {
	for item, n := range v.made {
		more += max(0, held[item]-n)
		less += max(0, n-held[item])
	}
	for item, n := range held {
		if v.made[item] == 0 {
			more += n
		}
	}
	return more, less
}

// recount compares all carts again, because a late merge may have counted changes twice.
func (r *retries) recount() {
	var all errgroup.Group
	all.SetLimit(16)
	for _, v := range r.visits {
		all.Go(func() error { v.compare(); return nil })
	}
	_ = all.Wait()
}

// uncached is an instance that the test can prevent from loading products.
type uncached struct {
	client   *shopper
	database *line
}

func startUncached(t testing.TB, redisURL, databaseURL string) *uncached {
	database, url := lineTo(t, databaseURL)
	s := startService(t, "REDIS_URL="+redisURL, "DATABASE_URL="+url)
	return &uncached{newShopper(t, s), database}
}

const (
	waitingShoppers = 32
	firstUncached   = 20 // as in plainLine
)

// whileMergesWait lets guests make changes. It repeats them as customers through an instance
// that cannot merge, because it cannot load a product in the guests' carts.
func (r *retries) whileMergesWait(at *uncached, rounds int) {
	warm := r.visit(rand.New(rand.NewPCG(2, 2)), "warm")
	warm.guest, warm.waits = at.client.as(warm.guest.Token, ""), true // a login would use the other instance
	if !warm.insist(plainLine(0), "warm", false) {
		return
	}
	bar := r.p.progress("merges that wait", rounds)
	for round := range rounds {
		visits := make([]*retryVisit, waitingShoppers)
		var all sync.WaitGroup
		for i := range visits {
			v := r.visit(rand.New(rand.NewPCG(uint64(round), uint64(i))), fmt.Sprintf("waiting-%d-%d", round, i))
			visits[i] = v
			all.Go(func() { v.fillAsGuest(plainLine(firstUncached + round)) })
		}
		all.Wait()
		at.database.down()
		for _, v := range visits {
			all.Go(func() { v.repeatAsCustomer(at) })
		}
		all.Wait()
		at.database.up()
		for _, v := range visits {
			all.Go(v.compare)
		}
		all.Wait()
		_ = bar.Add(1)
	}
}

const changesThatWait = 4

// fillAsGuest makes changes. It waits only for the outcome of the first one.
func (v *retryVisit) fillAsGuest(unknownProduct string) {
	v.waits = true
	v.insist(unknownProduct, "first", false)
	for n := range changesThatWait {
		v.guest.send("POST", "/cart/add", addOne(plainLine(0)), "Idempotency-Key", fmt.Sprint(n))
	}
}

// repeatAsCustomer repeats the changes of fillAsGuest, and makes others.
func (v *retryVisit) repeatAsCustomer(at *uncached) {
	customer := v.customer
	defer func() { v.customer = customer }()
	v.customer, v.loggedIn = at.client.as(customer.Token, customer.JWT), true
	for n := range 2 * changesThatWait {
		if !v.insist(plainLine(0), fmt.Sprint(n), false) {
			return
		}
	}
	v.insist(plainLine(0), "stamp", true)
	if left := v.guest.send("GET", "/cart/count", ""); left.Cart.Count > 0 {
		v.waiting.Add(changesThatWait)
	}
}
