package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"commerce/auth"
	"commerce/deploy/ephemeral"
)

const (
	visitLines     = 3
	changesPerLine = 6 // 3^0 to 3^5; the sum of their doubles is below the limit of a line

	// stampPause is how long a shopper waits before a repeat that only its X-Timestamp
	// identifies. A stamp counts after 1 s by Redis's clock, and clocks are 2 s apart.
	stampPause = 3200 * time.Millisecond
)

var serveLimit = ephemeral.Patience(time.Minute) // by then, every outage has ended

// visit is everything that one guest does: changes, logins, and changes as a customer. Some
// guests log in on two devices, and some tokens are shared by two customers.
type visit struct {
	run       *merges
	name      string
	token     auth.CartToken
	guest     *shopper
	devices   [2]*shopper // of one customer or of two; they send the guest's token too
	customers []string
	bought    []*purchase

	began, ended time.Time
	lost         int64 // changes that the last comparison missed
	twice        int64 // changes that it found in the carts of both customers
	counted      bool  // as wrong
}

// purchase is an add to a line. Its quantity is a power of 3 that no other change of the line
// has. So the digits of the line's quantity in base 3 say how often each change counts.
type purchase struct {
	line, digit int
	body        string
	mark        []string // header
	stamped     bool
	by          *shopper // who got the response that it was made
	confirmed   bool     // by all replicas

	calls []string // for the report of a failure
}

func (m *merges) newVisit(name string) *visit {
	token, _ := auth.ParseCartToken("a-token-of-a-shopper-who-logs-in-" + name)
	v := &visit{run: m, name: name, token: token, guest: m.client.as(token.Reveal(), ""), customers: []string{"c-" + name}, began: time.Now()}
	if rand.IntN(4) == 0 {
		v.customers = append(v.customers, "d-"+name)
	}
	for i := range v.devices {
		v.devices[i] = m.client.as(token.Reveal(), customer(m.t, v.customers[i%len(v.customers)]))
	}
	return v
}

func (v *visit) keys() []string {
	keys := []string{v.guestKey()}
	for _, c := range v.customers {
		keys = append(keys, "cart:{1:c:"+auth.CustomerKey(c)+"}")
	}
	return keys
}

func (v *visit) guestKey() string { return "cart:{1:g:" + v.token.Digest() + "}" }

func (v *visit) make() {
	for len(v.bought) < visitLines*changesPerLine-3 {
		var last *purchase
		for range 1 + rand.IntN(2) {
			last = v.choose()
			v.insist(last, v.guest)
		}
		v.logIn()
		v.repeat(last)
	}
	v.compare("at its end")
	v.ended = time.Now()
	v.run.keep(v)
}

func (v *visit) choose() *purchase {
	n := len(v.bought)
	p := &purchase{line: n % visitLines, digit: n / visitLines, stamped: rand.IntN(8) == 0}
	quantity := 1
	for range p.digit {
		quantity *= 3
	}
	p.body = fmt.Sprintf(`{"product_id":%d,"qty":%d}`, firstProduct+p.line, quantity)
	p.mark = []string{"Idempotency-Key", strconv.Itoa(n)}
	if p.stamped {
		p.mark = []string{"X-Timestamp", strconv.Itoa(n)}
	}
	v.bought = append(v.bought, p)
	v.run.changes.Add(1)
	return p
}

// logIn sends a customer's first requests: reads and changes, one or two at a time.
func (v *visit) logIn() {
	var calls []func()
	for i, d := range v.devices[:1+rand.IntN(2)] {
		if rand.IntN(2) == 0 {
			calls = append(calls, func() { v.note(d.send("GET", "/cart", "")) })
			continue
		}
		p := v.choose()
		calls = append(calls, func() { v.insist(p, v.devices[i]) })
	}
	var all sync.WaitGroup
	for _, call := range calls {
		all.Go(call)
	}
	all.Wait()
}

// repeat repeats a guest's acknowledged change in a way that the service must recognize: as a
// customer with the guest's token, or from a page that is still the guest's. A failover may
// lose an unconfirmed key with the guest's cart after a merge has moved the change. Then only
// the new owner's cart knows the key. A guest's cart does not know a customer's keys.
func (v *visit) repeat(p *purchase) {
	as := []*shopper{v.devices[0], v.devices[1], v.guest}[rand.IntN(3)]
	ofGuest := p.by == v.guest && p.confirmed
	ofCustomer := as != v.guest && len(v.customers) == 1
	if !p.stamped && (ofGuest || ofCustomer) && rand.IntN(2) == 0 {
		v.insist(p, as)
	}
}

