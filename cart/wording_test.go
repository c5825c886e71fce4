package cart

import (
	"strings"
	"testing"

	"commerce/auth/locale"
)

func TestWording_HasEverySentenceInBothLanguages(t *testing.T) {
	t.Parallel()
	if want := int(sayLastOne) + 1; len(wording) != want {
		t.Errorf("%d sentences, want %d", len(wording), want)
	}
	for p, text := range wording {
		en, ar := text[locale.En], text[locale.Ar]
		if en == "" || ar == "" || verbs(en) != verbs(ar) {
			t.Errorf("phrase %d is %q and %q", p, en, ar)
		}
	}
}

// verbs lists the places that a sentence leaves open, whatever their order.
func verbs(sentence string) (n [2]int) {
	for _, part := range strings.Split(sentence, "%")[1:] {
		switch strings.TrimLeft(part, "[]0123456789")[0] {
		case 's':
			n[0]++
		case 'd':
			n[1]++
		}
	}
	return n
}

func TestFault_ReadsWellWithEveryNumber(t *testing.T) {
	t.Parallel()
	const name = "Loot box"
	for _, tc := range []struct {
		fault  fault
		en, ar string
	}{
		{fault{phrase: sayOutOfRange, args: []any{int64(2), int64(5), name}}, "You can buy 2 to 5 of “Loot box”.", "يمكنك شراء من 2 إلى 5 من «Loot box»."},
		{fault{phrase: sayOutOfRange, args: []any{int64(1), int64(5), name}}, "You can buy at most 5 of “Loot box”.", "الحد الأقصى هو 5 من «Loot box»."},
		{fault{phrase: sayOutOfRange, args: []any{int64(1), int64(1), name}}, "You can buy “Loot box” only in a quantity of 1.", "لا يمكن شراء «Loot box» إلا بكمية قدرها 1."},
		{fault{phrase: sayOutOfRange, args: []any{int64(6), int64(6), name}}, "You can buy “Loot box” only in a quantity of 6.", "لا يمكن شراء «Loot box» إلا بكمية قدرها 6."},
		{fault{phrase: sayOutOfRange, args: []any{int64(6), int64(5), name}}, "“Loot box” is not sold at the moment.", "«Loot box» غير معروض للبيع حاليًا."},
		{fault{phrase: sayOnlySome, args: []any{int64(3), name}}, "Only 3 of “Loot box” are available.", "المتوفر 3 فقط من «Loot box»."},
		{fault{phrase: sayOnlySome, args: []any{int64(1), name}}, "Only 1 of “Loot box” is available.", "المتوفر 1 فقط من «Loot box»."},
		{fault{phrase: sayOnlySomeHeld, args: []any{int64(1), name, int64(1)}}, "Only 1 of “Loot box” is available, and your cart already holds 1.", "المتوفر 1 فقط من «Loot box»، وفي سلتك 1 بالفعل."},
		{fault{phrase: sayLowStock, args: []any{int64(1), name}}, "Only 1 of “Loot box” is left.", "بقي 1 فقط من «Loot box»."},
		{fault{phrase: sayLowStock, args: []any{int64(2), name}}, "Only 2 of “Loot box” are left.", "بقي 2 فقط من «Loot box»."},
	} {
		if got := tc.fault.text(locale.En); got != tc.en {
			t.Errorf("%v reads %q, want %q", tc.fault, got, tc.en)
		}
		if got := tc.fault.text(locale.Ar); got != tc.ar {
			t.Errorf("%v reads %q, want %q", tc.fault, got, tc.ar)
		}
	}
}
