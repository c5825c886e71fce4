package redisstore_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/money"
	"commerce/cart/redisstore"
	"commerce/cart/redisstore/rules"
)

// The rules of changes, of repeats, and of room for merges. Few items, keys and notes are
// drawn from, so that a command often meets what an earlier one left.
func TestTwin_Changes(t *testing.T) {
	t.Parallel()
	bench := openBench(t)
	rapid.Check(t, func(r *rapid.T) {
		store := newStoreID()
		customer, guest := redisstore.CustomerRef(store, "c"), redisstore.GuestRef(store, tokenOf("t"))
		w := bench.begin(t.Context(), r, customer)
		w.remembersMuch(r, customer, 1)
		if rapid.IntRange(0, 7).Draw(r, "crowded") == 0 {
			for i := range MaxMerges - 2 {
				w.reserve(r, customer, guest, fmt.Sprintf("mx%d", i), cart.Reservation{CartID: "other"}, cart.Limits{})
			}
		}
		var last *command
		r.Repeat(map[string]func(*rapid.T){
			"change": func(t *rapid.T) {
				for range rapid.IntRange(1, 8).Draw(t, "changes") {
					if last == nil || rapid.IntRange(0, 3).Draw(t, "again") > 0 {
						c := w.drawCommand(t, customer)
						last = &c
					}
					w.change(t, customer, *last)
				}
			},
			"retry": func(t *rapid.T) { w.retry(t, customer) },
			"reserve": func(t *rapid.T) {
				b := cart.Reservation{
					CartID: rapid.SampledFrom([]string{"guest-1", "guest-2"}).Draw(t, "of"),
					Lines:  rapid.Int64Range(0, 3).Draw(t, "lines"), Text: rapid.Int64Range(0, 6).Draw(t, "text"),
				}
				w.reserve(t, customer, guest, drawNote(t), b, drawLimits(t))
			},
			"forget": func(t *rapid.T) { w.forget(t, customer, drawNote(t)) },
			"pass":   w.pass,
		})
	})
}

// remembersMuch sometimes begins with as many keys and stamps as are kept, or more. The
// stamps are numbered from first.
func (w *twins) remembersMuch(t *rapid.T, ref redisstore.Ref, first int) {
	switch rapid.IntRange(0, 7).Draw(t, "much to remember") {
	case 0:
		w.manyKeys(t, ref)
	case 1, 2:
		for i := range cart.StampsKept + rapid.IntRange(-1, 2).Draw(t, "stamps") {
			stamp := fmt.Sprintf("stmp%02d", first+i)
			w.change(t, ref, command{on: redisstore.Conditions{Stamp: stamp}, attempt: Attempt{Stamp: stamp}, doing: doSetCoupon(stamp)})
		}
	}
}

// manyKeys lays what as many changes with a key leave as are kept.
func (w *twins) manyKeys(t *rapid.T, ref redisstore.Ref) {
	var fields []any
	own := w.carts[ref]
	for i := range KeysKept {
		key, at := fmt.Sprintf("k%d", i+1), w.clock.Add(-time.Duration(i+1)*3*time.Minute)
		own.Memory.Keys = putIn(own.Memory.Keys, key, cart.KeyUse{At: at, Fingerprint: "f1"})
		fields = append(fields, key, fmt.Sprintf("%d f1", at.Add(-w.passed).UnixMilli()))
	}
	pipe := w.client.Pipeline()
	pipe.HSet(w.ctx, ref.KeysKey(), fields...)
	pipe.PExpire(w.ctx, ref.KeysKey(), KeyLife)
	if _, err := pipe.Exec(w.ctx); err != nil {
		t.Fatal(err)
	}
}

// command is one change with what its client sends beside it, for both sides.
type command struct {
	on      redisstore.Conditions
	attempt Attempt
	doing
}

type doing struct {
	change redisstore.Change
	apply  Rule        // returns the line that it changed; nil to judge only
	named  cart.LineID // the line that the request names by its ID; "" for none
	ofLine bool        // named is a line that the cart must hold

	refusedAt *int // of a list: the operation for which it was refused last
}

