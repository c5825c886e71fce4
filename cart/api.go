package cart

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/cart/money"
)

// API answers the cart's HTTP calls. Its handlers decode, call the Service once and
// return errors for the one place that writes them.
type API struct {
	callers *auth.CartCallers
	carts   *Service
	prices  *money.Formatter
	name    string
	buffers sync.Pool // of *[]byte, for answers
}

// NewAPI takes the identifier that every answer carries as "api".
func NewAPI(callers *auth.CartCallers, carts *Service, prices *money.Formatter, name string) *API {
	return &API{
		callers: callers, carts: carts, prices: prices, name: name,
		buffers: sync.Pool{New: func() any { return new([]byte) }},
	}
}

// Routes lists every cart call by method and path.
func (a *API) Routes() map[string]func(*gin.Context) error {
	return map[string]func(*gin.Context) error{
		"GET /cart":                   a.serve(a.get),
		"GET /cart/count":             a.serve(a.count),
		"GET /cart/validate":          a.serve(a.validate),
		"GET /cart/summary":           a.serve(a.summary),
		"POST /cart/add":              a.change(a.add),
		"PATCH /cart/items/:item_id":  a.change(a.setQuantity),
		"DELETE /cart/items/:item_id": a.change(a.remove),
		"DELETE /cart/clear":          a.change(a.clear),
		"POST /cart/coupon":           a.change(a.redeemCoupon),
		"DELETE /cart/coupon":         a.change(a.dropCoupon),
	}
}

// visit is one call: who makes it, in which language it is answered, and what a
// merge did before it.
type visit struct {
	*gin.Context
	Shopper
	language locale.Locale
	merged   *MergeReport
}

// change takes a waiting guest cart in before the change is even decoded, so that a
// change that is refused merges too.
func (a *API) change(serve func(*visit) error) func(*gin.Context) error {
	return a.serve(func(v *visit) error {
		key, _ := keyDigest(v.Request.Header) // one that cannot be read is refused later
		v.merged = a.carts.MergeFirst(v.ctx(), &v.Shopper, key)
		return serve(v)
	})
}

func (a *API) serve(serve func(*visit) error) func(*gin.Context) error {
	return func(c *gin.Context) error {
		caller, err := a.callers.Identify(c.Request)
		if err != nil {
			return err
		}
		shopper, err := a.carts.Shopper(caller)
		if err != nil {
			return err
		}
		v := &visit{
			Context: c, Shopper: shopper,
			language: locale.Match(c.GetHeader("Accept-Language"), caller.Store.Locale),
		}
		return a.explain(v, serve(v))
	}
}

func (v *visit) ctx() context.Context { return v.Request.Context() }

// asked reads what a change asks for, and on which terms.
func (v *visit) asked() (members object, on Conditions, err error) {
	body, members, err := readBody(v.Request)
	if err != nil {
		return nil, Conditions{}, err
	}
	on, err = conditionsOf(v.Request, body)
	return members, on, err
}

// explain completes an error with what only this call knows: its language, and the
// data that a refusal carries.
func (a *API) explain(v *visit, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	told := *e
	told.language = v.language
	v.merged = v.merged.plus(e.merged)
	if v.Fresh {
		v.Token = "" // a refusal hands out none
	}
	w := newWire(v.Store, v.language, a.prices)
	switch {
	case e.current != nil:
		v.Header("ETag", `"`+w.cart(e.current, v.Token, v.merged, nil)+`"`)
	case e.validation != nil:
		w.validation(e.validation, v.merged)
	case v.merged != nil:
		w.ObjStart()
		w.merge(v.merged)
		w.ObjEnd()
	}
	told.data = w.Bytes()
	return &told
}

func (a *API) get(v *visit) error {
	return a.showCart(v, false)
}

func (a *API) summary(v *visit) error {
	return a.showCart(v, true)
}

// showCart answers a read of the whole cart.
func (a *API) showCart(v *visit, summary bool) error {
	priced, merged, err := a.carts.Read(v.ctx(), v.Shopper)
	v.merged = merged
	if err != nil {
		return err
	}
	known, err := entityTags(v.Request.Header, "If-None-Match")
	if err != nil {
		return err
	}
	w, done := a.begin(v)
	defer done()
	var more func()
	if summary {
		more = func() { w.summary(&priced) }
	}
	etag := w.cart(&priced, v.Token, merged, more)
	v.Header("ETag", `"`+etag+`"`)
	if merged == nil && known.contain(etag) {
		a.headers(v)
		v.Status(http.StatusNotModified)
		return nil
	}
	return a.send(v, w)
}

func (a *API) count(v *visit) error {
	quantity, lines, merged, err := a.carts.Count(v.ctx(), v.Shopper)
	v.merged = merged
	if err != nil {
		return err
	}
	w, done := a.begin(v)
	defer done()
	w.count(quantity, lines, v.Token, merged)
	return a.send(v, w)
}

