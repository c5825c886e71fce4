package torture

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// An agent and a shopper change one cart at the same time, through two instances. The agent replaces all
// lines by what it has seen, with and without their ids, loses answers, and repeats what was refused.
// The test orders all changes by the versions that they made: an update must follow a cart that its agent
// has seen, or made. Finally, the shopper logs in.
func TestPromise16_AnAgentUndoesNothingUnseen(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	p := promised(t, 16, "an agent undoes nothing that it has not seen", "0 undone, 0 doubled in 100,000 rounds")
	redis, database := ephemeral.StartRedis(t), catalog(t)
	execSQL(t, database, `UPDATE stores SET cart_url = 'https://shop.example.com/cart' WHERE id = 1`)
	f := &fair{p: p, wanted: sized[int64](2_000, 100_000)}
	for range 2 {
		f.instances = append(f.instances, newShopper(t, startService(t, "REDIS_URL="+redis.URL, "DATABASE_URL="+database, "UCP=on",
			"UCP_PROFILES=trust", "PUBLIC_URL=https://shop.example.com")))
	}
	bar := p.progress("rounds", int(f.wanted))
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for f.rounds.Load() < f.wanted && !t.Failed() {
				if v := f.newPair(); v != nil {
					v.shop(20)
				}
				_ = bar.Set64(min(f.wanted, f.rounds.Load()))
			}
		})
	}
	all.Wait()
	p.counted("rounds", f.rounds.Load())
	p.counted("updates by agents", f.updates.Load())
	p.counted("of them refused, because of changes unseen", f.refused.Load())
	p.counted("undone unseen, lost or doubled", f.wrong.Load())
	p.tried("changes by shoppers", f.changes.Load())
	p.tried("repeats with the same key", f.repeats.Load())
	assert.That(t, f.updates.Load() > f.refused.Load() && f.refused.Load() > 0, "no update was made, or none refused, so the test shows nothing")
}

type fair struct {
	p         *promise
	instances []*shopper
	wanted    int64

	carts, rounds, updates, refused, changes, repeats, wrong atomic.Int64
}

func (f *fair) instance() *shopper { return f.instances[rand.IntN(len(f.instances))] }

type pair struct {
	*fair
	guest, customer *shopper

	// What the agent knows.
	id        string
	shown     agentsCart      // the last one that it got
	seen      map[string]bool // the tags of the versions that it got
	refusal   *update         // of the last update that was refused
	sent      int             // updates
	quantity  int64           // of its own product
	loggingIn bool

	mu      sync.Mutex
	made    map[int64]madeChange // by the version that it made
	spoiled bool                 // a change has an unknown outcome, because the machine is too busy
}

type madeChange struct {
	tag    string // of the version
	update bool   // by the agent, not by the shopper
	apply  func(map[string]int64)
}

// update is an agent's request, and what it got.
type update struct{ body, key, answer string }

type agentsCart struct {
	ID        string
	LineItems []agentsLine `json:"line_items"`
	Messages  []agentsMessage
	URL       string `json:"continue_url"`
}

type agentsMessage struct{ Code string }

type agentsLine struct {
	ID   string `json:"id,omitempty"`
	Item struct {
		ID string `json:"id"`
	} `json:"item"`
	Quantity int64 `json:"quantity"`
}

func (c agentsCart) says(code string) bool { return slices.Contains(c.Messages, agentsMessage{code}) }

func (c agentsCart) quantities() map[string]int64 {
	found := map[string]int64{}
	for _, line := range c.LineItems {
		found[line.Item.ID] = line.Quantity
	}
	return found
}

