package server_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"commerce/cart"
	"commerce/cart/service"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/deploy/sample"
)

type operation struct{ op, item, members string }

func (o operation) String() string {
	text := `"op":"` + o.op + `"`
	if o.item != "" {
		text += `,"item":"` + o.item + `"`
	}
	if o.members != "" {
		text += "," + o.members
	}
	return "{" + text + "}"
}

// alone makes the single call that does the same. The cart's metadata has none.
func (o operation) alone(c *shopper) answer {
	c.t.Helper()
	switch {
	case o.op == "add":
		return c.send("POST", "/cart/add", "{"+o.members+"}")
	case o.op == "edit":
		return c.send("PATCH", "/cart/items/"+o.item, "{"+o.members+"}")
	case o.op == "remove":
		return c.send("DELETE", "/cart/items/"+o.item, "")
	case o.op == "clear":
		return c.send("DELETE", "/cart/clear", "")
	case o.op == "coupon" && strings.Contains(o.members, "null"):
		return c.send("DELETE", "/cart/coupon", "")
	case o.op == "coupon" && strings.Contains(o.members, "remove"):
		return c.send("DELETE", "/cart/coupon?code="+strings.Trim(strings.TrimPrefix(o.members, `"remove":`), `"`), "")
	case o.op == "coupon":
		return c.send("POST", "/cart/coupon", "{"+o.members+"}")
	}
	a := c.send("POST", "/cart/ops", list("all", o))
	a.Body.Errors = unprefixed(a.Body.Errors, "ops.0.")
	return a
}

func list(mode string, ops ...operation) string {
	texts := make([]string, len(ops))
	for i, o := range ops {
		texts[i] = o.String()
	}
	return `{"mode":"` + mode + `","ops":[` + strings.Join(texts, ",") + `]}`
}

func unprefixed(errors map[string][]string, prefix string) map[string][]string {
	if errors == nil {
		return nil
	}
	own := map[string][]string{}
	for name, sentences := range errors {
		own[strings.TrimPrefix(name, prefix)] = sentences
	}
	return own
}

var (
	opFields   = []string{`{"0":"a@example.com"}`, `{"Account email":"b@example.com","Region":"us"}`, `{"Region":"fr"}`, `{"1":null}`, `{"Color":"red"}`}
	opMetadata = []string{`{"gift":"yes"}`, `{"gift":null}`, `{}`, manyNames("a", 12, 1), manyNames("b", 12, 1), manyNames("c", 10, 45), manyNames("d", 10, 20)}
	opItems    = []string{
		"1", "2", "7", "302", "4.p41", "4.p42", "301.p311", "301.p312", "404", "no-line",
		string(cart.NewLineID(5, 0, []cart.FieldValue{{Name: "Account email", Value: "a@example.com"}})),
		string(cart.NewLineID(5, 0, []cart.FieldValue{{Name: "Account email", Value: "b@example.com"}, {Name: "Region", Value: "us"}})),
	}
)

func manyNames(prefix string, n, size int) string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf(`"%s%d":%q`, prefix, i, strings.Repeat("x", size))
	}
	return "{" + strings.Join(texts, ",") + "}"
}

