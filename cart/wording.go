package cart

import (
	"fmt"

	"commerce/auth/locale"
)

// phrase names a sentence; what it needs filled in stands beside it.
type phrase int

const (
	sayNotJSON         phrase = iota
	sayNotObject              //
	sayTooDeep                // most levels
	sayTrailing               //
	sayTwice                  // member
	sayTooLarge               // most bytes
	sayNeedsJSON              //
	sayRequired               // member
	sayWholeNumber            // member
	sayAtLeastOne             // member
	sayNotNegative            // member
	sayDisagree               // member, member
	sayText                   // member
	sayObject                 // member
	sayPlanShape              //
	sayTextTooLong            // member, most characters
	sayLineTextTooLong        // most bytes
	sayPlainText              // member
	sayBadHeader              // header
	sayUnavailable            //
	sayOutcomeUnknown         //
	sayItemNotFound           //
	sayVersionMismatch        //
	sayKeyReused              //
	sayCartInvalid            //
	sayCartEmpty              //
	sayTooManyLines           // most
	sayTooMuchText            // most bytes
	sayOutOfRange             // least, most, product
	sayExactly                // quantity, product
	sayAtLeast                // least, product
	sayAtMost                 // most, product
	sayNoProduct              //
	sayInactive               // product
	sayOutOfStock             // product
	sayOnlySome               // available, product
	sayOnlySomeHeld           // available, product, held
	sayPlanNeeded             // product
	sayNoPlans                // product
	sayPlanGone               // product
	sayFieldMissing           // field, product
	sayNoField                // field, product
	sayNoOption               // field, product
	sayFieldTwice             // field
	sayPriceRose              // product
	sayPriceFell              // product
	sayLowStock               // left, product
	sayCouponUnknown          //
	sayCouponExpired          // code
	sayCouponMinimum          // code, amount

	// Of one: English has another verb.

	sayOnlyOne     // available, product
	sayOnlyOneHeld // available, product, held
	sayLastOne     // left, product
)

