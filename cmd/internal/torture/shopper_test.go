package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"commerce/deploy/ephemeral"
)

// callLimit is how long a shopper waits for a response. The service's own limit is 5 s.
var callLimit = ephemeral.Patience(5 * time.Second)

// shopper is a client of the cart API. It is not safe for concurrent use, except send.
type shopper struct {
	client *http.Client
	base   func() string // URL of the service that the next call goes to
	secret string        // that signs customers' tokens
	Token  string        // of a guest's cart
	JWT    string        // of a customer
}

func newShopper(t testing.TB, s *service) *shopper { t.Helper(); return shopperAt(t, s.URL) }

func shopperAt(t testing.TB, base func() string) *shopper {
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(transport.CloseIdleConnections)
	return &shopper{client: &http.Client{Transport: transport, Timeout: callLimit}, base: base, secret: jwtSecret}
}

func (c *shopper) as(token, jwt string) *shopper {
	other := *c
	other.Token, other.JWT = token, jwt
	return &other
}

// customer returns the token of a customer of store 1.
func (c *shopper) customer(t testing.TB, id string) string {
	t.Helper()
	return signJWT(t, jwt.SigningMethodHS256, []byte(c.secret), claimsOf(storeOne, id))
}

func customer(t testing.TB, id string) string { t.Helper(); return customerToken(t, storeOne, id) }

type reply struct {
	Status int // 0 if there was no response
	Code   string
	Header http.Header
	Cart   cartView
	Raw    []byte
	Err    error // of a call without a complete response
	Took   time.Duration
}

func (r reply) String() string {
	if r.Err != nil {
		return r.Err.Error()
	}
	return fmt.Sprintf("%d %s", r.Status, r.Raw)
}

type outcome string

const (
	applied   outcome = "applied"   // or a replay of an applied change
	refused   outcome = "refused"   // understood and not applied
	unchanged outcome = "unchanged" // 503: not applied, or safe to repeat
	unknown   outcome = "unknown"   // 504, or no response
)

func (r reply) outcome() outcome {
	switch {
	case r.Status == http.StatusOK:
		return applied
	case r.Status == http.StatusServiceUnavailable:
		return unchanged
	case r.Status == 0 || r.Status == http.StatusGatewayTimeout || r.Status == http.StatusBadGateway:
		return unknown
	}
	return refused
}

func (r reply) replayed() bool { return r.Header.Get("Idempotency-Replayed") == "true" }

type cartView struct {
	Token   *string    `json:"cart_token"`
	Items   []lineView `json:"items"`
	Count   int64      `json:"count"`
	Version int64      `json:"version"`
	Merge   *struct {
		ID    string `json:"id"`
		Lines int64  `json:"lines"`
	} `json:"merge"`
}

type lineView struct {
	ID       string `json:"id"`
	Quantity int64  `json:"quantity"`
}

func (c cartView) quantities() map[string]int64 {
	found := map[string]int64{}
	for _, item := range c.Items {
		found[item.ID] = item.Quantity
	}
	return found
}

// send makes one call. body is JSON, "" for none; headers are name, value, ….
func (c *shopper) send(method, path, body string, headers ...string) reply {
	began := time.Now()
	r := c.attempt(method, path, body, headers)
	r.Took = time.Since(began)
	return r
}

func (c *shopper) attempt(method, path, body string, headers []string) reply {
	request, err := http.NewRequestWithContext(context.Background(), method, c.base()+path, once(body))
	if err != nil {
		return reply{Err: err}
	}
	request.Header.Set("X-Public-Key", "pk_demo")
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		request.Header.Set("X-Cart-Token", c.Token)
	}
	if c.JWT != "" {
		request.Header.Set("Authorization", "Bearer "+c.JWT)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := c.client.Do(request)
	if err != nil {
		return reply{Err: err}
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return reply{Err: err}
	}
	r := reply{Status: response.StatusCode, Header: response.Header, Raw: raw}
	var envelope struct {
		Code string          `json:"code"`
		Data json.RawMessage `json:"data"`
	}
	if json.Unmarshal(raw, &envelope) == nil {
		r.Code = envelope.Code
		_ = json.Unmarshal(envelope.Data, &r.Cart) // not every response has a cart
	}
	return r
}

// once returns a body that cannot be rewound, so that the transport cannot repeat the request.
// The transport may repeat a GET or a request with a key if it has no body, which is safe.
func once(body string) io.Reader {
	if body == "" {
		return nil
	}
	return struct{ io.Reader }{strings.NewReader(body)}
}

// browse lets all clients make every call, in turn, until the returned function is called.
// It passes each call, its start and its reply to note.
func browse(clients []*regular, note func(shopCall, time.Time, reply)) (stop func()) {
	var stopped atomic.Bool
	var next atomic.Int64
	var all sync.WaitGroup
	calls := everyCall()
	for _, c := range clients {
		all.Go(func() {
			for !stopped.Load() {
				call, began := calls[int(next.Add(1))%len(calls)], time.Now()
				note(call, began, c.send(call))
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	return sync.OnceFunc(func() { stopped.Store(true); all.Wait() })
}

// awaitEveryCall waits until each call was served: some may fail on a busy machine.
func awaitEveryCall(t testing.TB, clients []*regular) {
	t.Helper()
	var mu sync.Mutex
	failed := map[shopCall]reply{}
	for _, call := range everyCall() {
		failed[call] = reply{}
	}
	stop := browse(clients, func(call shopCall, _ time.Time, a reply) {
		mu.Lock()
		defer mu.Unlock()
		if _, yet := failed[call]; yet {
			failed[call] = a
		}
		if a.Status == http.StatusOK {
			delete(failed, call)
		}
	})
	defer stop()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		mu.Lock()
		left := len(failed)
		mu.Unlock()
		if left == 0 {
			return
		}
		if time.Since(began) > startLimit {
			stop()
			t.Fatalf("not served within %v: %v", startLimit, failed)
		}
	}
}

// served repeats a call until it succeeds. It returns the last reply.
func served(call func() reply) (reply, bool) {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		r := call()
		if r.Status == http.StatusOK || time.Since(began) > startLimit {
			return r, r.Status == http.StatusOK
		}
	}
}