// drawOperation draws an operation.
func drawOperation(r *rapid.T, coupon bool) operation {
	pick := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(r, what) }
	some := func(what string) bool { return rapid.IntRange(0, 3).Draw(r, what) == 0 }
	ops := []string{"add", "add", "add", "edit", "edit", "edit", "remove", "clear", "metadata"}
	if coupon {
		ops = append(ops, "coupon", "coupon")
	}
	var members []string
	maybe := func(name string, values ...string) {
		if some(name) {
			members = append(members, fmt.Sprintf("%q:%s", name, pick(name, values...)))
		}
	}
	o := operation{op: pick("op", ops...)}
	switch o.op {
	case "add":
		product := pick("product", "1", "2", "3", "4", "5", "6", "7", "301", "302", "404")
		members = append(members, `"product_id":`+product, `"qty":`+pick("qty", "1", "2", "5", "10", "999"))
		if plans := map[string]string{"4": "41", "301": "311"}[product]; plans != "" {
			members = append(members, `"subscription_plan":`+pick("plan", plans, plans, "42", "312"))
		}
		if product == "5" {
			members = append(members, `"fields":`+pick("fields", opFields...))
		}
		maybe("notice", `"n"`, `"other"`)
		maybe("metadata", opMetadata...)
	case "edit":
		o.item = pick("item", opItems...)
		maybe("quantity", "0", "1", "2", "5", "6", "1000")
		maybe("notice", `"n"`, "null")
		maybe("fields", opFields...)
		maybe("subscription_plan", "41", "42", "311", "312")
		maybe("metadata", opMetadata...)
		maybe("accept_price", "4950", "5051", "2000", "20000")
		if len(members) == 0 {
			members = append(members, `"quantity":3`)
		}
	case "remove":
		o.item = pick("item", opItems...)
	case "coupon":
		if rapid.IntRange(0, 3).Draw(r, "removal") == 0 {
			members = append(members, `"remove":`+pick("code", `"TEN"`, `"extra"`, `"none"`))
			break
		}
		members = append(members, `"coupon":`+pick("coupon", `"TEN"`, `"five"`, `"OLD"`, `"none"`, `"EXTRA"`, `"plus"`, "null"))
	case "metadata":
		members = append(members, `"metadata":`+pick("metadata", opMetadata...))
	}
	o.members = strings.Join(members, ",")
	return o
}

// contents returns what a cart shows, except what differs between two carts with the same contents.
func (c *shopper) contents() map[string]any {
	c.t.Helper()
	data := decode[struct{ Data map[string]any }](c.t, c.ok("GET", "/cart", "").Raw).Data
	for _, own := range []string{"cart_token", "version", "expires_at"} {
		delete(data, own)
	}
	return data
}

func (b cartBody) itemIDs() (ids []string) {
	for _, id := range b.ItemIDs {
		if id == nil {
			id = new("")
		}
		ids = append(ids, *id)
	}
	return ids
}

// What a list does is what the single calls in its order do: in mode each, and in mode all if none is
// refused. A keyed list gives its outcomes again.
func TestOps_GiveWhatTheSingleCallsGive(t *testing.T) {
	t.Parallel()
	small := func(p *server.Parts) {
		p.Carts.Limits = cart.Limits{Lines: 3, Quantity: 999, LineText: 600, CartText: 800}
	}
	property := func(t *testing.T, s *shop) {
		s.Catalog.Put(s.ID, membership(2))
		s.Catalog.Put(s.ID, pack())
		rapid.Check(t, func(r *rapid.T) { s.compareLists(t, r) })
	}
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		property(t, openShop(t, embeddedRedis(t), small))
	})
	t.Run("as serve", func(t *testing.T) {
		slow(t)
		property(t, openShopAs(t, ephemeral.Redis(t), true, small))
	})
}

