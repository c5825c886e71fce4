package cart

import (
	"golang.org/x/text/feature/plural"

	"commerce/auth/locale"
)

// units is a quantity of a product. The Arabic forms are those after a preposition or another
// noun (genitive). English sentences say only the number.
var units = locale.Noun{locale.Ar: {
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