func (d doing) rule(c cart.Cart, reserved Room) (cart.Cart, cart.LineID, *cart.Refusal) {
	changed, line, refusal := d.apply(c, reserved)
	if line == d.named {
		line = ""
	}
	return changed, line, refusal
}

// doList makes a list of changes, each of which sees what those before did.
func doList(each bool, list []doing) doing {
	at, changes := new(int), make([]redisstore.Change, len(list))
	for i := range list {
		changes[i] = list[i].change
	}
	apply := func(before cart.Cart, reserved Room) (cart.Cart, cart.LineID, *cart.Refusal) {
		c, outcomes := before, ""
		for i, d := range list {
			changed, line, refusal := d.inList(c, reserved)
			switch {
			case refusal != nil && (!each || refusal.Code == cart.LineChanged):
				*at = i
				return before, "", refusal
			case refusal != nil:
				line = cart.LineID(fmt.Sprintf("!%s.%d", refusal.Code, refusal.Held))
			default:
				c = changed
			}
			outcomes += "," + string(cmp.Or(line, "-"))
		}
		if c.Version != before.Version {
			c.Version = before.Version + 1
		}
		return c, cart.LineID(outcomes), nil
	}
	return doing{change: redisstore.Ops(each, changes), apply: apply, refusedAt: at}
}

// inList is the rule of the change in a list, where no product names a line.
func (d doing) inList(c cart.Cart, reserved Room) (cart.Cart, cart.LineID, *cart.Refusal) {
	if d.ofLine && !c.Has(d.named) {
		_, _, refusal := d.apply(cart.Cart{}, reserved)
		return c, "", refusal
	}
	return d.apply(c, reserved)
}

type changed struct {
	Status  redisstore.Status
	Refusal cart.Refusal
	Line    cart.LineID
	Ops     []redisstore.OpOutcome
	Op      int
	Cart    cart.Cart
}

var passedBy = []string{"those under way", "those under way", "those under way", "those before", "none"}

func (w *twins) change(t *rapid.T, ref redisstore.Ref, c command) {
	own := w.carts[ref]
	pass := map[string]noted{"those under way": own.underWay, "those before": own.before}[rapid.SampledFrom(passedBy).Draw(t, "merges passed by")]
	c.attempt.Ignore = pass.names
	with := redisstore.Attempt{CartID: w.newID(), Ignore: pass.notes}
	if rapid.IntRange(0, 3).Draw(t, "may begin a cart") == 0 {
		with.CartID = ""
	}
	send := w.store.Change
	if rapid.IntRange(0, 9).Draw(t, "late") == 0 {
		c.attempt.Deadline = w.clock.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "deadline")) * time.Millisecond)
		send = w.sendBy(c.attempt.Deadline)
	}
	w.step(ref, func() any {
		o, err := send(w.ctx, ref, c.on, with, c.doing.change)
		if err != nil {
			t.Fatal(err)
		}
		return changed{o.Status, o.Refusal, o.ChangedLine, o.Ops, o.Op, o.Cart}
	}, func(r Record, now time.Time) becomes {
		status, moved, refusal := r.Check(c.attempt, now)
		if c.apply != nil {
			r, status, moved, refusal = r.Change(c.attempt, with.CartID, now, c.rule)
		}
		answer := changed{Status: redisstore.Status(status), Cart: r.Cart}
		answer.Line, answer.Ops = redisstore.ParseChanged(string(moved))
		if refusal != nil {
			answer.Refusal = *refusal
		}
		if c.refusedAt != nil {
			answer.Op, *c.refusedAt = *c.refusedAt, 0
		}
		renews := status == Replayed || status == Applied && c.apply != nil
		return becomes{r, answer, renews && r.Cart.ID != ""}
	})
}