// insist repeats a change until it gets a response. If a guest's change has a key, the repeat
// may come from the customer that the guest has become.
func (v *visit) insist(p *purchase, as *shopper) {
	for began := time.Now(); time.Since(began) < serveLimit; {
		r := as.send("POST", "/cart/add", p.body, p.mark...)
		v.note(r)
		p.calls = append(p.calls, fmt.Sprintf("%s by %s, took %v: %d %s %s, replayed: %t",
			clock(time.Now()), v.role(as), r.Took.Round(time.Millisecond), r.Status, r.Code, r.Header.Get("Durability"), r.replayed()))
		switch r.outcome() {
		case applied:
			if r.replayed() {
				v.run.repeats.Add(1)
			}
			p.by, p.confirmed = as, p.confirmed || r.Header.Get("Durability") == "confirmed"
			return
		case refused:
			v.run.p.broke("%s: %s was refused: %v", v.name, p.body, r)
			return
		}
		v.run.unknown.Add(1)
		if p.stamped {
			time.Sleep(stampPause)
			continue
		}
		time.Sleep(20*time.Millisecond + rand.N(80*time.Millisecond))
		if as == v.guest && rand.IntN(4) == 0 {
			as = v.devices[0]
		}
	}
	v.run.p.broke("%s: %s was not served for %v", v.name, p.body, serveLimit)
}

func (v *visit) role(as *shopper) string {
	if as == v.guest {
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
	if _, again := v.run.reported.LoadOrStore(r.Cart.Merge.ID, true); again {
		return false
	}
	v.run.merged.Add(1)
	return true
}

// compare reads the carts and compares them with the purchases. If a cart lacks something,
// compare reads it again for a while: a master that was frozen may show an old cart until it
// learns about its successor.
func (v *visit) compare(when string) {
	var wrong string
	for began := time.Now(); time.Since(began) < 5*time.Second; time.Sleep(200 * time.Millisecond) {
		held, ok := v.settled()
		if !ok {
			wrong = fmt.Sprintf("a merge did not finish within %v", serveLimit)
			break
		}
		if wrong = v.difference(held...); wrong == "" {
			return
		}
	}
	v.isWrong(when + ": " + wrong)
}

// isWrong reports a visit as wrong, once.
func (v *visit) isWrong(how string) {
	if !v.counted {
		v.counted = true
		v.run.wrong.Add(1)
		v.run.p.broke("visit %s of %v, %s", v.name, v.customers, how)
	}
}

// difference returns what is wrong with the quantities of each customer, or "" if nothing is.
func (v *visit) difference(held ...map[string]int64) (wrong string) {
	v.lost, v.twice = 0, 0
	for _, p := range v.bought {
		line := strconv.Itoa(firstProduct + p.line)
		var times, most int64
		for _, h := range held {
			times, most = times+h[line]%3, max(most, h[line]%3)
			h[line] /= 3
		}
		switch {
		case times == 0 && !p.confirmed:
			v.lost++
		case times == 2 && most == 1:
			v.twice++
		case times != 1:
			wrong += fmt.Sprintf("\n%s %s, confirmed: %t, counts %d times\n\t%s", p.mark, p.body, p.confirmed, times, strings.Join(p.calls, "\n\t"))
		}
	}
	for _, h := range held {
		for line, left := range h {
			if left > 0 {
				wrong += fmt.Sprintf("\nline %s has more than was bought", line)
			}
		}
	}
	return wrong
}

// settled returns the quantities of each customer once no merge is pending.
func (v *visit) settled() ([]map[string]int64, bool) {
	for began := time.Now(); time.Since(began) < serveLimit; time.Sleep(30 * time.Millisecond) {
		left := v.guest.send("GET", "/cart/count", "")
		claimed, err := v.run.redis.Exists(context.Background(), v.guestKey()+":claimed").Result()
		quiet := err == nil && claimed == 0 && left.Status == 200 && left.Cart.Count == 0
		var held []map[string]int64
		for _, d := range v.devices[:len(v.customers)] {
			r := d.send("GET", "/cart", "")
			quiet = !v.note(r) && r.Status == 200 && quiet
			held = append(held, r.Cart.quantities())
		}
		if quiet {
			return held, true
		}
	}
	return nil, false
}
