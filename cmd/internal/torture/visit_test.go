package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"commerce/auth"
	"commerce/deploy/ephemeral"
)

const changesPerLine = 6 // 3^0 to 3^5; the sum of their doubles is below the limit of a line

var serveLimit = ephemeral.Patience(time.Minute) // by then, every outage has ended

// visit is everything that one guest does: changes, logins, and changes as a customer. Some
// guests log in on two devices, and some tokens are shared by two customers.
type visit struct {
	*load
	name       string
	lines      int
	token      auth.CartToken
	guest      *shopper
	devices    [2]*shopper // of one customer or of two; they send the guest's token too
	customers  []string
	bought     []*purchase
	staysGuest bool // no repeat logs in

	began, ended time.Time
	lost         int64            // changes that the last comparison missed
	twice        int64            // changes that it found in the carts of both customers
	more         int64            // changes that it found too often
	counted      atomic.Bool      // as wrong
	held         map[string]int64 // what the cart must hold from now on, since no fault may change it
}

// purchase is an add to a line. Its quantity is a power of 3 that no other change of the line
// has. So the digits of the line's quantity in base 3 say how often each change counts.
type purchase struct {
	item      string // line
	quantity  int64
	mark      []string // header; none for a change that cannot be repeated unless it was refused
	stamped   bool
	by        *shopper // who got the response that it was made
	made      bool     // otherwise its outcome is unknown
	at        time.Time
	confirmed bool // by all replicas

	calls []string // for the report of a failure
}

func (p *purchase) body() string {
	return fmt.Sprintf(`{"product_id":%s,"qty":%d}`, p.item, p.quantity)
}

func (p *purchase) in(held map[string]int64) int64 { return held[p.item] / p.quantity % 3 }

func (p *purchase) String() string {
	return fmt.Sprintf("%s %s, confirmed: %t\n\t%s", p.mark, p.body(), p.confirmed, strings.Join(p.calls, "\n\t"))
}

func tokenOf(visit string) auth.CartToken {
	token, _ := auth.ParseCartToken("a-token-of-a-shopper-who-logs-in-" + visit)
	return token
}

func (l *load) newVisit(name string) *visit {
	token := tokenOf(name)
	v := &visit{load: l, name: name, lines: 3, token: token, guest: l.client.as(token.Reveal(), ""), customers: []string{"c-" + name}, began: time.Now()}
	if rand.IntN(4) == 0 {
		v.customers = append(v.customers, "d-"+name)
	}
	for i := range v.devices {
		v.devices[i] = l.client.as(token.Reveal(), customer(l.t, v.customers[i%len(v.customers)]))
	}
	return v
}

func (v *visit) keys() []string {
	keys := []string{guestKey(v.token)}
	for _, c := range v.customers {
		keys = append(keys, "cart:{1:c:"+auth.CustomerKey(c)+"}")
	}
	return keys
}

func guestKey(token auth.CartToken) string { return "cart:{1:g:" + token.Digest() + "}" }

func (v *visit) full() bool { return len(v.bought) == v.lines*changesPerLine }

func (v *visit) latest() *purchase {
	if len(v.bought) == 0 {
		return nil
	}
	return v.bought[len(v.bought)-1]
}

// choose begins the next change, with a key.
func (v *visit) choose() *purchase {
	n := len(v.bought)
	p := &purchase{item: plainLine(n % v.lines), quantity: 1, mark: []string{"Idempotency-Key", strconv.Itoa(n)}}
	for range n / v.lines {
		p.quantity *= 3
	}
	v.bought = append(v.bought, p)
	v.changes.Add(1)
	return p
}

// chooseAny is choose, but some changes have only a stamp or nothing that identifies them.
func (v *visit) chooseAny() *purchase {
	p := v.choose()
	switch n := rand.IntN(8); {
	case n == 0:
		p.stamped, p.mark[0] = true, "X-Timestamp"
	case n < 4 && v.unkeyed:
		p.mark = nil
	}
	return p
}

func (v *visit) make() {
	for len(v.bought) < v.lines*changesPerLine-3 {
		var last *purchase
		for range 1 + rand.IntN(2) {
			last = v.chooseAny()
			v.insist(last, v.guest)
		}
		v.logIn()
		v.repeat(last)
	}
	v.compare("at its end")
	v.keep(v)
}

// logIn sends a customer's first requests: reads and changes, one or two at a time.
func (v *visit) logIn() {
	var all sync.WaitGroup
	for _, device := range v.devices[:1+rand.IntN(2)] {
		if rand.IntN(2) == 0 {
			all.Go(func() { v.note(device.send("GET", "/cart", "")) })
			continue
		}
		p := v.chooseAny()
		all.Go(func() { v.insist(p, device) })
	}
	all.Wait()
}

// repeat repeats a guest's acknowledged change in a way that the service must recognize: as a
// customer with the guest's token, or from a page that is still the guest's. A failover may
// lose an unconfirmed key with the guest's cart after a merge has moved the change. Then only
// the new owner's cart knows the key. A guest's cart does not know a customer's keys.
func (v *visit) repeat(p *purchase) {
	as := []*shopper{v.devices[0], v.devices[1], v.guest}[rand.IntN(3)]
	ofGuest := p.by == v.guest && (p.confirmed || !v.loses)
	ofCustomer := as != v.guest && len(v.customers) == 1
	if p.mark != nil && !p.stamped && (ofGuest || ofCustomer) && rand.IntN(2) == 0 {
		v.insist(p, as)
	}
}

