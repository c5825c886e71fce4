package torture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// releases are clients of two releases that share a Redis and a Postgres.
type releases struct {
	p            *promise
	older, newer *shopper
}

// releaseVisit is a shopper who changes releases between requests.
type releaseVisit struct {
	*releases
	name   string
	jwt    string // of the customer that the guest becomes
	token  string
	rnd    *rand.Rand
	keys   int
	want   map[string]int64 // quantity of each line
	lines  []string         // in the order of the first add
	counts map[string]int64
}

func newReleaseVisit(t testing.TB, pair *releases, i int) *releaseVisit {
	v := &releaseVisit{
		releases: pair, name: fmt.Sprintf("visitor-%d", i), jwt: customer(t, fmt.Sprintf("visitor-%d", i)),
		rnd: rand.New(rand.NewPCG(uint64(i), uint64(os.Getpid()))), want: map[string]int64{}, counts: map[string]int64{},
	}
	v.enter()
	return v
}

// enter begins with an empty guest's cart.
func (v *releaseVisit) enter() {
	v.token = fmt.Sprintf("the-token-of-a-%s-%d", v.name, v.keys)
}

// release picks the release for a request. newer says how many of ten requests go to the newer
// one.
func (v *releaseVisit) release(newer int) *shopper {
	if v.rnd.IntN(10) < newer {
		return v.newer
	}
	return v.older
}

// step makes one change as the customer, who may bring a guest's cart. It repeats the change on
// a random release, and compares the carts that both releases show.
func (v *releaseVisit) step(newer int) {
	v.keys++
	c := v.draw()
	mark := []string{"Idempotency-Key", fmt.Sprint(v.name, v.keys)}
	stamped := v.rnd.IntN(20) == 0
	if stamped {
		mark[0] = "X-Timestamp"
	}
	token := ""
	if v.rnd.IntN(8) == 0 {
		token = v.buyAsGuest(newer)
	}
	made := v.must(v.release(newer).as(token, v.jwt), c, mark...)
	c.apply(made.Cart)
	v.counts["changes"]++
	if token != "" && made.Cart.Merge == nil {
		v.adopt(v.awaitMerge(newer, token)) // whether the change or the merge came first is open
	} else if made.Cart.Merge != nil {
		v.counts["merges"]++
	}
	if stamped {
		time.Sleep(stampedAgain)
	}
	if stamped || v.rnd.IntN(3) == 0 {
		v.repeat(newer, c, token, made, mark)
	}
	v.compare(newer)
}

// awaitMerge reads the cart until a guest's cart is merged, which a busy machine may leave to a
// later request.
func (v *releaseVisit) awaitMerge(newer int, token string) cartView {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		r := v.must(v.release(newer).as(token, v.jwt), change{method: "GET", path: "/cart"})
		if r.Cart.Merge != nil {
			v.counts["merges"]++
			return r.Cart
		}
		if time.Since(began) > startLimit {
			v.p.broke("%s: the cart of a guest was not merged", v.name)
			return r.Cart
		}
	}
}

// adopt expects what a cart holds.
func (v *releaseVisit) adopt(c cartView) {
	v.want, v.lines = c.quantities(), nil
	for _, item := range c.Items {
		v.lines = append(v.lines, item.ID)
	}
}

// repeat sends a change again, which must be recognized.
func (v *releaseVisit) repeat(newer int, c change, token string, made reply, mark []string) {
	again := v.must(v.release(newer).as(token, v.jwt), c, mark...)
	v.counts["replays"]++
	if !again.replayed() {
		v.p.broke("%s: a repeat of %v was applied", v.name, c)
	}
	one, other := made.Cart.ItemID, again.Cart.ItemID
	if (one == nil) != (other == nil) || one != nil && *one != *other {
		v.p.broke("%s: a repeat of %v answers with another line", v.name, c)
	}
}

// buyAsGuest puts one line into a new guest's cart. A read merges it, or else the change that
// is sent with the token that is returned.
func (v *releaseVisit) buyAsGuest(newer int) (token string) {
	v.enter()
	id := v.product()
	add := change{method: "POST", path: "/cart/add", body: fmt.Sprintf(`{"product_id":%s,"qty":2}`, id)}
	v.must(v.release(newer).as(v.token, ""), add, "Idempotency-Key", "guest")
	v.bought(id, 2)
	if v.rnd.IntN(2) == 0 {
		v.awaitMerge(newer, v.token)
		return ""
	}
	return v.token
}

// product returns one of ten products, so that changes often affect the same line.
func (v *releaseVisit) product() string { return fmt.Sprint(firstProduct + v.rnd.IntN(10)) }

// change is a call, and what it does to the lines that the releaseVisit expects.
type change struct {
	method, path, body string
	apply              func(after cartView)
}

func (c change) String() string { return c.method + " " + c.path + " " + c.body }

