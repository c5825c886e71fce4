package wire

import (
	"math"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"commerce/cart/money"
	"commerce/deploy/assert"
)

func TestWholeNumber(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]int64{
		"0": 0, "-0": 0, "7": 7, "-7": -7, "0.0": 0, "2.0": 2, "2.00e0": 2, "20e-1": 2, "1e2": 100, "1.5e1": 15, "0.5E+1": 5,
		"9223372036854775807": math.MaxInt64, "9223372036854775806.0": math.MaxInt64 - 1,
		"9007199254740993": 1<<53 + 1, "9007199254740993.0": 1<<53 + 1, // no float64 has this value
		"9223372036854775808": math.MaxInt64, "1e18": 1e18, "1e19": math.MaxInt64, "1e999999999999999999999": math.MaxInt64,
		"-9223372036854775808": math.MinInt64, "-1e400": math.MinInt64, "0e999999999999999999999": 0,
	} {
		got, ok := WholeNumber(jsontext.Value(number))
		assert.That(t, ok && got == want, "%s is %d, %v, want %d", number, got, ok, want)
	}
	for _, other := range []string{
		"1.5", "-0.1", "1e-1", "15e-1", "1.00000000000000000001", "0.99999999999999999999", "1e-400", "1e-999999999999999999999",
		`"2"`, `""`, "null", "true", "{}", "[]", "",
	} {
		got, ok := WholeNumber(jsontext.Value(other))
		assert.That(t, !ok, "%s was parsed as %d", other, got)
	}
}

func TestWholeNumber_ReadsEveryInt64(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64().Draw(t, "n")
		zeros := rapid.IntRange(0, 30).Draw(t, "zeros")
		written := jsontext.Int(n).String()
		for _, as := range []string{written, written + ".0" + strings.Repeat("0", zeros), written + strings.Repeat("0", zeros) + "e-" + jsontext.Int(int64(zeros)).String()} {
			if got, ok := WholeNumber(jsontext.Value(as)); !ok || got != n {
				t.Fatalf("%s is %d, %v", as, got, ok)
			}
		}
	})
}

func TestMinorUnits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		number   string
		decimals int
		want     money.Amount
	}{
		{"0", 2, 0},
		{"49.5", 2, 4950},
		{"49.50", 2, 4950},
		{"4950e-2", 2, 4950},
		{"0.01", 2, 1},
		{"-1", 2, -100},
		{"7", 0, 7},
		{"7.0", 0, 7},
		{"0.005", 3, 5},
		{"90071992547409.93", 2, 1<<53 + 1}, // no float64 has this value
		{"1e400", 2, math.MaxInt64},
	} {
		got, ok := MinorUnits(jsontext.Value(tt.number), tt.decimals)
		assert.That(t, ok && got == tt.want, "%s with %d decimals is %d, %v, want %d", tt.number, tt.decimals, got, ok, tt.want)
	}
	for number, decimals := range map[string]int{"49.505": 2, "0.5": 0, "1e-3": 2, `"1"`: 2, "null": 2, "": 2} {
		got, ok := MinorUnits(jsontext.Value(number), decimals)
		assert.That(t, !ok, "%s with %d decimals was parsed as %d", number, decimals, got)
	}
}