// newPair lets an agent create a cart, and a shopper open it. It returns nil if that fails.
func (f *fair) newPair() *pair {
	v := &pair{fair: f, seen: map[string]bool{}, made: map[int64]madeChange{}}
	name := fmt.Sprintf("fair-%d-%d-and-a-key-of-22-characters", os.Getpid(), f.carts.Add(1))
	created, cart := v.ask("POST", "", v.body(false), name)
	link, err := url.Parse(cart.URL)
	if created.Status != http.StatusCreated || err != nil || link.Fragment == "" {
		v.p.broke("create: %v", created)
		return nil
	}
	v.id = cart.ID
	code := strings.TrimPrefix(link.Fragment, "handover=")
	opened, ok := served(func() reply {
		return f.instance().send("POST", "/cart/handover/redeem", fmt.Sprintf(`{"code":%q,"keep_agent":true}`, code), "Idempotency-Key", name)
	})
	if !ok || opened.Cart.Token == nil || opened.Cart.Count != 1 {
		v.p.broke("open: %v", opened)
		return nil
	}
	v.guest = f.instances[0].as(*opened.Cart.Token, "")
	v.customer = v.guest.as(v.guest.Token, customer(v.p.t, name))
	v.note(opened, false, func(held map[string]int64) { maps.Copy(held, cart.quantities()) })
	return v
}

// shop makes rounds, in each of which both make a call at the same time, and checks the cart.
func (v *pair) shop(rounds int) {
	for n := range rounds + 1 {
		v.loggingIn = n == rounds
		var both sync.WaitGroup
		both.Go(v.agent)
		both.Go(v.person)
		both.Wait()
		v.rounds.Add(1)
	}
	v.check()
}

func (v *pair) person() {
	item, n := plainLine(1+rand.IntN(6)), 1+rand.Int64N(5) // the first product is the agent's
	switch kind := rand.IntN(4); {
	case v.loggingIn:
		v.change(v.customer, "GET", "/cart", "", nil)
	case kind == 0: // only looks at the shop
	case kind == 1:
		body := fmt.Sprintf(`{"quantity":%d,"notice":"%d"}`, n-1, v.changes.Load()) // another notice is a change
		v.change(v.guest, "PATCH", "/cart/items/"+item, body, func(held map[string]int64) { held[item] = n - 1 })
	default:
		v.change(v.guest, "POST", "/cart/add", fmt.Sprintf(`{"product_id":%s,"qty":%d}`, item, n), func(held map[string]int64) { held[item] += n })
	}
}

// change makes a call as a shopper, and notes the change that it made.
func (v *pair) change(as *shopper, method, path, body string, apply func(map[string]int64)) {
	r := v.instance().as(as.Token, as.JWT).send(method, path, body)
	switch {
	case r.Status == http.StatusOK && apply != nil:
		v.changes.Add(1)
		v.note(r, false, apply)
	case r.outcome() == unknown:
		v.spoiled = true
	case r.outcome() == refused && r.Code != "item_not_found":
		v.p.broke("%s %s: %v", method, path, r)
	}
}

// agent reads, updates, or repeats an update that was refused. It may lose the answer to a read.
func (v *pair) agent() {
	kind := rand.IntN(6)
	if kind < 3 || v.loggingIn {
		if r, cart := v.ask("GET", "/"+v.id, "", ""); r.Status == http.StatusOK && rand.IntN(3) > 0 {
			v.see(r, cart)
		}
	}
	switch {
	case v.loggingIn && len(v.shown.LineItems) > 0:
		v.update(v.body(true)) // without ids, it may begin another cart
	case v.loggingIn, kind == 2:
	case kind == 3 && v.refusal != nil && rand.IntN(2) == 0:
		v.update(v.refusal.body)
	case kind == 3 && v.refusal != nil:
		v.repeats.Add(1)
		if r, _ := v.ask("PUT", "/"+v.id, v.refusal.body, v.refusal.key); string(r.Raw) != v.refusal.answer {
			v.p.broke("PUT with the same key: %v, the first time %s", r, v.refusal.answer)
		}
	default:
		v.update(v.body(kind == 0 || kind == 5))
	}
}

func (v *pair) see(r reply, cart agentsCart) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shown, v.seen[r.versionTag("")] = cart, true
}

