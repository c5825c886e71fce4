package torture

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"commerce/cart"
)

// The model of one cart: the rules of docs/cart.md, written independently of package cart.

type cartState struct {
	version int64
	lines   []stateLine
}

type stateLine struct {
	id       string
	quantity int64
	notice   string
}

func (s cartState) equal(other cartState) bool {
	return s.version == other.version && slices.Equal(s.lines, other.lines)
}

func (s cartState) String() string {
	lines := make([]string, len(s.lines))
	for i, l := range s.lines {
		lines[i] = fmt.Sprintf("%s×%d%s", l.id, l.quantity, l.notice)
	}
	return fmt.Sprintf("%d [%s]", s.version, strings.Join(lines, " "))
}

func (s cartState) find(id string) int {
	return slices.IndexFunc(s.lines, func(l stateLine) bool { return l.id == id })
}

func (s cartState) changed(lines []stateLine) cartState { return cartState{s.version + 1, lines} }

// cartCall is a call on a cart of lines with at most maxQuantity.
type cartCall struct {
	verb     verb
	item     string  // line
	quantity int64   // to add or to set
	becomes  string  // line that an edit makes of item
	notice   *string // that an edit sets; nil to keep the line's notice
	ifMatch  int64   // version; noCondition for none

	method, path, body string
}

type verb string

const (
	verbRead   verb = "read"
	verbAdd    verb = "add"
	verbSet    verb = "set"
	verbEdit   verb = "edit"
	verbRemove verb = "remove"
	verbClear  verb = "clear"
)

const (
	maxQuantity = 999
	noCondition = -1
)

func (c cartCall) String() string {
	text := fmt.Sprintf("%s %s %d", c.verb, c.item, c.quantity)
	if c.verb == verbEdit {
		text = fmt.Sprintf("%s %s %s", c.verb, c.item, c.body)
	}
	if c.ifMatch != noCondition {
		text += fmt.Sprintf(" if %d", c.ifMatch)
	}
	return text
}

func (c cartCall) apply(s cartState) (cartState, string) {
	if c.ifMatch != noCondition && c.ifMatch != s.version {
		return s, "version_mismatch"
	}
	at := s.find(c.item)
	switch {
	case c.verb == verbAdd:
		return c.applyAdd(s, at)
	case c.verb == verbClear && len(s.lines) > 0:
		return s.changed(nil), ""
	case (c.verb == verbSet || c.verb == verbEdit) && at < 0:
		return s, "item_not_found"
	case c.verb == verbEdit:
		return c.applyEdit(s, at)
	case c.verb == verbSet && c.quantity > 0:
		return s.with(at, func(l *stateLine) { l.quantity = c.quantity }), ""
	case (c.verb == verbSet || c.verb == verbRemove) && at >= 0:
		return s.changed(slices.Delete(slices.Clone(s.lines), at, at+1)), ""
	}
	return s, ""
}

func (c cartCall) applyAdd(s cartState, at int) (cartState, string) {
	if at < 0 {
		return s.changed(append(slices.Clone(s.lines), stateLine{id: c.item, quantity: c.quantity})), ""
	}
	if s.lines[at].quantity+c.quantity > maxQuantity {
		return s, "quantity_out_of_range"
	}
	return s.with(at, func(l *stateLine) { l.quantity += c.quantity }), ""
}

func (c cartCall) applyEdit(s cartState, at int) (cartState, string) {
	into, notice := s.find(c.becomes), s.lines[at].notice
	if c.notice != nil {
		notice = *c.notice
	}
	if into < 0 || into == at {
		return s.with(at, func(l *stateLine) { l.id, l.notice = c.becomes, notice }), ""
	}
	sum := s.lines[at].quantity + s.lines[into].quantity
	if sum > maxQuantity {
		return s, "quantity_out_of_range"
	}
	lines := slices.Clone(s.lines)
	lines[into].quantity = sum
	if notice != "" {
		lines[into].notice = notice
	}
	return s.changed(slices.Delete(lines, at, at+1)), ""
}

// with changes a line. The version grows only if the line differs.
func (s cartState) with(at int, change func(*stateLine)) cartState {
	lines := slices.Clone(s.lines)
	change(&lines[at])
	if lines[at] == s.lines[at] {
		return s
	}
	return s.changed(lines)
}

// Calls use two plain products, and product 5 of the sample with three answers.
var emails = [3]string{"a@example.com", "b@example.com", "c@example.com"}

func plainLine(i int) string { return fmt.Sprint(firstProduct + i) }

func emailLine(i int) string {
	return string(cart.NewLineID(5, 0, []cart.FieldValue{{Name: "Account email", Value: emails[i]}}))
}

// drawCall returns a random call. version is one that the client has seen.
func drawCall(r *rand.Rand, version int64) cartCall {
	email := r.IntN(len(emails))
	c := cartCall{item: plainLine(r.IntN(2)), quantity: 1 + r.Int64N(250), ifMatch: noCondition}
	if r.IntN(2) == 0 {
		c.item = emailLine(email)
	}
	if r.IntN(4) == 0 {
		c.ifMatch = version
	}
	switch n := r.IntN(100); {
	case n < 35:
		return c.add(email)
	case n < 45:
		c.quantity = r.Int64N(300)
		return c.with(verbSet, "PATCH", "/cart/items/"+c.item, fmt.Sprintf(`{"quantity":%d}`, c.quantity))
	case n < 65:
		return c.edit(r, email)
	case n < 75:
		return c.with(verbRemove, "DELETE", "/cart/items/"+c.item, "")
	case n < 78:
		return c.with(verbClear, "DELETE", "/cart/clear", "")
	}
	return readCall()
}

func (c cartCall) add(email int) cartCall {
	if strings.Contains(c.item, ".f") {
		return c.with(verbAdd, "POST", "/cart/add", fmt.Sprintf(`{"product_id":5,"qty":%d,"fields":{"0":%q}}`, c.quantity, emails[email]))
	}
	return c.with(verbAdd, "POST", "/cart/add", fmt.Sprintf(`{"product_id":%s,"qty":%d}`, c.item, c.quantity))
}

func (c cartCall) edit(r *rand.Rand, email int) cartCall {
	c.item = emailLine(email)
	c.becomes = c.item
	var parts []string
	members := 1 + r.IntN(3)
	if members&1 != 0 {
		to := r.IntN(len(emails))
		c.becomes = emailLine(to)
		parts = append(parts, fmt.Sprintf(`"fields":{"0":%q}`, emails[to]))
	}
	if members&2 != 0 {
		notice := ""
		if n := r.IntN(50); n > 5 {
			notice = fmt.Sprintf("n%d", n)
		}
		c.notice = &notice
		parts = append(parts, fmt.Sprintf(`"notice":%q`, notice))
	}
	return c.with(verbEdit, "PATCH", "/cart/items/"+c.item, "{"+strings.Join(parts, ",")+"}")
}

func (c cartCall) with(v verb, method, path, body string) cartCall {
	c.verb, c.method, c.path, c.body = v, method, path, body
	return c
}

func readCall() cartCall {
	return cartCall{ifMatch: noCondition}.with(verbRead, "GET", "/cart", "")
}
