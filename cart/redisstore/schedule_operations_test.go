package redisstore_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"commerce/cart"
	"commerce/cart/service"
)

type verb int

const (
	reads verb = iota
	adds
	sets  // a quantity; 0 removes the line
	edits // fields, notice, and perhaps the quantity
	removes
	clears
	redeems // adds a code; 0 removes all
	labels  // a name of the cart's metadata
	locates // the buyer
	lists   // several of the others, in one step
	erases  // everything that is stored for the caller
	takes   // redeems a code of a guest's cart
	browses // an agent reads its cart
	orders  // an agent replaces all lines of its cart by one, with a key
	undoes  // the latest merge that the customer knows of
	shares  // a copy of the cart's lines, with a key
	opens   // a share
	unshares
	follows // a cart, as an instance of the service does that has a stream of it
)

func (v verb) String() string {
	return [...]string{"read", "add", "set", "edit", "remove", "clear", "redeem", "label", "locate", "list", "erase", "take", "browse", "order", "undo", "share", "open", "unshare", "follow"}[v]
}

// operation is a request with its repeats. Together they must count once.
type operation struct {
	name     string
	verb     verb
	product  int64
	quantity int64        // 0 in an edit keeps the quantity
	engraved bool         // whether the line that an add or edit results in has an engraving
	notice   byte         // 0 for none
	renotes  bool         // whether an edit changes the notice
	label    byte         // the value of a name of metadata, of the line or the cart; 0 for no change, or unlabels
	country  byte         // as in contents.buyer
	coupon   byte         // the last digit of its code; 0 to remove all
	list     []*operation // of a list
	each     bool         // whether the list is applied without what is refused
	insists  bool         // whether the client repeats it even after a success
	checks   bool         // whether the requests have an If-Match
	ifMatch  etag         // the If-Match of the first request
	key      string       // the Idempotency-Key of all its requests; "" for none
	stamp    string       // their X-Timestamp; "" for none
	tries    []caller
	attempts []*request

	namesNoOther bool // the product's plain line was removed beside the other one: it does not name that

	maker int  // of an operation that takes or undoes: its number, by which world has the token to which it leads
	from  int  // the token whose cart it takes
	later bool // whether its code is made when it begins, not at the start

	offered   contents                 // by a code that is made later
	offeredAt time.Duration            // in world.passed
	offeredIn int64                    // in the history
	shown     func(cart.LineID) string // the IDs of lines that the agent has seen before it orders
	agent     bool                     // whether the cart is an agent's, and the agent is kept

	merge string // that it undoes

	made     *operation // that has shared what it opens or deletes
	code     string     // of that
	reopened []*request // that have opened the code of a share after all others
	follower *follower  // that it is
}

func (o *operation) String() (text string) {
	for _, one := range slices.Backward(o.list) {
		defer func() { text += "\n    " + one.String() }()
	}
	if o.verb == takes {
		return fmt.Sprintf("%s: takes the cart of t%d as %v, fresh token t%d", o.name, o.from+1, o.tries, o.freshToken()+1)
	}
	return fmt.Sprintf("%s: %s %d×%d as %v, engraved: %t, notice: %q, changes it: %t, label: %q, country: %q, coupon: %q, If-Match: %t, repeats known by: %q",
		o.name, o.verb, o.product, o.quantity, o.tries, o.engraved, noticeOf(o.notice), o.renotes, o.label, o.country, couponOf(o.coupon), o.checks, o.remembered())
}

// couponOf and noticeOf return the texts for the model's coupons and notices; "" for none.
func couponOf(coupon byte) string { return lettered("C", coupon) }
func noticeOf(notice byte) string { return lettered("N", notice) }

const unlabels = '0'

// labelName is a name of metadata: of a cart by a number, and of lines by 0. labelsOf is a change of its value.
func labelName(number int64) string { return fmt.Sprint("M", number) }

