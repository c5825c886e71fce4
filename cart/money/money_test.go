package money_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"commerce/cart/money"
)

// currencies with 0, 2, 3 and 4 decimals.
var currencies = []string{"JPY", "SAR", "KWD", "CLF"}

func TestDigits(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{"SAR": 2, "USD": 2, "JPY": 0, "KWD": 3, "CLF": 4} {
		if got, ok := money.Digits(code); got != want || !ok {
			t.Errorf("Digits(%q) = %d, %t, want %d", code, got, ok, want)
		}
	}
	for _, code := range []string{"", "sar", "XXX", "SARS"} {
		if got, ok := money.Digits(code); got != 0 || ok {
			t.Errorf("Digits(%q) = %d, %t, want an unknown currency", code, got, ok)
		}
	}
}

func TestAppendMajor_IsExactAndShortest(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		amount money.Amount
		digits int
		want   string
	}{
		{4950, 2, "49.5"},
		{500, 2, "5"},
		{-5, 2, "-0.05"},
		{0, 2, "0"},
		{5, 2, "0.05"},
		{50, 2, "0.5"},
		{333, 2, "3.33"},
		{100000, 2, "1000"},
		{-4950, 2, "-49.5"},
		{1, 3, "0.001"},
		{1200, 3, "1.2"},
		{1000, 0, "1000"},
		{0, 0, "0"},
		{-7, 0, "-7"},
		{12, 4, "0.0012"},
		{1, 25, "0.0000000000000000000000001"},
		{math.MaxInt64, 2, "92233720368547758.07"},
		{math.MinInt64, 2, "-92233720368547758.08"},
		{math.MinInt64, 0, "-9223372036854775808"},
	} {
		if got := string(money.AppendMajor([]byte("x"), tc.amount, tc.digits)); got != "x"+tc.want {
			t.Errorf("AppendMajor(x, %d, %d) = %s, want x%s", tc.amount, tc.digits, got, tc.want)
		}
	}
}

func TestAppendMajor_DoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 32)
	if n := testing.AllocsPerRun(100, func() { buf = money.AppendMajor(buf[:0], -123456, 2) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text, currency string
		want           money.Amount
	}{
		{"49.50", "SAR", 4950},
		{"49.5", "SAR", 4950},
		{"49", "SAR", 4900},
		{"0", "SAR", 0},
		{"-0.05", "SAR", -5},
		{"-0", "SAR", 0},
		{"007.70", "SAR", 770},
		{"49.5000", "SAR", 4950},
		{"1000", "JPY", 1000},
		{"1000.00", "JPY", 1000},
		{"1.234", "KWD", 1234},
		{"92233720368547758.07", "SAR", math.MaxInt64},
		{"-92233720368547758.08", "SAR", math.MinInt64},
	} {
		if got, err := money.Parse(tc.text, tc.currency); err != nil || got != tc.want {
			t.Errorf("Parse(%q, %s) = %d, %v, want %d", tc.text, tc.currency, got, err, tc.want)
		}
	}
}

func TestParse_RefusesWhatItWouldHaveToGuess(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ text, currency string }{
		{"", "SAR"},
		{"-", "SAR"},
		{".", "SAR"},
		{".5", "SAR"},
		{"5.", "SAR"},
		{"+5", "SAR"},
		{"--5", "SAR"},
		{"5.-5", "SAR"},
		{"5 ", "SAR"},
		{"1,000", "SAR"},
		{"1_000", "SAR"},
		{"1e3", "SAR"},
		{"0x10", "SAR"},
		{"NaN", "SAR"},
		{"1.2.3", "SAR"},
		{"٤٩", "SAR"},
		{"49.505", "SAR"},
		{"0.5", "JPY"},
		{"1.2345", "KWD"},
		{"5", ""},
		{"5", "sar"},
		{"5", "XXX"},
	} {
		if got, err := money.Parse(tc.text, tc.currency); err == nil || got != 0 {
			t.Errorf("Parse(%q, %q) = %d, %v, want an error", tc.text, tc.currency, got, err)
		}
	}
}

func TestParse_RefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"92233720368547758.08", "-92233720368547758.09", strings.Repeat("9", 1000)} {
		_, err := money.Parse(text, "SAR")
		if !errors.Is(err, strconv.ErrRange) {
			t.Errorf("Parse(%q) = %v, want %v", text, err, strconv.ErrRange)
		} else if len(err.Error()) > 100 {
			t.Errorf("the error repeats all of its input: %v", err)
		}
	}
}

func TestParse_UndoesAppendMajor(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := money.Amount(rapid.Int64().Draw(t, "amount"))
		code := rapid.SampledFrom(currencies).Draw(t, "currency")
		digits, _ := money.Digits(code)

		text := money.AppendMajor(nil, a, digits)
		if got, err := money.Parse(string(text), code); err != nil || got != a {
			t.Fatalf("Parse(%s, %s) = %d, %v, want %d", text, code, got, err, a)
		}
		if !json.Valid(text) {
			t.Fatalf("%s is no JSON number", text)
		}
		if strings.Contains(string(text), ".") && strings.HasSuffix(string(text), "0") {
			t.Fatalf("%s is not the shortest", text)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"49.50", "-0.05", "1000", "5.", "+5", "1e3", "92233720368547758.08", "0.000"} {
		for _, code := range append(currencies, "XXX") {
			f.Add(text, code)
		}
	}
	f.Fuzz(func(t *testing.T, text, code string) {
		a, err := money.Parse(text, code)
		if err != nil {
			return
		}
		// Whatever is taken has the value that exact arithmetic gives it.
		digits, _ := money.Digits(code)
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)
		want, ok := new(big.Rat).SetString(text)
		if !ok || new(big.Rat).SetFrac(big.NewInt(int64(a)), scale).Cmp(want) != 0 {
			t.Fatalf("Parse(%q, %q) = %d", text, code, a)
		}
	})
}

func BenchmarkAppendMajor(b *testing.B) {
	buf := make([]byte, 0, 32)
	b.ReportAllocs()
	for b.Loop() {
		buf = money.AppendMajor(buf[:0], 123456, 2)
	}
}