func (s *shop) compareLists(t *testing.T, r *rapid.T) {
	each, all, single := s.visitor(t), s.visitor(t), s.visitor(t)
	for range rapid.IntRange(0, 5).Draw(r, "before") {
		o := drawOperation(r, true)
		for _, c := range []*shopper{each, all, single} {
			o.alone(c)
		}
	}
	switch rapid.IntRange(0, 5).Draw(r, "then") {
	case 0:
		s.alter(1, func(p *cart.Product) { p.Price += 101 })
	case 1:
		s.alter(5, func(p *cart.Product) { p.Active = false })
	case 2:
		s.alter(2, func(p *cart.Product) { p.Stock = new(rapid.Int64Range(0, 1).Draw(r, "stock")) })
	case 3:
		s.Catalog.Delete(s.ID, 7)
	}
	defer func() {
		for _, id := range []int64{1, 2, 5, 7} {
			s.alter(id)
		}
	}()
	var ops []operation
	coupons := 0
	for range rapid.IntRange(1, 8).Draw(r, "operations") {
		o := drawOperation(r, coupons < cart.MaxCodes)
		if ops = append(ops, o); o.op == "coupon" {
			coupons++
		}
	}
	before, untouched := each.cart(), all.tag()
	got := each.ok("POST", "/cart/ops", list("each", ops...), "Idempotency-Key", "k").Body.Data
	refused, first, faults := -1, answer{}, map[string][]string{}
	for i, o := range ops {
		a := o.alone(single)
		want := outcomeBody{Code: a.Body.Code, Message: a.Body.Message, Errors: a.Body.Errors}
		want.Data.Reason = a.Body.Data.Reason
		if a.Status == http.StatusOK {
			want = outcomeBody{ItemID: a.Body.Data.ItemID, Replaced: a.Body.Data.Replaced}
		} else {
			if refused < 0 {
				refused, first = i, a
			}
			for name, sentences := range a.Body.Errors {
				faults[fmt.Sprintf("ops.%d.%s", i, name)] = sentences
			}
			switch name := fmt.Sprintf("ops.%d", i); {
			case a.Body.Code == "item_not_found": // alone, the path names it
				faults[name+".item"] = []string{a.Body.Message}
			case len(a.Body.Errors) == 0:
				faults[name] = []string{a.Body.Message}
			}
		}
		if diff := cmp.Diff(want, got.Outcomes[i]); diff != "" {
			r.Fatalf("%d of %s (-alone +in the list)\n%s", i, list("each", ops...), diff)
		}
	}
	if diff := cmp.Diff(single.contents(), each.contents()); diff != "" || got.Version > before.Version+1 {
		r.Fatalf("%s: version %d, then %d (-single calls +list)\n%s", list("each", ops...), before.Version, got.Version, diff)
	}
	s.compareRepeat(r, each, got, list("each", ops...))

	a := all.send("POST", "/cart/ops", list("all", ops...))
	if refused < 0 {
		if diff := cmp.Diff(each.contents(), all.contents()); diff != "" || a.Status != http.StatusOK {
			r.Fatalf("%s: %d (-each +all)\n%s", list("all", ops...), a.Status, diff)
		}
		return
	}
	if a.Status != first.Status || a.Body.Code != first.Body.Code || a.Body.Data.Op == nil || *a.Body.Data.Op != refused ||
		a.Body.Data.Reason != first.Body.Data.Reason || cmp.Diff(faults, a.Body.Errors, cmpopts.EquateEmpty()) != "" || all.tag() != untouched {
		r.Fatalf("%s: %d %s\nalone: %d %s", list("all", ops...), a.Status, a.Raw, first.Status, first.Raw)
	}
}

func (s *shop) compareRepeat(r *rapid.T, c *shopper, first cartBody, body string) {
	tag := c.tag()
	again := c.ok("POST", "/cart/ops", body, "Idempotency-Key", "k")
	held := again.Body.Data.lines()
	for i, o := range again.Body.Data.Outcomes {
		want := first.Outcomes[i]
		if want.ItemID != nil && !strings.Contains(" "+held, " "+*want.ItemID+"×") {
			want.ItemID = nil
		}
		if len(o.Replaced) > 0 || (o.Replaced == nil) != (want.Replaced == nil) {
			r.Fatalf("repeat of %s: %d has replaced %q, at first %q", body, i, o.Replaced, want.Replaced)
		}
		if o.Code != want.Code || cmp.Diff(o.ItemID, want.ItemID) != "" {
			r.Fatalf("repeat of %s: %d is %+v, was %+v", body, i, o, want)
		}
	}
	if c.tag() != tag || len(again.Body.Data.Outcomes) != len(first.Outcomes) {
		r.Fatalf("a repeat of %s: %s", body, again.Raw)
	}
}