func (o *operation) labelsOf(number int64) cart.Metadata {
	if o.label == 0 {
		return nil
	}
	return cart.Metadata{labelName(number): strings.TrimSuffix(lettered("L", o.label), lettered("L", unlabels))}
}

func lettered(prefix string, last byte) string {
	if last == 0 {
		return ""
	}
	return prefix + string(rune(last))
}

type etag struct {
	id      string
	version int64
	mark    string
}

func etagOf(c cart.Cart) etag { return etag{c.ID, c.Version, c.Mark} }

func (e etag) String() string {
	return " " + cart.Cart{ID: e.id, Version: e.version, Mark: e.mark}.Tag() + " "
}

// mayRepeat reports whether each of its requests may count. A request with only a stamp is
// served without the answer of a guest's Redis that cannot be asked. The cart may also have
// forgotten the first request.
func (o *operation) mayRepeat() bool {
	for _, a := range o.attempts {
		if o.stamp != "" && a.unasked && a.who != o.attempts[0].who {
			return true
		}
	}
	return len(o.attempts) > 0 && (o.mayBeForgotten() || o.cameBare())
}

// cameBare reports whether a customer has repeated a guest's request without the guest's token,
// and no merge in between was reported. Then the service cannot recognize the repeat.
func (o *operation) cameBare() bool {
	for i, then := range o.attempts {
		for _, earlier := range o.attempts[:i] {
			if earlier.who.customer < 0 && then.who.token < 0 && !earlier.schedule.mergedBetween(earlier, then) {
				return true
			}
		}
	}
	return false
}

// mergedBetween reports whether some request merged the cart of the guest's request earlier, and
// began after that had ended, and ended before then.
func (s *schedule) mergedBetween(earlier, then *request) bool {
	login := caller{then.who.customer, earlier.who.token}
	for a := range s.requests() {
		m := a.result.merge
		brings := m != nil && m.Lines > 0 && !m.At.Before(beginning.Add(earlier.endedAt)) // reports are told for a minute
		if brings && a.who == login && !s.keepsOut(login) && a.over && earlier.over && earlier.late == 0 && a.call > earlier.end && a.end < then.call {
			return true
		}
	}
	return false
}

// mayBeForgotten reports whether a cart may have forgotten the first request, because it was erased.
func (o *operation) mayBeForgotten() bool {
	return slices.ContainsFunc(o.attempts[0].schedule.ops, func(other *operation) bool { return other.verb == erases && len(other.attempts) > 0 })
}

// remembered says how a cart remembers the operation: by "key", "stamp" or not at all.
func (o *operation) remembered() string {
	switch {
	case o.key != "":
		return "key"
	case o.stamp != "":
		return "stamp"
	}
	return ""
}

func (o *operation) triesLeft() int { return len(o.tries) - len(o.attempts) }

func (o *operation) last() *request { return o.attempts[len(o.attempts)-1] }

func (o *operation) mayStart(s *schedule) bool {
	if o.triesLeft() == 0 || !s.knows(o.tries[len(o.attempts)].token) {
		return false
	}
	if o.verb == undoes && o.merge == "" && s.mergeKnown(o.tries[0].customer) == "" {
		return false
	}
	if o.made != nil && o.made.answered() == "" || o.follower != nil && o.follower.gone {
		return false
	}
	if o.verb == orders && s.shown[o.tries[0].token] == nil || o.later && !s.knows(o.from) {
		return false
	}
	who := o.tries[len(o.attempts)]
	runsElsewhere := func(a *request) bool { return !a.over && a.who != who } // see mayGiveUp
	return len(o.attempts) == 0 || o.mayGoOn() && !slices.ContainsFunc(o.attempts, runsElsewhere)
}

// mayGoOn reports whether the client would repeat the request now, if it has tries left. If a
// request leaves an unused cart unused, the cart does not remember the request.
func (o *operation) mayGoOn() bool {
	a := o.last()
	return a.leftOpen() || o.insists && a.over && a.result.refused() == "" && (a.result.cart.ID != "" || a.result.code != "") || o.verb == follows && a.over
}

