package cart

import (
	"testing"

	"commerce/auth/locale"
)

func TestSentences_ReadWellWithEveryNumber(t *testing.T) {
	t.Parallel()
	name := locale.Named("Loot box")
	lowStock := func(left int64) locale.Sentence {
		p := sold(1, 100)
		p.Name, p.Stock = name, &left
		return warningsOf(&PricedLine{Line: &Line{ID: "1", AddedPrice: 100}, Product: p, Unit: Unit{Base: 100}})[0].Sentence
	}
	for _, tc := range []struct {
		sentence locale.Sentence
		en, ar   string
	}{
		{quantityRange(2, 5, name), "You can buy 2 to 5 of “Loot box”.", "يمكنك شراء كمية تتراوح بين 2 و5 من «Loot box»."},
		{quantityRange(1, 5, name), "You can buy at most 5 of “Loot box”.", "الحد الأقصى للكمية هو 5 من «Loot box»."},
		{quantityRange(1, 1, name), "You can buy “Loot box” only in a quantity of 1.", "لا يمكن شراء «Loot box» إلا بكمية قدرها 1."},
		{quantityRange(6, 6, name), "You can buy “Loot box” only in a quantity of 6.", "لا يمكن شراء «Loot box» إلا بكمية قدرها 6."},
		{quantityRange(6, 5, name), "“Loot box” is currently not for sale.", "المنتج «Loot box» غير معروض للبيع حاليًا."},
		{onlySome(3, name), "Only 3 of “Loot box” are available.", "المتوفر 3 فقط من «Loot box»."},
		{onlySome(1, name), "Only 1 of “Loot box” is available.", "المتوفر 1 فقط من «Loot box»."},
		{onlySomeHeld(1, name, 1), "Only 1 of “Loot box” is available, and your cart already holds 1.", "المتوفر 1 فقط من «Loot box»، وفي سلتك 1 بالفعل."},
		{lowStock(1), "Only 1 of “Loot box” is left.", "بقي 1 فقط من «Loot box»."},
		{lowStock(2), "Only 2 of “Loot box” are left.", "بقي 2 فقط من «Loot box»."},
	} {
		if got := tc.sentence.In(locale.En); got != tc.en {
			t.Errorf("reads %q, want %q", got, tc.en)
		}
		if got := tc.sentence.In(locale.Ar); got != tc.ar {
			t.Errorf("reads %q, want %q", got, tc.ar)
		}
	}
}
