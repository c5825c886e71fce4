package torture

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
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

func sendJunk(t *testing.T, p *promise) {
	server := ephemeral.StartRedis(t)
	s := startService(t, "REDIS_URL="+server.URL, "DATABASE_URL="+catalog(t))
	j := &junk{t: t, p: p, addr: strings.TrimPrefix(s.URL(), "http://"), redis: server.Admin()}
	for i := range sized(20, 2000) {
		j.customers = append(j.customers, customer(t, fmt.Sprint("made-up-", i)))
	}
	keys := j.redis.DBSize(t.Context()).Val()
	assert.Require(t, keys == 0, "Redis begins with %d keys", keys)
	p.counted("reads with made-up credentials", j.send("reads", sized(5_000, 1_000_000), j.read))
	p.counted("refused changes and changes without effect", j.send("changes", sized(3_000, 100_000), j.change))
	p.counted("of both, answered 503", j.unserved.Load())
	p.counted("keys in Redis", j.redis.DBSize(t.Context()).Val())
}

type junk struct {
	t         *testing.T
	p         *promise
	addr      string
	redis     *redis.Client
	customers []string // JWTs
	unserved  atomic.Int64
}

type wanted struct {
	request string
	status  int
}

// sender returns the headers of a made-up sender. Only one in five has no token.
func (j *junk) sender(i int) string {
	token := fmt.Sprintf("X-Cart-Token: made-up-token-no-%d-and-more\r\n", 1_000_000_000+i)
	login := "Authorization: Bearer " + j.customers[i%len(j.customers)] + "\r\n"
	return []string{token, token, login, login + token, "X-Cart-Token: malformed\r\n"}[i%5]
}

func (j *junk) read(i int) wanted {
	path, status := []string{"/cart", "/cart/count", "/cart/summary", "/cart/validate"}[i%4], 200
	if i%4 == 3 {
		status = 400 // the cart is empty
	}
	return wanted{j.request("GET", path, j.sender(i), ""), status}
}

// junkChanges are changes that an empty cart refuses or that do not change it.
var junkChanges = []struct {
	method, path, body string
	headers            string
	status             int
}{
	{"POST", "/cart/add", `{"product_id":9999}`, "", 404},
	{"POST", "/cart/add", `{"product_id":3}`, "", 422},
	{"POST", "/cart/add", `{"product_id":6}`, "", 422},
	{"POST", "/cart/add", `{"product_id":2,"qty":4}`, "", 422},
	{"POST", "/cart/add", `{"product_id":5}`, "", 422},
	{"POST", "/cart/add", `{"product_id":4}`, "", 422},
	{"POST", "/cart/add", `{"product_id":1001,"qty":0}`, "", 422},
	{"POST", "/cart/add", `{"product_id":1001,"qty":1000}`, "", 422},
	{"POST", "/cart/add", `{"product_id":1001}`, "If-Match: \"x.1\"\r\n", 412},
	{"POST", "/cart/add", `{"product_id":`, "", 400},
	{"POST", "/cart/coupon", `{"coupon":"NOPE"}`, "", 422},
	{"POST", "/cart/handover/redeem", `{"code":"none","preview":true}`, "", 404},
	{"POST", "/cart/merge/undo", `{}`, "", 422},
	{"POST", "/cart/share", "", "", 422},
	{"DELETE", "/cart/share/none", "", "", 404},
	{"PATCH", "/cart/items/1001", `{"quantity":2}`, "", 404},
	{"PATCH", "/cart/items/1001", `{"quantity":0}`, "", 404},
	{"PATCH", "/cart/items/1001", `{"notice":"x"}`, "", 404},
	{"DELETE", "/cart/items/1001", "", "", 200},
	{"DELETE", "/cart/clear", "", "", 200},
	{"DELETE", "/cart/coupon", "", "", 200},
}

func (j *junk) change(i int) wanted {
	c := junkChanges[i%len(junkChanges)]
	repeat := []string{"", "Idempotency-Key: k\r\n", "X-Timestamp: 1\r\n"}[i/len(junkChanges)%3]
	return wanted{j.request(c.method, c.path, j.sender(i)+c.headers+repeat, c.body), c.status}
}

func (j *junk) request(method, path, headers, body string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: torture\r\nX-Public-Key: pk_demo\r\n%sContent-Length: %d\r\n\r\n%s",
		method, path, headers, len(body), body)
}

const (
	junkConnections = 8
	junkBatch       = 20 // requests that a connection sends together, which saves CPU time of the test
)

// send sends n requests and returns how many. Redis must hold no key afterwards.
func (j *junk) send(what string, n int, make func(i int) wanted) int64 {
	bar := j.p.progress(what, n)
	var next atomic.Int64
	var all sync.WaitGroup
	for range junkConnections {
		all.Go(func() {
			conn, err := net.Dial("tcp", j.addr)
			if err != nil {
				j.t.Error(err)
				return
			}
			defer conn.Close()
			responses := bufio.NewReader(conn)
			for {
				from := int(next.Add(junkBatch)) - junkBatch
				if from >= n {
					return
				}
				if err := j.sendBatch(conn, responses, from, make); err != nil {
					j.t.Error(err)
					return
				}
				_ = bar.Add(junkBatch)
			}
		})
	}
	all.Wait()
	if keys := j.redis.Keys(context.WithoutCancel(j.t.Context()), "*").Val(); len(keys) > 0 {
		j.p.broke("%s left %d keys in Redis, such as %s", what, len(keys), keys[0])
	}
	return int64(n)
}

func (j *junk) sendBatch(conn net.Conn, responses *bufio.Reader, from int, make func(i int) wanted) error {
	var batch strings.Builder
	var statuses [junkBatch]int
	for i := range junkBatch {
		w := make(from + i)
		batch.WriteString(w.request)
		statuses[i] = w.status
	}
	if _, err := io.WriteString(conn, batch.String()); err != nil {
		return err
	}
	for i, status := range statuses {
		response, err := http.ReadResponse(responses, nil)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		if response.StatusCode == http.StatusServiceUnavailable {
			j.unserved.Add(1) // the machine is busy
		} else if response.StatusCode != status {
			return fmt.Errorf("got %d %s, want %d for %s", response.StatusCode, body, status, make(from+i).request)
		}
	}
	return nil
}