func TestOps_AMalformedListIsRefusedInBothModes(t *testing.T) {
	c := newShop(t).guest(t).fill("1×1")
	before := c.tag()
	for ops, members := range map[string][]string{
		`null`: {"ops"}, `{}`: {"ops"}, `[]`: {"ops"}, `"x"`: {"ops"},
		`[` + strings.Repeat(`{"op":"clear"},`, 50) + `{"op":"clear"}]`:                                                                                   {"ops"},
		`[{"op":"clear"},5,[],{"op":"ops","ops":[]},{},{"op":7},{"op":"Add"}]`:                                                                            {"ops.1", "ops.2", "ops.3.op", "ops.4.op", "ops.5.op", "ops.6.op"},
		`[{"op":"add","qty":0,"notice":5,"metadata":{"a":1,"my key":"x","Token":"x","deleted_at":"x","":""}}]`:                                            {"ops.0.metadata.", "ops.0.metadata.Token", "ops.0.metadata.a", "ops.0.metadata.deleted_at", "ops.0.metadata.my key", "ops.0.notice", "ops.0.product_id", "ops.0.qty"},
		`[{"op":"edit","item":"1"},{"op":"edit","quantity":2},{"op":"edit","item":1,"qty":-1}]`:                                                           {"ops.0.quantity", "ops.1.item", "ops.2.item", "ops.2.qty"},
		`[{"op":"edit","item":"1","accept_price":-1,"metadata":null},{"op":"edit","item":"1","accept_price":49.5}]`:                                       {"ops.0.accept_price", "ops.0.metadata", "ops.1.accept_price"},
		`[{"op":"remove"},{"op":"remove","item":null},{"op":"remove","item":["1"]}]`:                                                                      {"ops.0.item", "ops.1.item", "ops.2.item"},
		`[{"op":"coupon"},{"op":"metadata"},{"op":"metadata","metadata":"x"}]`:                                                                            {"ops.0.coupon", "ops.1.metadata", "ops.2.metadata"},
		`[{"op":"coupon","coupon":"A","remove":"A"},{"op":"coupon","coupon":null,"remove":"A"},{"op":"coupon","remove":7},{"op":"coupon","remove":null}]`: {"ops.0.remove", "ops.1.remove", "ops.2.remove", "ops.3.remove"},
		`[` + strings.Repeat(`{"op":"coupon","coupon":"EXTRA"},`, 4) + `{"op":"coupon","coupon":null},{"op":"coupon","remove":"A"}]`:                      {"ops.5.op"},
		`[{"op":"metadata","metadata":{"a":"` + strings.Repeat("é", 501) + `"}}]`:                                                                         {"ops.0.metadata.a"},
	} {
		for _, mode := range []string{`"all"`, `"each"`} {
			c.refused(422, "validation_failed", "POST", "/cart/ops", `{"ops":`+ops+`,"mode":`+mode+`}`).names(t, members...)
		}
	}
	for _, mode := range []string{`"none"`, `5`, `""`} {
		c.refused(422, "validation_failed", "POST", "/cart/ops", `{"ops":[{"op":"clear"},{}],"mode":`+mode+`}`).names(t, "mode", "ops.1.op")
	}
	assert.Equal(t, c.tag(), before, "the cart's tag")
	c.ok("POST", "/cart/ops", `{"ops":[`+strings.Repeat(`{"op":"metadata","metadata":{}},`, 49)+`{"op":"clear"}]}`)
	c.wantLines("")
}

// A response names 50 faults: the first of each operation that is refused, then more of the first ones.
func TestOps_NameAtMostFiftyFaults(t *testing.T) {
	c := newShop(t).guest(t)
	many := operation{"add", "", `"product_id":1,"fields":{` + each(60, `"\u0001%d":"x"`) + "}"}
	two := operation{"add", "", `"product_id":1,"fields":{"a":"x","b":"x"}`}
	good := operation{"add", "", `"product_id":1`}
	for name, tt := range map[string]struct {
		ops  []operation
		want []int // faults that the outcome of each names
	}{
		"few faults in a long list": {append(slices.Repeat([]operation{good}, 48), two, two), append(make([]int, 48), 2, 2)},
		"many in few operations":    {[]operation{two, many, good, many}, []int{2, 47, 0, 1}},
		"many in all":               {slices.Repeat([]operation{many}, 50), slices.Repeat([]int{1}, 50)},
	} {
		a := c.ok("POST", "/cart/ops", list("each", tt.ops...))
		var got []int
		for _, o := range a.Body.Data.Outcomes {
			got = append(got, len(o.Errors))
		}
		assert.Equal(t, got, tt.want, "%s: faults", name)
		assert.That(t, len(a.Raw) < worstAnswer, "%s: %d bytes", name, len(a.Raw))
	}
	for _, op := range []operation{many, {"add", "", `"product_id":1,"fields":{` + each(100, `"%d":1`) + "}"}, {"metadata", "", `"metadata":{` + each(40, `"a b%d":"x"`) + "}"}} {
		a := c.refused(422, c.send("POST", "/cart/ops", list("all", op)).Body.Code, "POST", "/cart/ops", list("all", slices.Repeat([]operation{op}, 50)...))
		assert.That(t, len(a.Body.Errors) > 30 && len(a.Body.Errors) <= 50, "%.60s: %d faults", op, len(a.Body.Errors))
	}
}