// draw returns a random change.
func (v *releaseVisit) draw() change {
	id, n := v.product(), int64(1+v.rnd.IntN(3))
	field := fmt.Sprintf(`{"Account email":"%d@example.com"}`, v.rnd.IntN(3))
	item := func(c cartView) string { return *c.ItemID }
	switch kind := v.rnd.IntN(12); {
	case kind < 4 || len(v.lines) == 0:
		body := fmt.Sprintf(`{"product_id":%s,"qty":%d,"notice":"by %s"}`, id, n, v.name)
		return change{"POST", "/cart/add", body, func(cartView) { v.bought(id, n) }}
	case kind < 6:
		id = v.lines[v.rnd.IntN(len(v.lines))]
		body := fmt.Sprintf(`{"quantity":%d,"notice":"n%d"}`, n, v.keys)
		return change{"PATCH", "/cart/items/" + id, body, func(cartView) { v.want[id] = n }}
	case kind < 7:
		return change{"DELETE", "/cart/items/" + id, "", func(cartView) { v.removed(id) }}
	case kind < 9:
		body := fmt.Sprintf(`{"product_id":5,"qty":%d,"fields":%s}`, n, field)
		return change{"POST", "/cart/add", body, func(c cartView) { v.bought(item(c), n) }}
	case kind < 10:
		return v.edit(field)
	case kind < 11:
		return change{"POST", "/cart/coupon", `{"coupon":"TEN"}`, func(cartView) {}}
	}
	return change{"DELETE", "/cart/clear", "", func(cartView) { clear(v.want); v.lines = nil }}
}

// edit gives a line other fields, so that it may join another line. Without a line to edit, it
// removes the coupon.
func (v *releaseVisit) edit(field string) change {
	for _, id := range v.lines {
		if strings.HasPrefix(id, "5.") {
			return change{"PATCH", "/cart/items/" + id, `{"fields":` + field + `}`, func(c cartView) { v.became(id, *c.ItemID) }}
		}
	}
	return change{"DELETE", "/cart/coupon", "", func(cartView) {}}
}

func (v *releaseVisit) bought(id string, n int64) {
	if v.want[id] == 0 {
		v.lines = append(v.lines, id)
	}
	v.want[id] += n
}

func (v *releaseVisit) removed(id string) {
	delete(v.want, id)
	v.lines = slices.DeleteFunc(v.lines, func(line string) bool { return line == id })
}

// became changes the ID of a line. The line keeps its place, unless it joins another line.
func (v *releaseVisit) became(id, now string) {
	switch n := v.want[id]; {
	case id == now:
	case v.want[now] > 0:
		v.removed(id)
		v.want[now] += n
	default:
		delete(v.want, id)
		v.lines[slices.Index(v.lines, id)], v.want[now] = now, n
	}
}

// compare reads the cart from both releases, or from the only one that runs.
func (v *releaseVisit) compare(newer int) {
	one, other := v.release(newer), v.release(newer)
	read := change{method: "GET", path: "/cart"}
	a, b := v.must(one.as("", v.jwt), read), v.must(other.as("", v.jwt), read)
	v.counts["comparisons"]++
	var got []string
	for _, item := range a.Cart.Items {
		got = append(got, fmt.Sprintf("%s×%d", item.ID, item.Quantity))
	}
	var want []string
	for _, id := range v.lines {
		want = append(want, fmt.Sprintf("%s×%d", id, v.want[id]))
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		v.p.broke("%s: the cart holds %v, want %v", v.name, got, want)
		v.adopt(a.Cart)
	}
	if x, y := shown(a.Raw), shown(b.Raw); !bytes.Equal(x, y) {
		v.p.broke("%s: one release shows %s, the other %s", v.name, x, y)
	}
	if x, y := life(a.Header), life(b.Header); x != y {
		v.p.broke("%s: the ETags begin with %s and %s", v.name, x, y)
	}
}

// shown returns the cart in a response, without its expiry, which a read may change.
func shown(raw []byte) []byte {
	var body struct {
		Data map[string]any `json:"data"`
	}
	_ = json.Unmarshal(raw, &body)
	delete(body.Data, "expires_at")
	text, _ := json.Marshal(body.Data)
	return text
}

// life returns the part of an ETag that If-Match compares.
func life(h http.Header) string {
	tag, _, _ := strings.Cut(h.Get("ETag"), "-")
	return tag
}

// must makes a call that must succeed. On a busy machine it may have to be repeated, a stamped
// change after a second.
func (v *releaseVisit) must(c *shopper, call change, headers ...string) reply {
	for began := time.Now(); ; {
		r := c.send(call.method, call.path, call.body, headers...)
		known := r.outcome() == applied || r.outcome() == refused
		if !known && time.Since(began) < startLimit {
			time.Sleep(stampedAgain)
			continue
		}
		if r.Status != http.StatusOK {
			v.p.broke("%s: %v: %v", v.name, call, r)
		}
		return r
	}
}

// stampedAgain is more than the second after which a stamp marks a repeat.
const stampedAgain = 1100 * time.Millisecond