var wording = map[phrase]locale.Text{
	sayNotJSON: {
		locale.En: "The request body is not valid JSON.",
		locale.Ar: "محتوى الطلب ليس JSON صالحًا.",
	},
	sayNotObject: {
		locale.En: "The request body must be a JSON object.",
		locale.Ar: "يجب أن يكون محتوى الطلب كائن JSON.",
	},
	sayTooDeep: {
		locale.En: "The request body is nested more than %d levels deep.",
		locale.Ar: "محتوى الطلب متداخل لأكثر من %d مستوى.",
	},
	sayTrailing: {
		locale.En: "The request body goes on after its JSON object.",
		locale.Ar: "يستمر محتوى الطلب بعد نهاية كائن JSON.",
	},
	sayTwice: {
		locale.En: "%s is given more than once.",
		locale.Ar: "العضو %s معطى أكثر من مرة.",
	},
	sayTooLarge: {
		locale.En: "The request body is larger than %d bytes.",
		locale.Ar: "محتوى الطلب أكبر من %d بايت.",
	},
	sayNeedsJSON: {
		locale.En: "Send the request body as application/json in UTF-8.",
		locale.Ar: "أرسل محتوى الطلب بصيغة application/json وبترميز UTF-8.",
	},
	sayRequired: {
		locale.En: "%s is required.",
		locale.Ar: "الحقل %s مطلوب.",
	},
	sayWholeNumber: {
		locale.En: "%s must be a whole number.",
		locale.Ar: "يجب أن يكون %s عددًا صحيحًا.",
	},
	sayAtLeastOne: {
		locale.En: "%s must be 1 or more.",
		locale.Ar: "يجب أن يكون %s واحدًا أو أكثر.",
	},
	sayNotNegative: {
		locale.En: "%s must be 0 or more.",
		locale.Ar: "يجب ألا يقل %s عن صفر.",
	},
	sayDisagree: {
		locale.En: "%s and %s differ; send one of them.",
		locale.Ar: "القيمتان %s و%s مختلفتان؛ أرسل إحداهما فقط.",
	},
	sayText: {
		locale.En: "%s must be text.",
		locale.Ar: "يجب أن يكون %s نصًا.",
	},
	sayObject: {
		locale.En: "%s must be an object.",
		locale.Ar: "يجب أن يكون %s كائنًا.",
	},
	sayPlanShape: {
		locale.En: "subscription_plan must be a plan's id, or an object with that id.",
		locale.Ar: "يجب أن يكون subscription_plan معرّف خطة، أو كائنًا يحمل هذا المعرّف.",
	},
	sayTextTooLong: {
		locale.En: "%s is too long. The limit in characters is %d.",
		locale.Ar: "النص في %s أطول من اللازم. الحد الأقصى لعدد المحارف هو %d.",
	},
	sayLineTextTooLong: {
		locale.En: "The fields and the notice of an item are too long. The limit in bytes is %d.",
		locale.Ar: "نصوص الحقول والملاحظة لهذا العنصر أطول من اللازم. الحد الأقصى لعدد البايتات هو %d.",
	},
	sayPlainText: {
		locale.En: "%s holds characters that are not text.",
		locale.Ar: "يحتوي %s على رموز غير نصية.",
	},
	sayBadHeader: {
		locale.En: "The header %s cannot be read.",
		locale.Ar: "تعذّرت قراءة الترويسة %s.",
	},
	sayUnavailable: {
		locale.En: "The cart cannot be reached right now. Please try again in a moment.",
		locale.Ar: "تعذّر الوصول إلى السلة الآن. يُرجى المحاولة بعد لحظات.",
	},
	sayOutcomeUnknown: {
		locale.En: "We could not confirm that your change was made. Please check your cart before you try again.",
		locale.Ar: "لم نتمكن من التأكد من تنفيذ التغيير. يُرجى مراجعة سلتك قبل المحاولة مرة أخرى.",
	},
	sayItemNotFound: {
		locale.En: "That item is not in the cart.",
		locale.Ar: "هذا العنصر غير موجود في السلة.",
	},
	sayVersionMismatch: {
		locale.En: "The cart has changed since you last read it.",
		locale.Ar: "تغيّرت السلة منذ آخر قراءة لها.",
	},
	sayKeyReused: {
		locale.En: "This Idempotency-Key was already used for a different request.",
		locale.Ar: "استُخدم مفتاح Idempotency-Key هذا لطلب مختلف.",
	},
	sayCartInvalid: {
		locale.En: "The cart cannot be checked out as it is.",
		locale.Ar: "لا يمكن إتمام شراء السلة بوضعها الحالي.",
	},
	sayCartEmpty: {
		locale.En: "The cart is empty.",
		locale.Ar: "السلة فارغة.",
	},
	sayTooManyLines: {
		locale.En: "The cart is full. The limit of different items is %d.",
		locale.Ar: "السلة ممتلئة. الحد الأقصى لعدد العناصر المختلفة هو %d.",
	},
	sayTooMuchText: {
		locale.En: "The cart is full. The limit of its texts in bytes is %d.",
		locale.Ar: "السلة ممتلئة. الحد الأقصى لحجم نصوصها بالبايت هو %d.",
	},
	sayOutOfRange: {
		locale.En: "You can buy %d to %d of “%s”.",
		locale.Ar: "يمكنك شراء من %d إلى %d من «%s».",
	},
	sayExactly: {
		locale.En: "You can buy “%[2]s” only in a quantity of %[1]d.",
		locale.Ar: "لا يمكن شراء «%[2]s» إلا بكمية قدرها %[1]d.",
	},
	sayAtLeast: {
		locale.En: "You need at least %d of “%s”.",
		locale.Ar: "الحد الأدنى هو %d من «%s».",
	},
	sayAtMost: {
		locale.En: "You can buy at most %d of “%s”.",
		locale.Ar: "الحد الأقصى هو %d من «%s».",
	},
	sayNoProduct: {
		locale.En: "This product does not exist in this store.",
		locale.Ar: "هذا المنتج غير موجود في المتجر.",
	},
	sayInactive: {
		locale.En: "“%s” is not sold at the moment.",
		locale.Ar: "«%s» غير معروض للبيع حاليًا.",
	},
	sayOutOfStock: {
		locale.En: "“%s” is out of stock.",
		locale.Ar: "نفدت كمية «%s».",
	},
	sayOnlySome: {
		locale.En: "Only %d of “%s” are available.",
		locale.Ar: "المتوفر %d فقط من «%s».",
	},
	sayOnlySomeHeld: {
		locale.En: "Only %d of “%s” are available, and your cart already holds %d.",
		locale.Ar: "المتوفر %d فقط من «%s»، وفي سلتك %d بالفعل.",
	},
	sayPlanNeeded: {
		locale.En: "Choose a subscription plan for “%s”.",
		locale.Ar: "اختر خطة اشتراك لـ «%s».",
	},
	sayNoPlans: {
		locale.En: "“%s” is not sold with a subscription plan.",
		locale.Ar: "لا يُباع «%s» بخطة اشتراك.",
	},
	sayPlanGone: {
		locale.En: "This subscription plan of “%s” is not available.",
		locale.Ar: "خطة الاشتراك هذه غير متوفرة لـ «%s».",
	},
	sayFieldMissing: {
		locale.En: "“%s” is required for “%s”.",
		locale.Ar: "الحقل «%s» مطلوب لـ «%s».",
	},
	sayNoField: {
		locale.En: "“%s” is not a field of “%s”.",
		locale.Ar: "«%s» ليس من حقول «%s».",
	},
	sayNoOption: {
		locale.En: "The choice made in “%s” is not offered for “%s”.",
		locale.Ar: "الخيار المحدد في «%s» غير متاح لـ «%s».",
	},
	sayFieldTwice: {
		locale.En: "“%s” is given twice, with different values.",
		locale.Ar: "«%s» معطى مرتين بقيمتين مختلفتين.",
	},
	sayPriceRose: {
		locale.En: "The price of “%s” has gone up since it was added.",
		locale.Ar: "ارتفع سعر «%s» منذ إضافته.",
	},
	sayPriceFell: {
		locale.En: "The price of “%s” has gone down since it was added.",
		locale.Ar: "انخفض سعر «%s» منذ إضافته.",
	},
	sayCouponUnknown: {
		locale.En: "This coupon does not exist.",
		locale.Ar: "هذه القسيمة غير موجودة.",
	},
	sayCouponExpired: {
		locale.En: "Coupon %s has expired.",
		locale.Ar: "انتهت صلاحية القسيمة %s.",
	},
	sayCouponMinimum: {
		locale.En: "Coupon %s requires a subtotal of at least %s, without items that cannot be bought.",
		locale.Ar: "تتطلب القسيمة %s مجموعًا لا يقل عن %s دون العناصر التي لا يمكن شراؤها.",
	},
	sayLowStock: {
		locale.En: "Only %d of “%s” are left.",
		locale.Ar: "بقي %d فقط من «%s».",
	},
	sayOnlyOne: {
		locale.En: "Only %d of “%s” is available.",
		locale.Ar: "المتوفر %d فقط من «%s».",
	},
	sayOnlyOneHeld: {
		locale.En: "Only %d of “%s” is available, and your cart already holds %d.",
		locale.Ar: "المتوفر %d فقط من «%s»، وفي سلتك %d بالفعل.",
	},
	sayLastOne: {
		locale.En: "Only %d of “%s” is left.",
		locale.Ar: "بقي %d فقط من «%s».",
	},
}

