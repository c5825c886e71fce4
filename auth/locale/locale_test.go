package locale_test

import (
	"testing"

	"golang.org/x/text/feature/plural"

	"commerce/auth/locale"
	"commerce/deploy/assert"
)

func TestText_FallsBackToEnglish(t *testing.T) {
	t.Parallel()
	full := locale.Text{locale.En: "cart", locale.Ar: "سلة"}
	for _, tc := range []struct {
		name string
		text locale.Text
		in   locale.Locale
		want string
	}{
		{"english", full, locale.En, "cart"},
		{"arabic", full, locale.Ar, "سلة"},
		{"another language", full, "fr", "cart"},
		{"missing", locale.Text{locale.En: "cart"}, locale.Ar, "cart"},
		{"empty", locale.Text{locale.En: "cart", locale.Ar: ""}, locale.Ar, "cart"},
		{"no text at all", nil, locale.Ar, ""},
	} {
		assert.Equal(t, tc.text.In(tc.in), tc.want, "%s", tc.name)
	}
}

func TestName_FallsBackToTheStoresLanguage(t *testing.T) {
	t.Parallel()
	box := locale.Name{Own: "Boîte", Others: map[locale.Locale]string{locale.Ar: "صندوق", locale.En: ""}}
	for _, tc := range []struct {
		name locale.Name
		in   locale.Locale
		want string
	}{
		{box, locale.Ar, "صندوق"},
		{box, locale.En, "Boîte"},
		{box, "fr", "Boîte"},
		{locale.Named("Box"), locale.Ar, "Box"},
		{locale.Name{}, locale.Ar, ""},
	} {
		assert.Equal(t, tc.name.In(tc.in), tc.want, "%+v in %s", tc.name, tc.in)
	}
}

func TestSentence_SaysItsArgumentsInItsLanguage(t *testing.T) {
	t.Parallel()
	left := locale.Text{locale.En: "%d of “%s” left: %s.", locale.Ar: "بقي %d من «%s»: %s."}
	box := locale.Name{Own: "Box", Others: map[locale.Locale]string{locale.Ar: "صندوق"}}
	sentence := left.With(3, box, locale.Named("new"))
	for l, want := range map[locale.Locale]string{
		locale.En: "3 of “Box” left: new.",
		locale.Ar: "بقي 3 من «صندوق»: new.",
		"fr":      "3 of “Box” left: new.",
	} {
		assert.Equal(t, sentence.In(l), want, "in %s", l)
	}
	got := left.With(3, box, locale.Text{locale.En: "new", locale.Ar: "جديد"}).In(locale.Ar)
	assert.That(t, got == "بقي 3 من «صندوق»: جديد.", "a text as an argument: %q", got)
	assert.Equal(t, sentence.Args[1].(locale.Name).Own, "Box", "the sentence's arguments have changed")
}

// A browser shows them scrambled otherwise.
func TestSentence_IsolatesWordsOfTheOtherDirection(t *testing.T) {
	t.Parallel()
	text := locale.Text{locale.En: "“%s”", locale.Ar: "«%s»"}
	for word, want := range map[string][2]string{
		"C++":         {"“C++”", "«\u2068C++\u2069»"},
		"(new) Box":   {"“(new) Box”", "«\u2068(new) Box\u2069»"},
		"بلس+":        {"“\u2068بلس+\u2069”", "«بلس+»"},
		"Netflix بلس": {"“Netflix بلس”", "«Netflix بلس»"},
		"Box 2":       {"“Box 2”", "«Box 2»"},
		"+++":         {"“+++”", "«\u2068+++\u2069»"},
		"-20%":        {"“-20%”", "«\u2068-20%\u2069»"},
		"20%":         {"“20%”", "«\u206820%\u2069»"},
		"10-20":       {"“10-20”", "«\u206810-20\u2069»"},
		"-٢٠٪":        {"“-٢٠٪”", "«-٢٠٪»"},
		"100 coins":   {"“100 coins”", "«\u2068100 coins\u2069»"},
		"20%OFF":      {"“20%OFF”", "«\u206820%OFF\u2069»"},
		"100 عملة":    {"“\u2068100 عملة\u2069”", "«100 عملة»"},
		"100":         {"“100”", "«100»"},
	} {
		for _, argument := range []any{word, locale.Named(word), locale.Name{Own: "-", Others: map[locale.Locale]string{locale.En: word, locale.Ar: word}}} {
			sentence := text.With(argument)
			got := [2]string{sentence.In(locale.En), sentence.In(locale.Ar)}
			assert.That(t, got == want, "%#v: got %q, want %q", argument, got, want)
		}
	}
}

func TestCount_HasTheFormOfItsNumber(t *testing.T) {
	t.Parallel()
	days := locale.Noun{locale.Ar: {
		plural.Zero: "0 يوم", plural.One: "يوم واحد", plural.Two: "يومين", plural.Few: "{n} أيام", plural.Many: "{n} يومًا", plural.Other: "{n} يوم",
	}}
	left := locale.Text{locale.En: "Days left: %s.", locale.Ar: "لم يتبقَّ سوى %s."}
	for n, want := range map[int64]string{
		0: "0 يوم", 1: "يوم واحد", 2: "يومين", 3: "3 أيام", 10: "10 أيام", 11: "11 يومًا", 99: "99 يومًا",
		100: "100 يوم", 101: "101 يوم", 102: "102 يوم", 103: "103 أيام", 111: "111 يومًا", 1000: "1000 يوم",
		10_000_000: "10000000 يوم", 9_007_199_254_740_991: "9007199254740991 يومًا",
	} {
		got := left.With(days.Of(n)).In(locale.Ar)
		assert.That(t, got == "لم يتبقَّ سوى "+want+".", "%d: got %q, want %q", n, got, want)
	}
	assert.Equal(t, left.With(days.Of(11)).In(locale.En), "Days left: 11.", "a language without forms")
	few := locale.Noun{locale.Ar: {plural.Other: "{n} يوم"}}
	assert.Equal(t, few.Of(3).In(locale.Ar), "3 يوم", "without a form for its category")
}