func (a *API) validate(v *visit) error {
	validation, merged, err := a.carts.Validate(v.ctx(), v.Shopper)
	v.merged = merged
	if err != nil {
		return err
	}
	if !validation.Valid() {
		e := refuse(CodeCartInvalid, "", sayCartInvalid)
		e.validation = &validation
		return e
	}
	w, done := a.begin(v)
	defer done()
	w.validation(&validation, merged)
	v.Fresh = false // validate issues no token
	return a.send(v, w)
}

func (a *API) add(v *visit) error {
	members, on, err := v.asked()
	if err != nil {
		return err
	}
	addition, err := members.addition()
	if err != nil {
		return a.carts.Refuse(v.ctx(), v.Shopper, on, err)
	}
	changed, err := a.carts.Add(v.ctx(), v.Shopper, on, addition)
	return a.sendChanged(v, changed, err)
}

func (a *API) setQuantity(v *visit) error {
	members, on, err := v.asked()
	if err != nil {
		return err
	}
	quantity, member, err := members.newQuantity()
	if err != nil {
		return a.carts.Refuse(v.ctx(), v.Shopper, on, err)
	}
	item, _ := parseLineID(v.Param("item_id"))
	changed, err := a.carts.SetQuantity(v.ctx(), v.Shopper, on, item, quantity, member)
	return a.sendChanged(v, changed, err)
}

func (a *API) remove(v *visit) error {
	on, err := conditionsOf(v.Request, nil)
	if err != nil {
		return err
	}
	item, _ := parseLineID(v.Param("item_id"))
	changed, err := a.carts.Remove(v.ctx(), v.Shopper, on, item)
	return a.sendChanged(v, changed, err)
}

func (a *API) clear(v *visit) error {
	on, err := conditionsOf(v.Request, nil)
	if err != nil {
		return err
	}
	changed, err := a.carts.Clear(v.ctx(), v.Shopper, on)
	return a.sendChanged(v, changed, err)
}

func (a *API) redeemCoupon(v *visit) error {
	members, on, err := v.asked()
	if err != nil {
		return err
	}
	code, member, err := members.couponCode()
	if err != nil {
		return a.carts.Refuse(v.ctx(), v.Shopper, on, err)
	}
	changed, err := a.carts.RedeemCoupon(v.ctx(), v.Shopper, on, code, member)
	return a.sendChanged(v, changed, err)
}

func (a *API) dropCoupon(v *visit) error {
	on, err := conditionsOf(v.Request, nil)
	if err != nil {
		return err
	}
	changed, err := a.carts.DropCoupon(v.ctx(), v.Shopper, on)
	return a.sendChanged(v, changed, err)
}

// sendChanged answers a change with the cart as it is now.
func (a *API) sendChanged(v *visit, c Changed, err error) error {
	if err != nil {
		return err
	}
	v.merged = v.merged.plus(c.Merge)
	if c.Durability != "" {
		v.Header("Durability", c.Durability)
	}
	if c.Replayed {
		v.Header("Idempotency-Replayed", "true")
	}
	w, done := a.begin(v)
	defer done()
	v.Header("ETag", `"`+w.cart(&c.Priced, v.Token, v.merged, nil)+`"`)
	return a.send(v, w)
}

// begin opens the envelope up to its data, in a buffer that is given back by done.
func (a *API) begin(v *visit) (w *wire, done func()) {
	w = newWire(v.Store, v.language, a.prices)
	buffer := a.buffers.Get().(*[]byte)
	w.SetBytes((*buffer)[:0])
	done = func() {
		*buffer = w.Bytes()
		a.buffers.Put(buffer)
	}
	w.ObjStart()
	w.member("success")
	w.Bool(true)
	w.member("message")
	w.Null()
	w.member("data")
	return w, done
}

// send closes the envelope and writes the answer.
func (a *API) send(v *visit, w *wire) error {
	w.text("api", a.name)
	w.number("timestamp", time.Now().Unix())
	w.ObjEnd()
	a.headers(v)
	v.Header("Content-Length", strconv.Itoa(len(w.Bytes())))
	v.Data(http.StatusOK, "application/json; charset=utf-8", w.Bytes())
	return nil
}

// headers says whom the answer is for, and hands out a new token.
func (a *API) headers(v *visit) {
	v.Header("Cache-Control", "private, no-cache")
	if v.merged != nil {
		v.Header("Cache-Control", "no-store") // a report is of one moment
	}
	v.Writer.Header()["Vary"] = []string{
		"Authorization, X-Cart-Token, X-Public-Key, Accept-Language, Origin",
		"Accept-Encoding", // compression's own
	}
	if v.Fresh {
		v.Header("X-Cart-Token", v.Token.Reveal())
	}
}
