package cart

import (
	"commerce/auth/locale"
	"commerce/auth/problem"
)

// Refusal is why a cart does not take a change that its request and the catalog allow.
// A and B are the numbers of its sentence:
//
//	product_not_found, product_inactive, out_of_stock, item_not_found
//	insufficient_stock     A in stock, B in the cart already
//	quantity_out_of_range  A minimum, B maximum of the line
//	cart_full              B is 0 for too many lines, 1 for too much text
type Refusal struct {
	Code problem.Code
	A, B int64
}

// Problem words the refusal. member is the request's member at fault; p is the product
// that the change is about, nil for none.
func (r Refusal) Problem(member string, p *Product, limits Limits) *problem.Error {
	name := ""
	if p != nil {
		name = p.Name
	}
	switch r.Code {
	case problem.ItemNotFound:
		return problem.New(r.Code, "", textItemNotFound)
	case problem.CartFull:
		if r.B == 1 {
			return problem.New(r.Code, "", textTooMuchText, limits.CartText)
		}
		return problem.New(r.Code, "", textTooManyLines, limits.Lines)
	}
	return &problem.Error{Code: r.Code, Faults: []problem.Fault{{Member: member, Sentence: r.sentence(name)}}}
}

func (r Refusal) sentence(product string) locale.Sentence {
	switch r.Code {
	case problem.ProductNotFound:
		return textNoProduct.With()
	case problem.ProductInactive:
		return textInactive.With(product)
	case problem.OutOfStock:
		return textOutOfStock.With(product)
	case problem.InsufficientStock:
		if r.B > 0 {
			return onlySomeHeld(r.A, product, r.B)
		}
		return onlySome(r.A, product)
	}
	return quantityRange(r.A, r.B, product)
}

// onlySome says how many are available. English has another verb for one.
func onlySome(available int64, product string) locale.Sentence {
	if available == 1 {
		return textOnlyOne.With(available, product)
	}
	return textOnlySome.With(available, product)
}

func onlySomeHeld(available int64, product string, held int64) locale.Sentence {
	if available == 1 {
		return textOnlyOneHeld.With(available, product, held)
	}
	return textOnlySomeHeld.With(available, product, held)
}

// quantityRange says how many may be bought, without "from 1 to 1" and the like.
func quantityRange(minimum, maximum int64, product string) locale.Sentence {
	switch {
	case minimum > maximum: // more than this service sells at once
		return textInactive.With(product)
	case minimum == maximum:
		return textExactly.With(minimum, product)
	case minimum <= 1:
		return textAtMost.With(maximum, product)
	}
	return textOutOfRange.With(minimum, maximum, product)
}

var (
	textItemNotFound = locale.Text{
		locale.En: "That item is not in the cart.",
		locale.Ar: "هذا العنصر غير موجود في السلة.",
	}
	textTooManyLines = locale.Text{
		locale.En: "The cart is full. The limit of different items is %d.",
		locale.Ar: "السلة ممتلئة. الحد الأقصى لعدد العناصر المختلفة هو %d.",
	}
	textTooMuchText = locale.Text{
		locale.En: "The cart is full. The limit of its texts in bytes is %d.",
		locale.Ar: "السلة ممتلئة. الحد الأقصى لحجم نصوصها بالبايت هو %d.",
	}
	textOutOfRange = locale.Text{
		locale.En: "You can buy %d to %d of “%s”.",
		locale.Ar: "يمكنك شراء من %d إلى %d من «%s».",
	}
	textExactly = locale.Text{
		locale.En: "You can buy “%[2]s” only in a quantity of %[1]d.",
		locale.Ar: "لا يمكن شراء «%[2]s» إلا بكمية قدرها %[1]d.",
	}
	textAtLeast = locale.Text{
		locale.En: "You need at least %d of “%s”.",
		locale.Ar: "الحد الأدنى هو %d من «%s».",
	}
	textAtMost = locale.Text{
		locale.En: "You can buy at most %d of “%s”.",
		locale.Ar: "الحد الأقصى هو %d من «%s».",
	}
	textNoProduct = locale.Text{
		locale.En: "This product does not exist in this store.",
		locale.Ar: "هذا المنتج غير موجود في المتجر.",
	}
	textInactive = locale.Text{
		locale.En: "“%s” is not sold at the moment.",
		locale.Ar: "«%s» غير معروض للبيع حاليًا.",
	}
	textOutOfStock = locale.Text{
		locale.En: "“%s” is out of stock.",
		locale.Ar: "نفدت كمية «%s».",
	}
	textOnlySome = locale.Text{
		locale.En: "Only %d of “%s” are available.",
		locale.Ar: "المتوفر %d فقط من «%s».",
	}
	textOnlySomeHeld = locale.Text{
		locale.En: "Only %d of “%s” are available, and your cart already holds %d.",
		locale.Ar: "المتوفر %d فقط من «%s»، وفي سلتك %d بالفعل.",
	}
	textOnlyOne = locale.Text{
		locale.En: "Only %d of “%s” is available.",
		locale.Ar: "المتوفر %d فقط من «%s».",
	}
	textOnlyOneHeld = locale.Text{
		locale.En: "Only %d of “%s” is available, and your cart already holds %d.",
		locale.Ar: "المتوفر %d فقط من «%s»، وفي سلتك %d بالفعل.",
	}
)
