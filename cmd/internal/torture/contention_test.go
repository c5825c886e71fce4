package torture

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// Who is nearer to Redis would win every race for a cart, if those who lose did not get a turn.
func TestTwoInstances_OfWhichOneIsFurtherShareACart(t *testing.T) {
	ephemeral.Slow(t)
	redis, database := ephemeral.StartRedis(t), catalog(t)
	far, line := faultyLineTo(t, redis.URL)
	instances := [2]*service{}
	for i, url := range []string{redis.URL, far} {
		instances[i] = startService(t, "REDIS_URL="+url, "DATABASE_URL="+database, "RATE_LIMIT=off")
	}
	line.delay(5)
	var all sync.WaitGroup
	var made, refused, slowest [2]atomic.Int64
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	send := func(i, cart int, method, path, body string) (status int) {
		r := assert.Must(http.NewRequestWithContext(t.Context(), method, instances[i].URL()+path, strings.NewReader(body)))(t)
		r.Header.Set("X-Cart-Token", fmt.Sprintf("contended-cart-number-%d", cart))
		r.Header.Set("X-Public-Key", "pk_demo")
		r.Header.Set("Content-Type", "application/json")
		a := assert.Must(client.Do(r))(t)
		defer a.Body.Close()
		_, _ = io.Copy(io.Discard, a.Body)
		return a.StatusCode
	}
	const carts = 4
	for cart := range carts {
		for i := range instances { // each has loaded its store and its product
			ephemeral.Eventually(t, "an add is answered with 200", func() bool {
				return send(i, cart, http.MethodPost, "/cart/add", `{"product_id":1}`) == http.StatusOK
			})
		}
	}
	until := time.Now().Add(5 * time.Second)
	change := func(caller int) {
		i := caller % 2
		for n := caller; time.Now().Before(until); n++ {
			began := time.Now()
			status := send(i, caller/2%carts, http.MethodPatch, "/cart/items/1", fmt.Sprintf(`{"quantity":%d}`, n%900+2))
			for took := time.Since(began).Milliseconds(); took > slowest[i].Load(); {
				slowest[i].Store(took)
			}
			switch status {
			case http.StatusOK:
				made[i].Add(1)
			case http.StatusServiceUnavailable:
				refused[i].Add(1)
			default:
				t.Errorf("caller %d: status %d", caller, status)
				return
			}
		}
	}
	for caller := range 50 {
		all.Go(func() { change(caller) })
	}
	all.Wait()
	for i, where := range []string{"near Redis", "5 ms further"} {
		n, no := made[i].Load(), refused[i].Load()
		t.Logf("%s: %d answered, %d with 503, the slowest after %d ms", where, n+no, no, slowest[i].Load())
		assert.That(t, n > 0 && no*1000 <= n, "%s: %d of %d are 503", where, no, n+no)
	}
}