// insist repeats a change until it gets a response. If a guest's change has a key, the repeat
// may come from the customer that the guest has become.
func (v *visit) insist(p *purchase, as *shopper) {
	for began := time.Now(); time.Since(began) < serveLimit; {
		r := v.try(p, as)
		switch outcome := r.outcome(); {
		case outcome == applied:
			return
		case outcome == unknown && p.mark == nil: // it may count or not
			v.unknown.Add(1)
			return
		case outcome == refused:
			v.p.broke("%s: %s was refused: %v", v.name, p.body(), r)
			return
		}
		v.repeats.Add(1)
		if p.stamped {
			time.Sleep(v.stampPause)
			continue
		}
		time.Sleep(20*time.Millisecond + rand.N(80*time.Millisecond))
		if as == v.guest && !v.staysGuest && p.mark != nil && rand.IntN(4) == 0 {
			as = v.devices[0]
			v.asCustomer.Add(1)
		}
	}
	v.p.broke("%s: %s was not served for %v", v.name, p.body(), serveLimit)
}

// try makes a change once. A first response must show it.
func (v *visit) try(p *purchase, as *shopper) reply {
	r := as.send("POST", "/cart/add", p.body(), p.mark...)
	v.note(r)
	if v.lines != linesOfBuyers {
		p.calls = append(p.calls, fmt.Sprintf("%s by %s, took %v: %d %s %s, replayed: %t",
			clock(time.Now()), v.role(as), r.Took.Round(time.Millisecond), r.Status, r.Code, r.Header.Get("Durability"), r.replayed()))
	}
	if r.outcome() != applied {
		return r
	}
	switch {
	case r.replayed() && p.stamped:
		v.replayedStamps.Add(1)
	case r.replayed():
		v.replayedKeys.Add(1)
	case p.in(r.Cart.quantities()) == 0:
		v.isWrong(fmt.Sprintf("a response does not show its change: %v", r))
	}
	p.by, p.made, p.at = as, true, time.Now()
	p.confirmed = p.confirmed || r.Header.Get("Durability") == "confirmed"
	return r
}

func (v *visit) role(as *shopper) string {
	if as.JWT == "" {
		return "the guest"
	}
	return fmt.Sprintf("device %d", slices.Index(v.devices[:], as))
}

func clock(t time.Time) string { return t.Format("15:04:05.000") }

// note counts the merge that a response reports, if any, unless another response has reported it.
func (v *visit) note(r reply) (merged bool) {
	if r.Cart.Merge == nil || r.Cart.Merge.Lines == 0 {
		return false
	}
	if _, again := v.reported.LoadOrStore(r.Cart.Merge.ID, true); again {
		return false
	}
	v.merged.Add(1)
	return true
}

// compare reads the carts and compares them with the purchases. If a cart lacks something,
// compare reads it again for a while: a master that was frozen may show an old cart until it
// learns about its successor.
func (v *visit) compare(when string) {
	var wrong string
	for began := time.Now(); time.Since(began) < staleLimit; time.Sleep(200 * time.Millisecond) {
		held, ok := v.settled()
		if !ok {
			wrong = fmt.Sprintf("a merge did not finish within %v", serveLimit)
			break
		}
		if wrong = v.judge(tallyOf(v.bought, held...)); wrong == "" {
			return
		}
	}
	v.isWrong(when + ": " + wrong)
}

// judge returns what is wrong with a tally, and excuses what a failover may do.
func (v *visit) judge(t tally) (wrong string) {
	v.lost, v.twice, v.more, wrong = int64(len(t.lost)), t.twice, t.more, t.wrong
	for _, p := range t.lost {
		if p.confirmed || !v.loses {
			wrong += fmt.Sprintf("\nlost: %v", p)
		}
	}
	if t.twice > 0 && !v.loses {
		wrong += fmt.Sprintf("\n%d changes are in two carts", t.twice)
	}
	return wrong
}

// isWrong reports a visit as wrong, once.
func (v *visit) isWrong(how string) {
	if !v.counted.Swap(true) {
		v.wrong.Add(1)
		v.p.broke("visit %s of %v, %s", v.name, v.customers, how)
	}
}

// settled returns the quantities of each customer once no merge is pending.
func (v *visit) settled() ([]map[string]int64, bool) {
	for began := time.Now(); time.Since(began) < serveLimit; time.Sleep(30 * time.Millisecond) {
		quiet := v.nothingToMerge()
		var held []map[string]int64
		for _, d := range v.devices[:len(v.customers)] {
			r := d.send("GET", "/cart", "")
			quiet = !v.note(r) && r.Status == http.StatusOK && quiet
			held = append(held, r.Cart.quantities())
		}
		if quiet {
			return held, true
		}
	}
	return nil, false
}

// nothingToMerge reports whether the guest's cart is empty, and no merge of it is incomplete.
func (v *visit) nothingToMerge() bool {
	left := v.guest.send("GET", "/cart/count", "")
	claimed, err := v.redis.Exists(context.Background(), guestKey(v.token)+":claimed").Result()
	return err == nil && claimed == 0 && left.Status == http.StatusOK && left.Cart.Count == 0
}

// look reads the guest's cart until that succeeds.
func (v *visit) look() (held map[string]int64) {
	r, ok := served(func() reply { return v.guest.send("GET", "/cart", "") })
	if !ok {
		v.isWrong(fmt.Sprintf("the cart cannot be read within %v: %v", startLimit, r))
	}
	return r.Cart.quantities()
}