// retry repeats a stamped change at about the moment from which, or until which, that
// counts as a retry.
func (w *twins) retry(t *rapid.T, ref redisstore.Ref) {
	c := command{doing: drawDoing(t, w.carts[ref].Cart)}
	if stamp := w.passToAnEdge(t, ref); stamp != "" {
		c.attempt.Stamp, c.on.Stamp = stamp, stamp
		w.change(t, ref, c)
	}
}

func (w *twins) sendBy(deadline time.Time) func(context.Context, redisstore.Ref, redisstore.Conditions, redisstore.Attempt, redisstore.Change) (redisstore.Outcome, error) {
	return func(ctx context.Context, ref redisstore.Ref, on redisstore.Conditions, with redisstore.Attempt, c redisstore.Change) (redisstore.Outcome, error) {
		return w.store.ChangeAt(ctx, ref, on, with, c, deadline.Add(-w.passed))
	}
}

func (w *twins) reserve(t *rapid.T, customer, guest redisstore.Ref, note string, b cart.Reservation, limits cart.Limits) {
	w.step(customer, func() any {
		switch err := w.store.Reserve(w.ctx, customer, guest, note, b, limits); err {
		case nil:
			return nil
		case cart.ErrNoRoom, cart.ErrCrowded:
			return err.Error()
		default:
			t.Fatal(err)
			return nil
		}
	}, func(r Record, _ time.Time) becomes {
		r, err := r.Reserve(note, b, limits)
		if err != nil {
			return becomes{r, err.Error(), false}
		}
		return becomes{r, nil, true}
	})
}

func (w *twins) forget(t *rapid.T, customer redisstore.Ref, note string) {
	w.step(customer, func() any {
		if err := w.store.Forget(w.ctx, customer, note); err != nil {
			t.Fatal(err)
		}
		return nil
	}, func(r Record, _ time.Time) becomes { return becomes{r.Forget(note), nil, true} })
}

func drawNote(t *rapid.T) string {
	return rapid.SampledFrom([]string{"m1", "m2", "m3", "m4"}).Draw(t, "note")
}

func drawLimits(t *rapid.T) cart.Limits {
	return cart.Limits{
		Lines:    rapid.Int64Range(1, 4).Draw(t, "limit of lines"),
		LineText: rapid.SampledFrom([]int64{3, 9, 99}).Draw(t, "limit of a line's text"),
		CartText: rapid.SampledFrom([]int64{2, 4, 6, 7, 8, 9, 20, 99}).Draw(t, "limit of text"),
	}
}

func (w *twins) drawCommand(t *rapid.T, ref redisstore.Ref) command {
	c := command{doing: drawDoing(t, w.carts[ref].Cart)}
	switch rapid.SampledFrom([]string{"key", "stamp", "neither"}).Draw(t, "repeats are known by") {
	case "key":
		c.attempt.Key = rapid.SampledFrom([]string{"k1", "k2", "k3", "k256", "k257", "k258"}).Draw(t, "key")
		c.attempt.Fingerprint = rapid.SampledFrom([]string{"f1", "f2"}).Draw(t, "fingerprint")
	case "stamp":
		c.attempt.Stamp = rapid.SampledFrom([]string{"stmp01", "stmp02", "stmp03", "stmp17", "stmp18"}).Draw(t, "stamp")
	}
	c.attempt.IfMatch = drawIfMatch(t, w.carts[ref].Cart)
	c.on = redisstore.Conditions{
		Key: c.attempt.Key, Fingerprint: c.attempt.Fingerprint, Stamp: c.attempt.Stamp,
		IfMatch: strings.Join(c.attempt.IfMatch, " "),
	}
	if c.on.IfMatch != "" && c.on.IfMatch != "*" {
		c.on.IfMatch = " " + c.on.IfMatch + " "
	}
	return c
}

func drawIfMatch(t *rapid.T, c cart.Cart) []string {
	stale, lost := c, c
	lost.Mark = "OTHERS"
	stale.Version += rapid.SampledFrom([]int64{-1, 9, 10 * c.Version}).Draw(t, "stale by")
	return rapid.SampledFrom([][]string{
		nil, nil, nil, nil, {"*"}, {c.Tag()}, {stale.Tag()}, {lost.Tag()}, {stale.Tag(), c.Tag()}, {"0.0.0"}, {"0.0.0", c.Tag() + "1"},
	}).Draw(t, "If-Match")
}

