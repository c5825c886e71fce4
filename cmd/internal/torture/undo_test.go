package torture

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// Shoppers log in with a friend's cart token, and undo the merge, while the nodes of a cluster fail and instances are
// killed. They send the undo twice at the same time, repeat it until it is answered, and add to their carts
// meanwhile. Afterwards, everything is in the cart of whoever has bought it.
func TestPromise17_AnUndoneMergeLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	p := promised(t, 17, "an undone merge loses and doubles nothing", "0 wrong of 20,000 undos")
	m := startMerges(t, p)
	m.wanted = sized[int64](200, 20_000)
	u := &undos{merges: m}
	stop := m.shop(u.visit)
	defer stop()
	f := startFaults(m)
	defer f.end()
	bar := p.progress("undos", int(m.wanted))
	limit := ephemeral.Patience(sized(2*time.Minute, 10*time.Minute))
	for began := time.Now(); (u.undone.Load() < m.wanted || !f.complete()) && time.Since(began) < limit; {
		f.next()
		_ = bar.Set(int(min(m.wanted, u.undone.Load())))
	}
	f.end()
	stop()
	p.counted("undos", u.undone.Load())
	p.counted("wrong", m.wrong.Load())
	p.counted("lost unconfirmed", m.lost.Load())
	p.detail("repeats", float64(u.repeats.Load()), "")
	f.report()
	assert.That(t, u.undone.Load() >= m.wanted && u.repeats.Load() > 0, "only %d undos, %d repeats", u.undone.Load(), u.repeats.Load())
}

type undos struct {
	*merges
	undone, repeats atomic.Int64
}

// visit makes one visit. The shopper has the first two lines, of which the friend has more.
func (u *undos) visit(v *visit) {
	v.customers, v.devices[1] = v.customers[:1], v.devices[0]
	shopper := v.devices[0].as("", v.devices[0].JWT)
	var own, friends []*purchase
	for n := range 5 {
		if n < 2 {
			own = append(own, v.buy(shopper))
		} else {
			friends = append(friends, v.buy(v.guest))
		}
	}
	token, ok := u.undo(v, func() { own = append(own, v.buy(shopper)) })
	if !ok {
		held, settled := v.settled()
		confirmed := slices.ContainsFunc(friends, func(p *purchase) bool { return p.confirmed })
		if !settled || confirmed || v.amiss(held[0], slices.Concat(own, friends)) != "" { // a failover may lose all that is not
			v.isWrong(fmt.Sprintf("the merge was not undone; something of the friend was confirmed: %t", confirmed))
		}
		return
	}
	guest := v.guest.as(token, "")
	_, _ = served(func() reply { return guest.as(token, shopper.JWT).send("GET", "/cart", "") }) // merges nothing
	given, read := served(func() reply { return guest.send("GET", "/cart", "") })
	held, settled := v.settled()
	if !read || !settled {
		v.isWrong("the carts cannot be read")
		return
	}
	for whose, p := range map[*map[string]int64][]*purchase{new(given.Cart.quantities()): friends, &held[0]: own} {
		if wrong := v.amiss(*whose, p); wrong != "" {
			v.isWrong(fmt.Sprintf("%s\nthe shopper's cart: %v, the friend's: %v", wrong, held[0], given.Cart.quantities()))
		}
	}
}

// buy makes the next purchase of a visit.
func (v *visit) buy(as *shopper) *purchase {
	p := v.choose()
	p.stamped, p.mark = false, []string{"Idempotency-Key", strconv.Itoa(len(v.bought))}
	r, ok := served(func() reply { return as.send("POST", "/cart/add", p.body, p.mark...) })
	if !ok {
		v.run.p.broke("%s: %s: %v", v.name, p.body, r)
	}
	p.confirmed = r.Header.Get("Durability") == "confirmed"
	return p
}

// undo logs in and undoes the merge that a response reports, while the shopper does something else. It returns the token
// of the friend's new cart. If a failover takes the merge back, another one is reported.
func (u *undos) undo(v *visit, meanwhile func()) (token string, ok bool) {
	for began := time.Now(); time.Since(began) < serveLimit; time.Sleep(50 * time.Millisecond) {
		login := v.devices[0].send("GET", "/cart", "")
		if login.Status != http.StatusOK || login.Cart.Merge == nil || login.Cart.Merge.Lines == 0 {
			continue
		}
		body := fmt.Sprintf(`{"id":%q}`, login.Cart.Merge.ID)
		var tokens [2]string
		var last [2]reply
		var all sync.WaitGroup
		for i := range tokens {
			all.Go(func() { tokens[i], last[i] = u.insist(v.devices[i], body) })
		}
		if meanwhile != nil {
			all.Go(meanwhile)
			meanwhile = nil
		}
		all.Wait()
		if tokens[0] != tokens[1] {
			v.isWrong(fmt.Sprintf("two answers to %s have the tokens %q: %v", body, tokens, last))
			return "", false
		}
		if tokens[0] != "" {
			u.undone.Add(1)
			return tokens[0], true
		}
	}
	return "", false
}

// insist repeats an undo until it is answered, and returns the token; "" if the merge is not known.
func (u *undos) insist(as *shopper, body string) (token string, r reply) {
	for began := time.Now(); time.Since(began) < serveLimit; time.Sleep(20 * time.Millisecond) {
		r = as.send("POST", "/cart/merge/undo", body)
		var answer struct {
			Data struct {
				Undone struct {
					GuestCart string `json:"guest_cart"`
				}
			}
		}
		switch {
		case r.Status == http.StatusNotFound:
			return "", r
		case r.Status == http.StatusOK && json.Unmarshal(r.Raw, &answer) == nil:
			return answer.Data.Undone.GuestCart, r
		case r.outcome() == refused:
			u.p.broke("%s: %v", body, r)
			return "", r
		}
		u.repeats.Add(1)
	}
	return "", r
}

// amiss returns how a cart differs from purchases; "" if only unconfirmed ones are missing.
func (v *visit) amiss(held map[string]int64, all []*purchase) (wrong string) {
	for _, p := range all {
		line, quantity := plainLine(p.line), int64(1)
		for range p.digit {
			quantity *= 3
		}
		switch has := held[line]/quantity%3 == 1; {
		case has:
			held[line] -= quantity
		case p.confirmed:
			wrong += fmt.Sprintf("\n%s is missing", p.body)
		default:
			v.run.lost.Add(1)
		}
	}
	for line, left := range held {
		if left > 0 {
			wrong += fmt.Sprintf("\nline %s has %d too many", line, left)
		}
	}
	return wrong
}
