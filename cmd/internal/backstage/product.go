package backstage

import (
	"strconv"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json/jsontext"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/money"
	"commerce/cart/wire"
)

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
	var badPrice, badStock *problem.Error
	if hasPrice {
		change.price, badPrice = b.price(price)
	}
	if change.hasStock = hasStock; hasStock {
		change.stock, badStock = readStock(stock)
	}
	return change, problem.Join(badPrice, badStock)
}

func (b *backstage) price(v jsontext.Value) (*money.Amount, *problem.Error) {
	price, ok := wire.MinorUnits(v, b.decimals)
	if !ok || price < 0 || price > cart.MaxPrice {
		highest := string(money.AppendMajor(nil, cart.MaxPrice, b.decimals))
		return nil, problem.New(problem.ValidationFailed, "price", textPrice, highest, b.decimals)
	}
	return &price, nil
}

func readStock(v jsontext.Value) (*int64, *problem.Error) {
	if v.Kind() == 'n' {
		return nil, nil
	}
	stock, ok := wire.WholeNumber(v)
	if !ok || stock < 0 || stock > maxStock {
		return nil, problem.New(problem.ValidationFailed, "stock", textStock, maxStock)
	}
	return &stock, nil
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