type countingCatalog struct {
	service.Catalog
	calls *atomic.Int64
}

func (c countingCatalog) Products(ctx context.Context, store int64, ids []int64) (map[int64]*cart.Product, error) {
	c.calls.Add(1)
	return c.Catalog.Products(ctx, store, ids)
}

func TestOps_FiftyOperationsLoadTheCatalogOnce(t *testing.T) {
	var calls atomic.Int64
	s := newShop(t, func(p *server.Parts) { p.Carts.Catalog = countingCatalog{p.Carts.Catalog, &calls} })
	var ops []operation
	for _, p := range sample.Products()[1][:2] {
		ops = append(ops, slices.Repeat([]operation{{"add", "", fmt.Sprintf(`"product_id":%d`, p.ID)}, {"edit", fmt.Sprint(p.ID), `"notice":"n"`}}, 12)...)
	}
	a := s.visitor(t).ok("POST", "/cart/ops", list("each", append(ops, operation{"clear", "", ""}, operation{"add", "", `"product_id":1`})...))
	assert.That(t, a.Body.Data.Version == 1 && a.Body.Data.lines() == "1×1", "after 50 operations: %s", a.Raw)
	assert.Equal(t, calls.Load(), 2, "calls of the catalog: for the list, and for the answer")
}

func TestMetadata_IsMergedByNameAndLimited(t *testing.T) {
	c := newShop(t).guest(t)
	c.add(`{"product_id":1,"metadata":{"gift":" cafe\u0301 ","card.no_1-A":"x"}}`)
	c.add(`{"product_id":1,"metadata":{"gift":null,"to":"Sara"}}`)
	got := c.ok("POST", "/cart/ops", list("all", operation{"metadata", "", `"metadata":{"channel":"kiosk"}`})).Body.Data
	assert.Equal(t, got.Items[0].Metadata, map[string]string{"card.no_1-A": "x", "to": "Sara"}, "the line's")
	assert.Equal(t, got.Metadata, map[string]any{"channel": "kiosk"}, "the cart's")
	c.refused(422, "validation_failed", "PATCH", "/cart/items/1", `{"metadata":`+manyNames("n", 19, 1)+`}`).names(t, "metadata")
	c.edited("1", `{"metadata":`+manyNames("n", 18, 1)+`}`)
	c.refused(422, "validation_failed", "POST", "/cart/add", `{"product_id":7,"qty":2,"metadata":`+manyNames("n", 9, 500)+`}`).names(t, "metadata")
}

// The shopper accepts the price that the page has shown, and no other.
func TestEdit_AcceptsTheCurrentPrice(t *testing.T) {
	s := newShop(t)
	c := s.guest(t).fill("1×1")
	s.alter(1, func(p *cart.Product) { p.Price += 50 })
	c.refused(422, "price_changed", "PATCH", "/cart/items/1", `{"accept_price":4950}`).names(t, "accept_price")
	for range 2 {
		got, _ := c.edited("1", `{"accept_price":5000}`)
		assert.That(t, got.Items[0].AddedPrice == 50 && got.Version == 2, "accepted: %+v", got)
	}
}