func (s *schedule) knows(token int) bool {
	if token < modelTokens {
		return true
	}
	return slices.ContainsFunc(slices.Collect(s.requests()), func(a *request) bool {
		return a.op.leads() && a.op.freshToken() == token && a.over && a.result.err == nil && !a.dead
	})
}

// freshToken is the number of the token to which a redemption leads a guest without a cart, and an undo everybody.
func (o *operation) freshToken() int { return modelTokens + o.maker }

// leads reports whether the operation leads to a token.
func (o *operation) leads() bool { return o.verb == takes || o.verb == undoes }

// leftOpen reports whether the client of a request repeats it. What has left an unused cart unused is not remembered: a repeat would be
// another change.
func (a *request) leftOpen() bool {
	unused := a.over && !a.result.unknown() && a.result.cart.ID == ""
	return a.abandoned && !unused || a.over && a.result.unknown()
}

// mayGiveUp reports whether the client of a request may repeat it before it has ended. It may not
// do so if a guest has logged in since: the two tries go to different shards, and neither shard
// knows the other try before it has ended.
func (o *operation) mayGiveUp(a *request) bool {
	return (o.key != "" || o.verb == takes || o.verb == undoes || o.verb == unshares) && a == o.last() && !a.abandoned && o.triesLeft() > 0 && o.tries[len(o.attempts)] == a.who
}

// settled reports whether no request of the operation is running or still to come.
func (o *operation) settled() bool {
	for _, a := range o.attempts {
		if !a.over || a.tails > 0 {
			return false
		}
	}
	return len(o.attempts) > 0 && (o.triesLeft() == 0 || !o.mayGoOn())
}

// request returns the request of an edit. It adds an engraving to the product's line, or removes
// the engraving from the engraved line.
func (o *operation) request() service.Edit {
	e := service.Edit{Item: cart.LineID(fmt.Sprint(o.product))}
	switch {
	case o.engraved:
		e.Fields = map[string]string{engraving: engravedFor}
	case o.product >= engravable:
		e.Item, e.Fields = engravedID(o.product), map[string]string{engraving: ""}
	}
	if o.quantity > 0 {
		e.Quantity = &o.quantity
	}
	if o.renotes {
		e.Notice = new(noticeOf(o.notice))
	}
	e.Metadata = o.labelsOf(0)
	return e
}

func (o *operation) item() cart.LineID {
	if o.engraved {
		return engravedID(o.product)
	}
	return cart.LineID(fmt.Sprint(o.product))
}

func (o *operation) inList() service.Op {
	switch o.verb {
	case adds:
		return service.Op{Add: new(o.addition())}
	case sets:
		return service.Op{Edit: &service.Edit{Item: o.item(), Edit: cart.Edit{Quantity: &o.quantity}}}
	case edits:
		return service.Op{Edit: &service.Edit{Item: o.item(), Edit: cart.Edit{Notice: new(noticeOf(o.notice))}}}
	case removes:
		return service.Op{Remove: new(o.item())}
	case redeems:
		return service.Op{Coupon: &service.CouponCode{Code: couponOf(o.coupon)}}
	case labels:
		return service.Op{Metadata: o.labelsOf(o.product)}
	case locates:
		buyer := cart.Buyer{Country: lettered("S", o.country)}
		if o.country >= 'a' {
			buyer.Source = cart.ByAgent
		} else if o.country > 0 {
			buyer.Source = cart.ByShopper
		}
		return service.Op{Buyer: &buyer}
	}
	return service.Op{Clear: true}
}

func (o *operation) addition() cart.Addition {
	add := cart.Addition{ProductID: o.product, Quantity: o.quantity, Notice: noticeOf(o.notice), Metadata: o.labelsOf(0)}
	if o.engraved {
		add.Fields = map[string]string{engraving: engravedFor}
	}
	return add
}
