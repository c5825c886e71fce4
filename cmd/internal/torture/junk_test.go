package torture

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// Clients make up cart tokens and customers, and send requests that are refused or change
// nothing. Redis must store nothing. Then the test changes and merges the largest carts that
// the limits allow. Redis's slow log shows how long each script took.
func TestPromise11_JunkNeitherFillsNorBlocksRedis(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	p := promised(t, 11, "junk cannot fill Redis or block it", "0 keys; no script over 5 ms")
	sendJunk(t, p)
	measureLargest(t, p, "default limits", limitsOfCart{lines: 100, text: 64 << 10})
	if *long {
		measureLargest(t, p, "highest limits", limitsOfCart{lines: 500, text: 64 << 10, settings: []string{
			"MAX_LINES=500", "MAX_QUANTITY=10000",
		}})
	}
}

type junk struct {
	method, path, body string
	headers            []string
	status             int
}

var junkReads = []junk{
	{"GET", "/cart", "", nil, 200},
	{"GET", "/cart/count", "", nil, 200},
	{"GET", "/cart/summary", "", nil, 200},
	{"GET", "/cart/validate", "", nil, 400}, // the cart is empty
}

// junkChanges are changes that an empty cart refuses or that do not change it.
var junkChanges = []junk{
	{"POST", "/cart/add", `{"product_id":9999}`, nil, 404},
	{"POST", "/cart/add", `{"product_id":3}`, nil, 422},
	{"POST", "/cart/add", `{"product_id":6}`, nil, 422},
	{"POST", "/cart/add", `{"product_id":2,"qty":4}`, nil, 422},
	{"POST", "/cart/add", `{"product_id":5}`, nil, 422},
	{"POST", "/cart/add", `{"product_id":4}`, nil, 422},
	{"POST", "/cart/add", `{"product_id":1001,"qty":0}`, nil, 422},
	{"POST", "/cart/add", `{"product_id":1001,"qty":1000}`, nil, 422},
	{"POST", "/cart/add", `{"product_id":1001}`, []string{"If-Match", `"x.1"`}, 412},
	{"POST", "/cart/add", `{"product_id":`, nil, 400},
	{"POST", "/cart/coupon", `{"coupon":"NOPE"}`, nil, 422},
	{"POST", "/cart/handover/redeem", `{"code":"none","preview":true}`, nil, 404},
	{"POST", "/cart/merge/undo", `{}`, nil, 422},
	{"POST", "/cart/share", "", nil, 422},
	{"DELETE", "/cart/share/none", "", nil, 404},
	{"PATCH", "/cart/items/1001", `{"quantity":2}`, nil, 404},
	{"PATCH", "/cart/items/1001", `{"quantity":0}`, nil, 404},
	{"PATCH", "/cart/items/1001", `{"notice":"x"}`, nil, 404},
	{"DELETE", "/cart/items/1001", "", nil, 200},
	{"DELETE", "/cart/clear", "", nil, 200},
	{"DELETE", "/cart/coupon", "", nil, 200},
}

func sendJunk(t *testing.T, p *promise) {
	server := ephemeral.StartRedis(t)
	redis, client := server.Admin(), newShopper(t, startService(t, "REDIS_URL="+server.URL, "DATABASE_URL="+catalog(t)))
	logins := make([]string, sized(20, 2000))
	for i := range logins {
		logins[i] = customer(t, fmt.Sprint("made-up-", i))
	}
	assert.Require(t, len(keysIn(redis)) == 0, "Redis begins with keys")
	var unserved atomic.Int64 // because the machine is busy
	send := func(what string, n int, all []junk) {
		bar := p.progress(what, n)
		inGroups(8, n, func(i int) {
			j, token, login := all[i%len(all)], fmt.Sprintf("made-up-token-no-%d-and-more", 1_000_000_000+i), logins[i%len(logins)]
			from := []*shopper{client.as(token, ""), client.as(token, ""), client.as("", login), client.as(token, login), client.as("malformed", "")}[i%5]
			repeat := [][]string{nil, {"Idempotency-Key", "k"}, {"X-Timestamp", "1"}}[i/len(all)%3]
			if r := from.send(j.method, j.path, j.body, slices.Concat(j.headers, repeat)...); r.Status == http.StatusServiceUnavailable {
				unserved.Add(1)
			} else if r.Status != j.status {
				t.Errorf("%v of %v: got %v", j, from.Token, r)
			}
			_ = bar.Add(1)
		})
		p.counted(what, int64(n))
		if keys := keysIn(redis); len(keys) > 0 {
			p.broke("%s left %d keys in Redis, such as %s", what, len(keys), keys[0])
		}
	}
	send("reads with made-up credentials", sized(5_000, 1_000_000), junkReads)
	send("refused changes and changes without effect", sized(3_000, 100_000), junkChanges)
	p.detail("of both, answered 503", float64(unserved.Load()), "")
	p.counted("keys in Redis", int64(len(keysIn(redis))))
}

func keysIn(redis *redis.Client) []string { return redis.Keys(context.Background(), "*").Val() }
