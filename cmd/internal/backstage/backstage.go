// Package backstage changes what other systems change in reality: the merchant's catalog and
// the billing system. The demo's page uses it to show how the API reacts. Only the demo has
// it, on its data in memory.
package backstage

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/catalog"
	"commerce/cart/money"
	"commerce/cart/wire"
	"commerce/deploy/sample"
	"commerce/subscriptions"
)

// Config configures the calls.
type Config struct {
	Store         *store.Store // whose products and subscriptions change
	Catalog       *catalog.Memory
	Subscriptions *subscriptions.Memory
	Now           func() time.Time // default time.Now
}

// Routes returns the calls, below "/playground". The server must accept them only from the
// demo's own page.
func Routes(c Config) ([]wire.Route, error) {
	decimals, known := money.Digits(c.Store.Currency)
	if !known {
		return nil, fmt.Errorf("backstage: unknown currency %q", c.Store.Currency)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	b := &backstage{Config: c, decimals: decimals}
	return []wire.Route{
		{Method: http.MethodPatch, Path: "/playground/products/:id", Handle: b.answer(b.changeProduct)},
		{Method: http.MethodPost, Path: "/playground/subscriptions", Handle: b.answer(b.bill)},
	}, nil
}

type backstage struct {
	Config
	decimals int // of the store's currency

	billing sync.Mutex // Bill reads all subscriptions before one changes
	last    sample.Event
}

// answer adds the language to what a call returns.
func (b *backstage) answer(call wire.Handler) wire.Handler {
	return func(c *gin.Context) (wire.Answer, error) {
		answer, err := call(c)
		answer.Language = locale.Match(c.GetHeader("Accept-Language"), b.Store.Locale)
		return answer, err
	}
}

// bill lets the store's billing change one subscription.
func (b *backstage) bill(c *gin.Context) (wire.Answer, error) {
	if _, _, err := wire.ReadBody(c.Request); err != nil {
		return wire.Answer{}, err
	}
	b.billing.Lock()
	defer b.billing.Unlock()
	all, err := b.Subscriptions.Changes(c.Request.Context(), b.Store.ID, subscriptions.ChangesQuery{Limit: math.MaxInt})
	if err != nil {
		return wire.Answer{}, err
	}
	event, s := sample.Bill(all.Changed, b.last, b.Now())
	b.last = event
	if event == sample.Deleted {
		b.Subscriptions.Delete(s.StoreID, s.ID, b.Now())
	} else {
		b.Subscriptions.Put(s)
	}
	return wire.Answer{Data: func(w *wire.Writer) {
		w.BeginObject()
		w.Number("id", s.ID)
		w.Text("what", string(event))
		w.EndObject()
	}}, nil
}

// maxStock is the database's limit.
const maxStock = 1_000_000_000_000

// changeProduct changes the price or the stock of a product, or both.
func (b *backstage) changeProduct(c *gin.Context) (wire.Answer, error) {
	_, members, err := wire.ReadBody(c.Request)
	if err != nil {
		return wire.Answer{}, err
	}
	change, refusal := b.productChange(members)
	if refusal != nil {
		return wire.Answer{}, refusal
	}
	id, _ := strconv.ParseInt(c.Param("id"), 10, 64) // no product has the ID 0
	p := b.Catalog.Change(b.Store.ID, id, change.apply)
	if p == nil {
		return wire.Answer{}, problem.New(problem.ProductNotFound, "", textNoProduct)
	}
	return wire.Answer{Data: func(w *wire.Writer) {
		w.BeginObject()
		w.Number("id", p.ID)
		w.Amount("price", p.Price, b.decimals)
		w.NullableNumber("stock", p.Stock)
		w.EndObject()
	}}, nil
}

// productChange is what to change of a product.
type productChange struct {
	price    *money.Amount // nil: stays
	hasStock bool
	stock    *int64 // nil: unlimited
}

// productChange reads the members of a request. Its error names every invalid one.
func (b *backstage) productChange(members wire.Object) (change productChange, err *problem.Error) {
	price, hasPrice := members["price"]
	stock, hasStock := members["stock"]
	if !hasPrice && !hasStock {
		return change, problem.New(problem.ValidationFailed, "price", textNothing)
	}
	var faults []*problem.Error
	if hasPrice {
		amount, ok := wire.MinorUnits(price, b.decimals)
		if !ok || amount < 0 || amount > cart.MaxPrice {
			highest := string(money.AppendMajor(nil, cart.MaxPrice, b.decimals))
			faults = append(faults, problem.New(problem.ValidationFailed, "price", textPrice, highest, b.decimals))
		}
		change.price = &amount
	}
	if change.hasStock = hasStock; hasStock && stock.Kind() != 'n' {
		number, ok := wire.WholeNumber(stock)
		if !ok || number < 0 || number > maxStock {
			faults = append(faults, problem.New(problem.ValidationFailed, "stock", textStock, maxStock))
		}
		change.stock = &number
	}
	return change, problem.Join(faults...)
}

// apply changes a product. One that is on sale keeps its original price, unless the new
// price is higher.
func (change productChange) apply(p *cart.Product) {
	if change.price != nil {
		onSale := p.OriginalPrice > p.Price
		p.Price = *change.price
		if !onSale || p.OriginalPrice < p.Price {
			p.OriginalPrice = p.Price
		}
	}
	if change.hasStock {
		p.Stock = change.stock
	}
}

var (
	textNoProduct = locale.Text{
		locale.En: "The store has no product with this ID.",
		locale.Ar: "لا يوجد في المتجر منتج بهذا المعرّف.",
	}
	textNothing = locale.Text{
		locale.En: "Send price, stock or both.",
		locale.Ar: "أرسل price أو stock أو كليهما.",
	}
	textPrice = locale.Text{
		locale.En: "price must be a number from 0 to %s with at most %d decimals.",
		locale.Ar: "يجب أن يكون price رقمًا بين 0 و%s، وألا يزيد عدد خاناته العشرية على %d.",
	}
	textStock = locale.Text{
		locale.En: "stock must be a whole number from 0 to %d, or null for unlimited.",
		locale.Ar: "يجب أن يكون stock عددًا صحيحًا بين 0 و%d، أو null لمخزون غير محدود.",
	}
)
