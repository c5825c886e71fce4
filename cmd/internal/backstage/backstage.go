// Package backstage changes what other systems change in reality: the merchant's catalog and the
// billing system. Only the demo has it, so that its page can show how the API reacts.
package backstage

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/catalog"
	"commerce/cart/money"
	"commerce/cart/redisstore"
	"commerce/cart/wire"
	"commerce/deploy/sample"
	"commerce/subscriptions"
)

// Routes returns the calls, below "/playground". They change copies of the products, and the
// subscriptions, of one store, whose currency is known, list its carts at rest, and make agents' calls. The server must accept
// them only from the demo's own page.
func Routes(s *store.Store, products *catalog.Memory, subs *subscriptions.Memory, carts *redisstore.Store) []wire.Route {
	b := &backstage{store: s, products: products, subscriptions: subs, carts: carts, client: http.Client{Timeout: 5 * time.Second}}
	b.decimals, _ = money.Digits(s.Currency)
	return []wire.Route{
		{Method: http.MethodPost, Path: "/playground/products/:id", Handle: b.answer(b.copyProduct)},
		{Method: http.MethodPatch, Path: "/playground/products/:id", Handle: b.answer(b.changeProduct)},
		{Method: http.MethodPost, Path: "/playground/subscriptions", Handle: b.answer(b.bill)},
		{Method: http.MethodPost, Path: "/playground/agent", Handle: b.answer(b.agent)},
		{Method: http.MethodGet, Path: "/playground/abandoned", Handle: b.answer(b.abandoned)},
	}
}

type backstage struct {
	store         *store.Store
	products      *catalog.Memory
	subscriptions *subscriptions.Memory
	carts         *redisstore.Store
	decimals      int         // of the store's currency
	client        http.Client // for agents' calls

	billing sync.Mutex // Bill reads all subscriptions before one changes
	last    sample.Event

	copies atomic.Int64 // of products, made so far
}

const (
	firstCopy = 1_000_000 // above the IDs of the store's own products
	maxCopies = 100       // that exist at the same time
)

// answer adds the language to what a call returns.
func (b *backstage) answer(call wire.Handler) wire.Handler {
	return func(c *gin.Context) (wire.Answer, error) {
		answer, err := call(c)
		answer.Language = locale.Match(c.GetHeader("Accept-Language"), b.store.Locale)
		return answer, err
	}
}

func (b *backstage) bill(c *gin.Context) (wire.Answer, error) {
	if _, _, err := wire.ReadBody(c.Request); err != nil {
		return wire.Answer{}, err
	}
	b.billing.Lock()
	defer b.billing.Unlock()
	var all []subscriptions.Subscription
	for _, s := range slices.Backward(b.subscriptions.Rows(b.store.ID)) {
		all = append(all, *s)
	}
	event, s := sample.Bill(all, b.last, time.Now())
	b.last = event
	if event == sample.Deleted {
		b.subscriptions.Delete(s.StoreID, s.ID, time.Now())
	} else {
		b.subscriptions.Put(s)
	}
	return wire.Answer{Data: func(w *wire.Writer) {
		w.BeginObject()
		w.Number("id", s.ID)
		w.Text("what", string(event))
		w.EndObject()
	}}, nil
}

const maxStock = 1_000_000_000_000

// copyProduct copies a product for the scenario that requests it, and deletes the oldest copy. Other
// visitors never see what the scenario changes, even if its browser is killed.
func (b *backstage) copyProduct(c *gin.Context) (wire.Answer, error) {
	if _, _, err := wire.ReadBody(c.Request); err != nil {
		return wire.Answer{}, err
	}
	id, _ := strconv.ParseInt(c.Param("id"), 10, 64) // no product has the ID 0
	found, err := b.products.Products(c.Request.Context(), b.store.ID, []int64{id})
	if err != nil {
		return wire.Answer{}, err
	}
	if found[id] == nil {
		return wire.Answer{}, problem.New(problem.ProductNotFound, "", textNoProduct)
	}
	made := *found[id]
	made.ID = firstCopy + b.copies.Add(1)
	b.products.Put(b.store.ID, &made)
	b.products.Delete(b.store.ID, made.ID-maxCopies)
	return b.shown(&made), nil
}

// changeProduct changes the price or the stock of a copy, or both.
func (b *backstage) changeProduct(c *gin.Context) (wire.Answer, error) {
	_, members, err := wire.ReadBody(c.Request)
	if err != nil {
		return wire.Answer{}, err
	}
	change, refusal := b.productChange(members)
	if refusal != nil {
		return wire.Answer{}, refusal
	}
	var p *cart.Product
	if id, err := strconv.ParseInt(c.Param("id"), 10, 64); err == nil && id >= firstCopy {
		p = b.products.Change(b.store.ID, id, change)
	}
	if p == nil {
		return wire.Answer{}, problem.New(problem.ProductNotFound, "", textNoCopy)
	}
	return b.shown(p), nil
}

func (b *backstage) shown(p *cart.Product) wire.Answer {
	return wire.Answer{Data: func(w *wire.Writer) {
		w.BeginObject()
		w.Number("id", p.ID)
		w.Amount("price", p.Price, b.decimals)
		w.NullableNumber("stock", p.Stock)
		w.EndObject()
	}}
}

// productChange returns what changes a product, or an error that names every invalid member.
func (b *backstage) productChange(members wire.Object) (change func(*cart.Product), err *problem.Error) {
	price, hasPrice := members["price"]
	stock, hasStock := members["stock"]
	if !hasPrice && !hasStock {
		return nil, problem.New(problem.ValidationFailed, "price", textNothing)
	}
	var faults []*problem.Error
	amount, ok := wire.MinorUnits(price, b.decimals)
	if hasPrice && (!ok || amount < 0 || amount > cart.MaxPrice) {
		highest := string(money.AppendMajor(nil, cart.MaxPrice, b.decimals))
		faults = append(faults, problem.New(problem.ValidationFailed, "price", textPrice, highest, b.decimals))
	}
	var left *int64 // nil: unlimited
	if hasStock && stock.Kind() != 'n' {
		number, ok := wire.WholeNumber(stock)
		if !ok || number < 0 || number > maxStock {
			faults = append(faults, problem.New(problem.ValidationFailed, "stock", textStock, maxStock))
		}
		left = &number
	}
	return func(p *cart.Product) {
		if hasPrice {
			setPrice(p, amount)
		}
		if hasStock {
			p.Stock = left
		}
	}, problem.Join(faults...)
}

// setPrice keeps the original price of a product on sale, unless the new price is higher.
func setPrice(p *cart.Product, price money.Amount) {
	onSale := p.OriginalPrice > p.Price
	p.Price = price
	if !onSale || p.OriginalPrice < price {
		p.OriginalPrice = price
	}
}

var (
	textNoProduct = locale.Text{
		locale.En: "The store has no product with this ID.",
		locale.Ar: "لا يوجد في المتجر منتج بهذا المعرّف.",
	}
	textNoCopy = locale.Text{
		locale.En: "No copy of a product has this ID, or it is too old.",
		locale.Ar: "لا توجد نسخة من منتج بهذا المعرّف، أو أنها قديمة جدًا.",
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
