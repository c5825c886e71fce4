package torture

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Shoppers log in with a friend's cart token, and undo the merge, while the nodes of a cluster fail and instances are
// killed. They send the undo twice at the same time, repeat it until it is answered, and add to their carts
// meanwhile. Afterwards, everything is in the cart of whoever has bought it.
func TestPromise17_AnUndoneMergeLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	p := promised(t, 17, "an undone merge loses and doubles nothing", "0 wrong of 20,000 undos")
	l, f := startFaultyCluster(t, p)
	u := &undos{}
	wanted := sized[int64](200, 20_000)
	f.during(l.shop(sized(32, 128), u.visit), "undos", wanted, u.undone.Load)
	for _, v := range l.visits {
		if !f.failedOver(v.began, v.ended) {
			v.isWrong(fmt.Sprintf("without a failover, %d changes or the friend's cart were lost", v.lost))
		}
	}
	p.counted("undos", u.undone.Load())
	p.counted("wrong", l.wrong.Load())
	p.counted("lost unconfirmed", l.lost.Load())
	p.detail("merges that a failover has lost", float64(u.gone.Load()), "")
	p.tried("repeats", u.repeats.Load())
	f.report()
}

type undos struct{ undone, gone, repeats atomic.Int64 }

// visit makes one visit. The shopper has the first two lines, of which the friend has more. A visit that lost something
// is kept.
func (u *undos) visit(v *visit) {
	v.customers, v.devices[1], v.staysGuest = v.customers[:1], v.devices[0], true
	customer := v.devices[0].as("", v.devices[0].JWT)
	buy := func(as *shopper) *purchase {
		p := v.choose()
		v.insist(p, as)
		return p
	}
	own := []*purchase{buy(customer), buy(customer)}
	friends := []*purchase{buy(v.guest), buy(v.guest), buy(v.guest)}
	token, ok := u.undo(v, func() { own = append(own, buy(customer)) })
	if !ok {
		held, settled := v.settled()
		confirmed := slices.ContainsFunc(friends, func(p *purchase) bool { return p.confirmed })
		if wrong := v.judge(tallyOf(v.bought, held...)); !settled || confirmed || wrong != "" { // a failover may lose all that is not
			v.isWrong(fmt.Sprintf("the merge was not undone; settled: %t, something of the friend was confirmed: %t, the carts have %v%s\nthe friend's: %v\nthe customer's: %v",
				settled, confirmed, held, wrong, friends, own))
		}
		u.gone.Add(1)
		v.keep(v)
		return
	}
	friend := v.guest.as(token, "")
	_, _ = served(func() reply { return friend.as(token, customer.JWT).send("GET", "/cart", "") }) // merges nothing
	given, read := served(func() reply { return friend.send("GET", "/cart", "") })
	held, settled := v.settled()
	if !read || !settled {
		v.isWrong("the carts cannot be read")
		return
	}
	wrong := v.judge(tallyOf(friends, given.Cart.quantities()))
	lost := v.lost
	if wrong += v.judge(tallyOf(own, held[0])); wrong != "" {
		v.isWrong(wrong)
	}
	if v.lost += lost; v.lost > 0 {
		v.load.lost.Add(v.lost)
		v.keep(v)
	}
}

// undo logs in and undoes the merge that a response reports, while the shopper does something else. It returns the token
// of the friend's new cart. If a failover takes the merge back, another one is reported. If it has lost the friend's
// cart, none is: then undo gives up.
func (u *undos) undo(v *visit, meanwhile func()) (token string, ok bool) {
	began := time.Now()
	mergeable := began // when there was last something to merge
	for time.Since(began) < serveLimit && time.Since(mergeable) < staleLimit {
		time.Sleep(50 * time.Millisecond)
		login := v.devices[0].send("GET", "/cart", "")
		merged := login.Cart.Merge != nil && login.Cart.Merge.Lines > 0
		if merged || login.Status != http.StatusOK || !v.nothingToMerge() {
			mergeable = time.Now()
		}
		if !merged || login.Status != http.StatusOK {
			continue
		}
		body := fmt.Sprintf(`{"id":%q}`, login.Cart.Merge.ID)
		var tokens [2]string
		var last [2]reply
		var all sync.WaitGroup
		for i := range tokens {
			all.Go(func() { tokens[i], last[i] = u.insist(v, body) })
		}
		if meanwhile != nil {
			all.Go(meanwhile)
			meanwhile = nil
		}
		all.Wait()
		mergeable = time.Now() // the answers may have taken long, and tell that a failover has taken the merge back
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

// staleLimit is longer than a replaced master, such as one that was frozen, shows old carts.
const staleLimit = 5 * time.Second

// insist repeats an undo until it is answered, and returns the token; "" if the merge is not known.
func (u *undos) insist(v *visit, body string) (token string, r reply) {
	for began := time.Now(); time.Since(began) < serveLimit; time.Sleep(20 * time.Millisecond) {
		r = v.devices[0].send("POST", "/cart/merge/undo", body)
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
			v.p.broke("%s: %v", body, r)
			return "", r
		}
		u.repeats.Add(1)
	}
	return "", r
}