func (f fault) text(l locale.Locale) string {
	f = f.fitted()
	return fmt.Sprintf(wording[f.phrase].In(l), f.args...)
}

// fitted replaces a phrase that would read badly with the numbers at hand, such as
// "from 1 to 1" and "1 are left".
func (f fault) fitted() fault {
	switch f.phrase {
	case sayOutOfRange:
		return fittedRange(f.args[0].(int64), f.args[1].(int64), f.args[2])
	case sayOnlySome:
		f.phrase = ofOne(f.args[0], sayOnlyOne, sayOnlySome)
	case sayOnlySomeHeld:
		f.phrase = ofOne(f.args[0], sayOnlyOneHeld, sayOnlySomeHeld)
	case sayLowStock:
		f.phrase = ofOne(f.args[0], sayLastOne, sayLowStock)
	}
	return f
}

func fittedRange(least, most int64, product any) fault {
	switch {
	case least > most: // more than this service sells at once
		return fault{phrase: sayInactive, args: []any{product}}
	case least == most:
		return fault{phrase: sayExactly, args: []any{least, product}}
	case least <= 1:
		return fault{phrase: sayAtMost, args: []any{most, product}}
	}
	return fault{phrase: sayOutOfRange, args: []any{least, most, product}}
}

// ofOne is one for a count of 1, else others.
func ofOne(count any, one, others phrase) phrase {
	if count == int64(1) {
		return one
	}
	return others
}