// body is an update of all lines of the cart that the agent has seen, with their ids or without. It changes its own line.
func (v *pair) body(ids bool) string {
	v.quantity = v.quantity%900 + 1
	lines := []agentsLine{{Quantity: v.quantity}}
	lines[0].Item.ID = plainLine(0)
	for _, line := range v.shown.LineItems {
		if !ids {
			line.ID = ""
		}
		if line.Item.ID == plainLine(0) {
			lines[0].ID = line.ID
		} else if rand.IntN(8) > 0 { // otherwise the agent removes it
			lines = append(lines, line)
		}
	}
	return string(assert.Must(json.Marshal(map[string]any{"line_items": lines}))(v.p.t))
}

// update replaces all lines. The agent may lose the answer.
func (v *pair) update(body string) {
	v.sent++
	key := fmt.Sprintf("an-update-of-22-characters-%d", v.sent)
	r, cart := v.ask("PUT", "/"+v.id, body, key)
	if r.Status != http.StatusOK {
		v.p.broke("PUT %s: %v", body, r)
		return
	}
	v.updates.Add(1)
	if cart.says("cart_changed") || cart.says("cart_moved") {
		v.refused.Add(1)
		v.refusal = &update{body, key, string(r.Raw)}
	} else {
		v.refusal = nil // a second time, it would change nothing
		var sent agentsCart
		assert.NoError(v.p.t, json.Unmarshal([]byte(body), &sent))
		v.note(r, true, func(held map[string]int64) {
			clear(held)
			maps.Copy(held, sent.quantities())
		})
	}
	if rand.IntN(3) > 0 {
		v.see(r, cart)
	}
}

// ask makes a call as the agent, and repeats it until its outcome is known.
func (v *pair) ask(method, path, body, key string) (r reply, cart agentsCart) {
	headers := []string{"UCP-Agent", `profile="https://agent.example.com/profile.json"`}
	if key != "" {
		headers = append(headers, "Idempotency-Key", key)
	}
	for began := time.Now(); time.Since(began) < 3*startLimit; time.Sleep(20 * time.Millisecond) {
		r = v.instance().send(method, "/ucp/pk_demo/carts"+path, body, headers...)
		if o := r.outcome(); o != unchanged && o != unknown {
			break
		}
	}
	if err := json.Unmarshal(r.Raw, &cart); err != nil {
		v.p.broke("%s %s: %v", method, path, r)
	}
	return r, cart
}

// note records a change that made the version which an answer shows. Two changes cannot make the same one.
func (v *pair) note(r reply, update bool, apply func(map[string]int64)) {
	tag := r.versionTag("")
	var version int64
	_, _ = fmt.Sscan(strings.Split(tag+"..", ".")[1], &version)
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, twice := v.made[version]; twice {
		v.fail("two changes made version %d, one of them %v", version, r)
	}
	v.made[version] = madeChange{tag, update, apply}
}

func (v *pair) fail(format string, arguments ...any) {
	v.wrong.Add(1)
	v.p.broke("cart %s: "+format, append([]any{v.id}, arguments...)...)
}

// check replays all changes, and compares the customer's cart with the result, and the agent's.
func (v *pair) check() {
	if v.spoiled {
		return
	}
	held := map[string]int64{}
	versions := slices.Sorted(maps.Keys(v.made))
	for i, version := range versions {
		m, before := v.made[version], v.made[version-1]
		if i > 0 && version != versions[i-1]+1 {
			v.fail("nobody made the version before %d", version)
		}
		if m.update && !before.update && !v.seen[before.tag] {
			v.fail("the agent's update made version %d, and it had not seen the one before", version)
		}
		m.apply(held)
	}
	maps.DeleteFunc(held, func(_ string, n int64) bool { return n == 0 })
	var r reply
	for began := time.Now(); time.Since(began) < startLimit && !maps.Equal(r.Cart.quantities(), held); time.Sleep(20 * time.Millisecond) {
		r = v.customer.send("GET", "/cart", "")
	}
	if !maps.Equal(r.Cart.quantities(), held) {
		v.fail("the customer has %v, want %v", r, held)
	}
	if r, cart := v.ask("GET", "/"+v.id, "", ""); r.Status != http.StatusOK || len(cart.LineItems) != 0 || !cart.says("cart_moved") {
		v.fail("after the login, the agent reads %v", r)
	}
}
