package cart

import (
	"testing"

	"commerce/auth/locale"
	"commerce/deploy/assert"
)

func TestSentences_ReadWellWithEveryNumber(t *testing.T) {
	t.Parallel()
	name := locale.Named("Loot box")
	for _, tc := range []struct {
		sentence locale.Sentence
		en, ar   string
	}{
		{quantityRange(2, 5, name), "You can buy 2 to 5 of “Loot box”.", "يمكنك شراء كمية من وحدتين إلى 5 وحدات من «Loot box»."},
		{quantityRange(1, 5, name), "You can buy at most 5 of “Loot box”.", "لا يمكن شراء أكثر من 5 وحدات من «Loot box»."},
		{quantityRange(1, 1, name), "You can buy “Loot box” only in a quantity of 1.", "لا يُباع المنتج «Loot box» إلا بكمية وحدة واحدة."},
		{quantityRange(6, 6, name), "You can buy “Loot box” only in a quantity of 6.", "لا يُباع المنتج «Loot box» إلا بكمية 6 وحدات."},
		{quantityRange(6, 5, name), "“Loot box” is currently not for sale.", "المنتج «Loot box» غير معروض للبيع حاليًا."},
		{onlySome(0, name), "Only 0 of “Loot box” are available.", "لا يتوفر سوى 0 وحدة من «Loot box»."},
		{onlySome(1, name), "Only 1 of “Loot box” is available.", "لا يتوفر سوى وحدة واحدة من «Loot box»."},
		{onlySome(2, name), "Only 2 of “Loot box” are available.", "لا يتوفر سوى وحدتين من «Loot box»."},
		{onlySome(3, name), "Only 3 of “Loot box” are available.", "لا يتوفر سوى 3 وحدات من «Loot box»."},
		{onlySome(11, name), "Only 11 of “Loot box” are available.", "لا يتوفر سوى 11 وحدة من «Loot box»."},
		{onlySome(100, name), "Only 100 of “Loot box” are available.", "لا يتوفر سوى 100 وحدة من «Loot box»."},
		{onlySomeHeld(1, name, 1), "Only 1 of “Loot box” is available, and your cart already holds 1.", "لا يتوفر سوى وحدة واحدة من «Loot box»، وتحتوي سلتك بالفعل على وحدة واحدة."},
		{onlySomeHeld(5, name, 2), "Only 5 of “Loot box” are available, and your cart already holds 2.", "لا يتوفر سوى 5 وحدات من «Loot box»، وتحتوي سلتك بالفعل على وحدتين."},
		{onlyLeft(10, 0, name), "Only 10 of “Loot box” are available.", "لا يتوفر سوى 10 وحدات من «Loot box»."},
		{onlyLeft(10, 6, name), "You can buy only 4 of “Loot box” in addition to the 6 in your cart.", "لا يتوفر سوى 4 وحدات من «Loot box» زيادةً على 6 وحدات في سلتك."},
		{onlyLeft(2, 1, name), "You can buy only 1 of “Loot box” in addition to the 1 in your cart.", "لا يتوفر سوى وحدة واحدة من «Loot box» زيادةً على وحدة واحدة في سلتك."},
		{onlyLeft(5, 5, name), "Only 5 of “Loot box” are available, and your cart already holds 5.", "لا يتوفر سوى 5 وحدات من «Loot box»، وتحتوي سلتك بالفعل على 5 وحدات."},
		{textTooManyLines.With(differentItems.Of(1)), "The cart is full. Remove an item before you add another. The maximum number of different items is 1.", "السلة ممتلئة، فهي لا تتسع لأكثر من عنصر واحد. أزل عنصرًا قبل إضافة غيره."},
		{textTooManyLines.With(differentItems.Of(11)), "The cart is full. Remove an item before you add another. The maximum number of different items is 11.", "السلة ممتلئة، فهي لا تتسع لأكثر من 11 عنصرًا مختلفًا. أزل عنصرًا قبل إضافة غيره."},
		{textTooManyLines.With(differentItems.Of(100)), "The cart is full. Remove an item before you add another. The maximum number of different items is 100.", "السلة ممتلئة، فهي لا تتسع لأكثر من 100 عنصر مختلف. أزل عنصرًا قبل إضافة غيره."},
	} {
		assert.Equal(t, tc.sentence.In(locale.En), tc.en, "reads")
		assert.Equal(t, tc.sentence.In(locale.Ar), tc.ar, "reads")
	}
}
