package cart

import (
	"golang.org/x/text/feature/plural"

	"commerce/auth/locale"
	"commerce/auth/problem"
)

// Refusal is why what the cart holds does not allow a change that is valid by itself.
type Refusal struct {
	Code problem.Code
	Held int64 // insufficient_stock and above_max_per_cart: how many of the product the cart holds already
}

// Codes of refusals that an error response shows as another code.
const (
	AboveMaxPerCart problem.Code = "above_max_per_cart" // as quantity_out_of_range
	TextFull        problem.Code = "text_full"          // as cart_full
	AmbiguousItem   problem.Code = "ambiguous_item"     // as validation_failed: several lines have the product
	MetadataFull    problem.Code = "metadata_full"      // as validation_failed: too many names
	LineTextFull    problem.Code = "line_text_full"     // as validation_failed: the metadata is too long
	NoticeTooLong   problem.Code = "notice_too_long"    // as validation_failed: the notice is, with the line's metadata
)

// Problem returns the refusal as an error. member is the request's member that the error
// names; p is the changed line's product, nil for none.
func (r Refusal) Problem(member string, p *Product, limits Limits) *problem.Error {
	switch r.Code {
	case problem.ItemNotFound:
		return problem.New(r.Code, "", textItemNotFound)
	case AmbiguousItem:
		return problem.New(problem.ValidationFailed, "item_id", textAmbiguousItem)
	case TextFull:
		return problem.New(problem.CartFull, "", textTooMuchText, limits.CartText)
	case MetadataFull:
		return problem.New(problem.ValidationFailed, "metadata", textTooManyNames, MaxMetadata)
	case LineTextFull:
		return textTooLong("metadata", limits)
	case NoticeTooLong:
		return textTooLong("notice", limits)
	case problem.CartFull:
		return problem.New(r.Code, "", textTooManyLines, differentItems.Of(limits.Lines))
	}
	code := r.Code
	if code == OffStep || code == AboveMaxPerCart {
		code = problem.QuantityOutOfRange
	}
	return &problem.Error{Code: code, Faults: []problem.Fault{{Member: member, Sentence: r.sentence(p, BoundsOf(p, limits))}}}
}

func (r Refusal) sentence(p *Product, b Bounds) locale.Sentence {
	switch {
	case r.Code == problem.ProductNotFound:
		return textNoProduct.With()
	case p == nil:
		return textRefused.With()
	}
	product := p.Name
	switch r.Code {
	case problem.ProductInactive:
		return textInactive.With(product)
	case problem.OutOfStock:
		return textOutOfStock.With(product)
	case problem.InsufficientStock:
		if r.Held > 0 {
			return onlySomeHeld(b.Stock, product, r.Held)
		}
		return onlySome(b.Stock, product)
	case problem.QuantityOutOfRange:
		return quantityRange(b.Min, b.Max, product)
	case OffStep:
		return textOffStep.With(product, Units.Of(b.Step), Units.Of(b.Min))
	case AboveMaxPerCart:
		return textAtMostPerCart.With(Units.Of(b.PerCart), product)
	}
	return textRefused.With()
}

// onlySome says how many are available. English needs another verb for one.
func onlySome(available int64, product locale.Name) locale.Sentence {
	if available == 1 {
		return textOnlyOne.With(Units.Of(available), product)
	}
	return textOnlySome.With(Units.Of(available), product)
}

func onlySomeHeld(available int64, product locale.Name, held int64) locale.Sentence {
	if available == 1 {
		return textOnlyOneHeld.With(Units.Of(available), product, Units.Of(held))
	}
	return textOnlySomeHeld.With(Units.Of(available), product, Units.Of(held))
}

// onlyLeft says what is left of the stock for a line, after what the cart holds in others.
func onlyLeft(stock, taken int64, product locale.Name) locale.Sentence {
	switch {
	case taken == 0:
		return onlySome(stock, product)
	case taken >= stock:
		return onlySomeHeld(stock, product, taken)
	}
	return textOnlyLeft.With(Units.Of(stock-taken), product, Units.Of(taken))
}

// quantityRange says how many may be bought, and avoids ranges such as "1 to 1".
func quantityRange(minimum, maximum int64, product locale.Name) locale.Sentence {
	switch {
	case minimum > maximum: // more than this service sells at once
		return textInactive.With(product)
	case minimum == maximum:
		return textExactly.With(Units.Of(minimum), product)
	case minimum <= 1:
		return textAtMost.With(Units.Of(maximum), product)
	}
	return textOutOfRange.With(Units.Of(minimum), Units.Of(maximum), product)
}