func drawDoing(t *rapid.T, on cart.Cart) doing {
	switch rapid.IntRange(0, 9).Draw(t, "alone, or a list") {
	case 0:
		return doing{change: redisstore.CheckOnly()}
	case 1, 2:
		return doList(rapid.Bool().Draw(t, "each"), drawList(t, on))
	}
	return drawOperation(t, on)
}

// drawList draws operations, mostly on what those before have made of the cart.
func drawList(t *rapid.T, on cart.Cart) []doing {
	list := make([]doing, rapid.IntRange(1, 6).Draw(t, "operations"))
	for i := range list {
		list[i] = drawOperation(t, on)
		switch rapid.IntRange(0, 9).Draw(t, "refused before") {
		case 0:
			list[i] = doing{change: redisstore.RefusedOp(problem.PlanUnavailable), apply: refuseByRequest}
		case 1:
			list[i] = drawRefusedEdit(t, on)
		case 2:
			list[i] = doing{change: redisstore.NoteAgent(rapid.Bool().Draw(t, "cancels")), apply: unrefused(func(c cart.Cart) cart.Cart { return c })}
		}
		on, _, _ = list[i].inList(on, Room{})
	}
	return list
}

func refuseByRequest(c cart.Cart, _ Room) (cart.Cart, cart.LineID, *cart.Refusal) {
	return c, "", &cart.Refusal{Code: problem.PlanUnavailable}
}

// drawRefusedEdit draws an edit that was refused because of its line, or of another one that it had before.
func drawRefusedEdit(t *rapid.T, on cart.Cart) doing {
	item, _ := drawItem(t, on)
	var read cart.Line // the zero value for none
	if i := slices.IndexFunc(on.Lines, func(l cart.Line) bool { return l.ID == item }); i >= 0 {
		read = on.Lines[i]
	}
	switch rapid.IntRange(0, 7).Draw(t, "as another read it") {
	case 0:
		read.ID, read.Notice = item, "before"
	case 1:
		read = cart.Line{}
	}
	apply := func(c cart.Cart, room Room) (cart.Cart, cart.LineID, *cart.Refusal) {
		var line cart.Line
		if c.Has(item) {
			line = *c.Line(item)
		}
		if line.ID != read.ID || line.Notice != read.Notice {
			return c, "", &cart.Refusal{Code: cart.LineChanged}
		}
		return refuseByRequest(c, room)
	}
	return doing{change: redisstore.RefusedEdit(problem.PlanUnavailable, item, &read), apply: apply}
}

func drawOperation(t *rapid.T, on cart.Cart) doing {
	switch rapid.SampledFrom([]string{"add", "add", "add", "set", "set", "edit", "edit", "edit", "remove", "clear", "coupon", "metadata"}).Draw(t, "what") {
	case "add":
		return doAdd(drawNewLine(t), drawLimits(t))
	case "set":
		item, held := drawItem(t, on)
		quantity := rapid.SampledFrom([]int64{0, 1, 3, 5, 8, held, held + 1, max(held-1, 0)}).Draw(t, "quantity")
		return doSet(item, quantity, drawBounds(t), drawRaise(t))
	case "edit":
		return drawEdit(t, on)
	case "remove":
		item, _ := drawItem(t, on)
		return doing{
			change: redisstore.Remove(item), named: item, ofLine: true,
			apply: unrefused(func(c cart.Cart) cart.Cart { return rules.Remove(c, item) }),
		}
	case "clear":
		return doClear()
	case "coupon":
		return doSetCoupon(rapid.SampledFrom([]string{"", "TEN", "FIVE"}).Draw(t, "coupon"))
	}
	return doSetMetadata(drawMetadata(t), drawLimits(t))
}

