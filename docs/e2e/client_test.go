package e2e

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/docs"
)

// lostReplies is how many changes testdata/npmtrip/trip.mjs sends over LOSSY_URL.
const lostReplies = 8

// The unchanged published client makes a whole shopping trip.
func TestPublishedClient_DrivesAWholeTrip(t *testing.T) {
	slow(t)
	installed := installPackages(t, "npmtrip")
	for name, start := range map[string]func(*testing.T) *service{
		"demo":    func(t *testing.T) *service { return startDemo(t) },
		"single":  func(t *testing.T) *service { return startServe(t, ephemeral.Redis(t)) },
		"cluster": func(t *testing.T) *service { return startServe(t, ephemeral.Cluster(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			url, lost, repeated := loseReplies(t, s.url)
			node := command(t, "node", "trip.mjs")
			node.Dir = installed
			node.Env = append(os.Environ(), "BASE_URL="+s.url, "LOSSY_URL="+url, "PUBLIC_KEY="+s.key,
				"JWT_BROWSER="+cmp.Or(s.jwt, s.token(t, rand.Text())), "JWT_SERVER="+s.token(t, rand.Text()), "JWT_LOSSY="+s.token(t, rand.Text()))
			said, err := node.CombinedOutput()
			t.Logf("node trip.mjs:\n%s", said)
			assert.Require(t, err == nil, "node trip.mjs: %v", err)
			assert.Equal(t, lost.Load(), lostReplies, "replies that were lost")
			assert.That(t, repeated.Load() >= lostReplies, "%d changes were sent again, want %d", repeated.Load(), lostReplies)
		})
	}
}

// The client of docs/storefront.js, in Node. It leaves out what React Native does not have.
func TestStorefrontClient_CountsEachChangeOnce(t *testing.T) {
	slow(t)
	dir := t.TempDir()
	script := assert.Must(os.ReadFile("testdata/storefront.mjs"))(t)
	for name, text := range map[string][]byte{"storefront.mjs": docs.Storefront, "test.mjs": script} {
		assert.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	node := command(t, "node", "test.mjs")
	node.Dir = dir
	node.Env = append(os.Environ(), "BASE_URL="+startDemo(t).url)
	said, err := node.CombinedOutput()
	assert.That(t, err == nil, "node test.mjs: %v\n%s", err, said)
}

// loseReplies serves a proxy at a URL. It loses the first response to every change: the change is made, and
// the connection closed before the response. Reads and retries pass.
func loseReplies(t *testing.T, service string) (url string, lost, repeated *atomic.Int64) {
	t.Helper()
	lost, repeated = &atomic.Int64{}, &atomic.Int64{}
	var seen sync.Map
	proxy := proxyTo(t, service)
	proxy.ModifyResponse = func(reply *http.Response) error {
		r := reply.Request
		if r.Method == http.MethodGet {
			return nil
		}
		change := fmt.Sprint(r.Method, r.URL.Path, r.Header["X-Timestamp"], r.Header["Idempotency-Key"], r.Header["X-Cart-Token"], r.Header["Authorization"])
		if _, again := seen.LoadOrStore(change, true); again {
			repeated.Add(1)
			return nil
		}
		lost.Add(1)
		return errors.New("the reply is lost")
	}
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	return serveGateway(t, proxy.ServeHTTP), lost, repeated
}

// docs/cart.md says which resend of a browser counts twice.
func TestResend_OfABrowserCountsTwiceOnlyWithoutAKey(t *testing.T) {
	slow(t)
	s := startDemo(t)
	for header, want := range map[string]int{
		`"X-Timestamp": String(Math.floor(Date.now() / 1000))`: 2,
		`"Idempotency-Key": "one"`:                             1,
	} {
		t.Run(header, func(t *testing.T) {
			t.Parallel()
			proxy := proxyTo(t, s.url)
			var posts atomic.Int64
			p := open(t, serveGateway(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/":
					gatewayPage(http.StatusOK)(w, r)
				case r.Method == http.MethodPost && posts.Add(1) == 1: // closes the connection instead of responding
					proxy.ServeHTTP(httptest.NewRecorder(), r)
					panic(http.ErrAbortHandler)
				default:
					proxy.ServeHTTP(w, r)
				}
			}), look{})
			p.expect("404 /favicon.ico")
			added := evaluate[int](p, fmt.Sprintf(`(async () => {
				const headers = {"X-Public-Key": %q, "X-Cart-Token": "a-token-of-the-browsers-own-%d"};
				await (await fetch("/cart/count", {headers})).text(); // leaves a kept-alive connection
				await new Promise((done) => setTimeout(done, 300)); // until it is idle: a browser resends only on one that it has used
				const response = await fetch("/cart/add", {
					method: "POST", headers: {...headers, "Content-Type": "application/json", %s}, body: '{"product_id": 1, "qty": 1}',
				});
				return (await response.json()).data.count;
			})()`, s.key, want, header))
			assert.That(t, added == want && posts.Load() == 2, "the cart has %d after %d requests, want %d after 2", added, posts.Load(), want)
		})
	}
}