var (
	// textRefused is for a code that has no sentence, and for a product that is not known.
	textRefused = locale.Text{
		locale.En: "The cart does not allow this change.",
		locale.Ar: "لا تسمح السلة بهذا التغيير.",
	}
	textItemNotFound = locale.Text{
		locale.En: "That item is not in the cart.",
		locale.Ar: "هذا العنصر غير موجود في السلة.",
	}
	textAmbiguousItem = locale.Text{
		locale.En: "The cart holds several lines of this product. Please use the ID of one of them.",
		locale.Ar: "تحتوي السلة على عدة عناصر من هذا المنتج. يُرجى استخدام معرّف أحدها.",
	}
	textTooManyLines = locale.Text{
		locale.En: "The cart is full. Remove an item before you add another. The maximum number of different items is %s.",
		locale.Ar: "السلة ممتلئة، فهي لا تتسع لأكثر من %s. أزل عنصرًا قبل إضافة غيره.",
	}
	textTooMuchText = locale.Text{
		locale.En: "The cart has no room for more text. Please shorten a note or another text. The limit is %d bytes.",
		locale.Ar: "لا تتسع السلة لنصوص أخرى. يُرجى اختصار ملاحظة أو نص آخر. الحد الأقصى %d بايت.",
	}
	textOutOfRange = locale.Text{
		locale.En: "You can buy %s to %s of “%s”.",
		locale.Ar: "يمكنك شراء كمية من %s إلى %s من «%s».",
	}
	textExactly = locale.Text{
		locale.En: "You can buy “%[2]s” only in a quantity of %[1]s.",
		locale.Ar: "لا يُباع المنتج «%[2]s» إلا بكمية %[1]s.",
	}
	textAtLeast = locale.Text{
		locale.En: "You must buy at least %s of “%s”.",
		locale.Ar: "يجب شراء %s على الأقل من «%s».",
	}
	textAtMost = locale.Text{
		locale.En: "You can buy at most %s of “%s”.",
		locale.Ar: "لا يمكن شراء أكثر من %s من «%s».",
	}
	textOffStep = locale.Text{
		locale.En: "You can buy “%s” in steps of %s, starting at %s.",
		locale.Ar: "يُباع المنتج «%s» بكميات تتزايد بمقدار %s ابتداءً من %s.",
	}
	textAtMostPerCart = locale.Text{
		locale.En: "A cart can hold at most %s of “%s”.",
		locale.Ar: "لا تتسع السلة الواحدة لأكثر من %s من «%s».",
	}
	textNoProduct = locale.Text{
		locale.En: "This product does not exist in this store.",
		locale.Ar: "هذا المنتج غير موجود في المتجر.",
	}
	textInactive = locale.Text{
		locale.En: "“%s” is currently not for sale.",
		locale.Ar: "المنتج «%s» غير معروض للبيع حاليًا.",
	}
	textOutOfStock = locale.Text{
		locale.En: "“%s” is out of stock.",
		locale.Ar: "نفدت الكمية المتوفرة من «%s».",
	}
	textOnlySome = locale.Text{
		locale.En: "Only %s of “%s” are available.",
		locale.Ar: "لا يتوفر سوى %s من «%s».",
	}
	textOnlySomeHeld = locale.Text{
		locale.En: "Only %s of “%s” are available, and your cart already holds %s.",
		locale.Ar: "لا يتوفر سوى %s من «%s»، وتحتوي سلتك بالفعل على %s.",
	}
	textOnlyLeft = locale.Text{
		locale.En: "You can buy only %s of “%s” in addition to the %s in your cart.",
		locale.Ar: "لا يتوفر سوى %s من «%s» زيادةً على %s في سلتك.",
	}
	textOnlyOne = locale.Text{
		locale.En: "Only %s of “%s” is available.",
		locale.Ar: "لا يتوفر سوى %s من «%s».",
	}
	textOnlyOneHeld = locale.Text{
		locale.En: "Only %s of “%s” is available, and your cart already holds %s.",
		locale.Ar: "لا يتوفر سوى %s من «%s»، وتحتوي سلتك بالفعل على %s.",
	}
)

// Units is a quantity of a product. The Arabic forms are those after a preposition or another
// noun (genitive). English sentences say only the number.
var Units = locale.Noun{locale.Ar: {
	plural.Zero:  "0 وحدة",
	plural.One:   "وحدة واحدة",
	plural.Two:   "وحدتين",
	plural.Few:   "{n} وحدات",
	plural.Many:  "{n} وحدة",
	plural.Other: "{n} وحدة",
}}

// differentItems is a number of lines, in the same case.
var differentItems = locale.Noun{locale.Ar: {
	plural.Zero:  "0 عنصر",
	plural.One:   "عنصر واحد",
	plural.Two:   "عنصرين مختلفين",
	plural.Few:   "{n} عناصر مختلفة",
	plural.Many:  "{n} عنصرًا مختلفًا",
	plural.Other: "{n} عنصر مختلف",
}}
