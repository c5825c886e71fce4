package torture

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

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
	warm.guest = at.client.as(warm.guest.Token, "")
	warm.insist(plainLine(0), "warm", false)
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
	v.customer, v.loggedIn = at.client.as(customer.Token, customer.JWT), true
	for n := range 2 * changesThatWait {
		v.insist(plainLine(0), fmt.Sprint(n), false)
	}
	v.insist(plainLine(0), "stamp", true)
	if left := v.guest.send("GET", "/cart/count", ""); left.Cart.Count > 0 {
		v.waiting.Add(changesThatWait)
	}
	v.customer = customer
}