func doAdd(l cart.NewLine, limits cart.Limits) doing {
	named := l.ID
	if l.Fields != nil { // whose meaning may change with the catalog
		named = ""
	}
	return doing{change: redisstore.Add(l, limits), named: named, apply: func(c cart.Cart, reserved Room) (cart.Cart, cart.LineID, *cart.Refusal) {
		changed, refusal := rules.Add(c, l, WithoutReserved(limits, reserved))
		return changed, l.ID, refusal
	}}
}

func doSet(item cart.LineID, quantity int64, b cart.Bounds, raise problem.Code) doing {
	return doing{
		change: redisstore.SetQuantity(item, quantity, b, raise), named: item, ofLine: true,
		apply: func(c cart.Cart, _ Room) (cart.Cart, cart.LineID, *cart.Refusal) {
			return rules.SetQuantity(c, item, quantity, b, raise)
		},
	}
}

func doClear() doing { return doing{change: redisstore.Clear(), apply: unrefused(rules.Clear)} }

func doSetCoupon(code string) doing {
	return doing{
		change: redisstore.SetCoupon(code),
		apply:  unrefused(func(c cart.Cart) cart.Cart { return rules.SetCoupon(c, code) }),
	}
}

func doSetMetadata(changes cart.Metadata, limits cart.Limits) doing {
	return doing{change: redisstore.SetMetadata(changes, limits), apply: func(c cart.Cart, reserved Room) (cart.Cart, cart.LineID, *cart.Refusal) {
		changed, refusal := rules.SetMetadata(c, changes, WithoutReserved(limits, reserved))
		return changed, "", refusal
	}}
}

func doEdit(item cart.LineID, e cart.EditedLine, limits cart.Limits) doing {
	return doing{
		change: redisstore.Edit(item, e, limits), named: item, ofLine: true,
		apply: func(c cart.Cart, reserved Room) (cart.Cart, cart.LineID, *cart.Refusal) {
			return rules.Edit(c, item, e, WithoutReserved(limits, reserved))
		},
	}
}

func unrefused(rule func(cart.Cart) cart.Cart) Rule {
	return func(c cart.Cart, _ Room) (cart.Cart, cart.LineID, *cart.Refusal) { return rule(c), "", nil }
}

func drawMetadata(t *rapid.T) cart.Metadata {
	changes := rapid.SampledFrom([]cart.Metadata{nil, nil, nil, {"a": "x"}, {"a": ""}, {"a": "né", "1": "y"}, {"b.c": "", "a": "xyz"}}).Draw(t, "metadata")
	if from := rapid.IntRange(0, 40).Draw(t, "many names"); from < 4 {
		changes = cart.Metadata{}
		for i := range 14 {
			changes[fmt.Sprintf("n%d", 10*from+i)] = rapid.SampledFrom([]string{"", "1", "1", "1"}).Draw(t, "value")
		}
	}
	return changes
}

// twinLines are the lines that there may be. Product 12 begins like product 1.
var twinLines = []cart.NewLine{
	{ID: "1"},
	{ID: "1.p1"},
	{ID: "1.p2"},
	{ID: "12"},
	{ID: cart.NewLineID(2, 0, []cart.FieldValue{{Name: "a", Value: "xyz"}}), Fields: []cart.FieldValue{{Name: "a", Value: "xyz"}}},
	{ID: cart.NewLineID(2, 0, []cart.FieldValue{{Name: "a", Value: "w"}}), Fields: []cart.FieldValue{{Name: "a", Value: "w"}}},
	{ID: cart.NewLineID(2, 3, []cart.FieldValue{{Name: "a", Value: "é"}}), Fields: []cart.FieldValue{{Name: "a", Value: "é"}}},
}

func drawNewLine(t *rapid.T) cart.NewLine {
	l := rapid.SampledFrom(twinLines).Draw(t, "line")
	l.Quantity = rapid.Int64Range(1, 4).Draw(t, "quantity")
	l.Price = money.Amount(rapid.Int64Range(0, 3).Draw(t, "price"))
	l.Notice = rapid.SampledFrom([]string{"", "", "n", "né", "note"}).Draw(t, "notice")
	l.Metadata = drawMetadata(t)
	l.Bounds = drawBounds(t)
	return l
}

