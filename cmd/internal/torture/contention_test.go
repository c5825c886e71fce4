package torture

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// Who is nearer to Redis would win every race for a cart, if those who lose did not get a turn.
func TestTwoInstances_OfWhichOneIsFurtherShareACart(t *testing.T) {
	ephemeral.Slow(t)
	redis, database := ephemeral.StartRedis(t), catalog(t)
	line, far := lineTo(t, redis.URL)
	var instances [2]*shopper
	for i, url := range []string{redis.URL, far} {
		instances[i] = newShopper(t, startService(t, "REDIS_URL="+url, "DATABASE_URL="+database))
	}
	line.lag(5*time.Millisecond, 0)
	const carts, callers = 4, 50
	at := func(i, cart int) *shopper { return instances[i].as(fmt.Sprint("contended-cart-number-", cart), "") }
	for cart := range carts {
		for i := range instances { // each has loaded its store and its product
			_, ok := served(func() reply { return at(i, cart).send("POST", "/cart/add", `{"product_id":1}`) })
			assert.Require(t, ok, "an add is not answered with 200")
		}
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var answers [2]map[int]int // by status
	until := time.Now().Add(5 * time.Second)
	for caller := range callers {
		all.Go(func() {
			i, c := caller%2, at(caller%2, caller/2%carts)
			for n := caller; time.Now().Before(until); n++ {
				r := c.send("PATCH", "/cart/items/1", fmt.Sprintf(`{"quantity":%d}`, n%900+2))
				mu.Lock()
				if answers[i] == nil {
					answers[i] = map[int]int{}
				}
				answers[i][r.Status]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for i, where := range []string{"near Redis", "5 ms further"} {
		made, refused := answers[i][http.StatusOK], answers[i][http.StatusServiceUnavailable]
		t.Logf("%s: answers by status: %v", where, answers[i])
		assert.That(t, made > 0 && refused*1000 <= made, "%s: %v", where, answers[i])
		delete(answers[i], http.StatusOK)
		delete(answers[i], http.StatusServiceUnavailable)
		assert.That(t, len(answers[i]) == 0, "%s: other answers: %v", where, answers[i])
	}
}