// drawItem draws what a client may name, mostly a line of the cart, and the quantity of
// that line.
func drawItem(t *rapid.T, c cart.Cart) (item cart.LineID, held int64) {
	if len(c.Lines) > 0 && rapid.IntRange(0, 2).Draw(t, "of the cart") > 0 {
		l := c.Lines[rapid.IntRange(0, len(c.Lines)-1).Draw(t, "line")]
		return l.ID, l.Quantity
	}
	return rapid.SampledFrom([]cart.LineID{"1", "2", "2", "3", "1.p3", "12"}).Draw(t, "item"), 0
}

func drawBounds(t *rapid.T) cart.Bounds {
	return cart.Bounds{
		Stock: rapid.SampledFrom([]int64{-1, -1, -1, 0, 1, 3, 5, 6, 8}).Draw(t, "stock"),
		Min:   rapid.SampledFrom([]int64{1, 1, 1, 2, 3}).Draw(t, "min"),
		Max:   rapid.SampledFrom([]int64{2, 4, 6, 9, 9}).Draw(t, "max"),

		PerCart: rapid.SampledFrom([]int64{0, 0, 0, 1, 4, 7}).Draw(t, "maximum per cart"),
		Step:    rapid.SampledFrom([]int64{0, 0, 1, 2, 3}).Draw(t, "step"),
	}
}

func drawRaise(t *rapid.T) problem.Code {
	return rapid.SampledFrom([]problem.Code{"", "", "", problem.ProductInactive, problem.ProductNotFound}).Draw(t, "raising")
}

func otherLinesOf(c cart.Cart, id cart.LineID) []cart.Line {
	return slices.DeleteFunc(slices.Clone(c.Lines), func(l cart.Line) bool {
		return l.ID == id || l.ID.Product() != id.Product()
	})
}

// drawEdit draws an edit, mostly of a line as it is now, which gives it the content of any
// line of the same product.
func drawEdit(t *rapid.T, on cart.Cart) doing {
	item, held := drawItem(t, on)
	from := cart.Line{ID: item}
	for _, l := range on.Lines {
		if l.ID == item || strings.HasPrefix(string(l.ID), string(item)+".") && from.Quantity == 0 {
			from = l
		}
	}
	if rapid.IntRange(0, 7).Draw(t, "as another read it") == 0 {
		from.Notice = "before"
	}
	e := cart.EditedLine{From: from, ID: from.ID, Fields: from.Fields, Notice: from.Notice, Bounds: drawBounds(t), Raise: drawRaise(t)}
	if to := rapid.SampledFrom(twinLines).Draw(t, "to"); to.ID.Product() == from.ID.Product() {
		e.ID, e.Fields = to.ID, to.Fields
	}
	if others := otherLinesOf(on, from.ID); len(others) > 0 && rapid.IntRange(0, 2).Draw(t, "joins") > 0 {
		to := rapid.SampledFrom(others).Draw(t, "other line")
		e.ID, e.Fields, e.Bounds = to.ID, to.Fields, cart.Bounds{Stock: -1, Min: 1, Max: 99}
	}
	e.Price, e.Metadata = money.Amount(rapid.Int64Range(0, 3).Draw(t, "price")), drawMetadata(t)
	e.Accepts = rapid.IntRange(0, 3).Draw(t, "accepts the price") == 0
	if rapid.Bool().Draw(t, "new notice") {
		e.Notice = rapid.SampledFrom([]string{"", "", "n", "note"}).Draw(t, "notice")
	}
	if rapid.Bool().Draw(t, "new quantity") {
		e.Quantity = new(rapid.SampledFrom([]int64{1, 3, held + 1, max(held-1, 1)}).Draw(t, "quantity"))
	}
	return doEdit(item, e, drawLimits(t))
}
