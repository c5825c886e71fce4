package wire

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"commerce/cart/money"
)

// WholeNumber parses a JSON number that is whole in any notation: 2, 2.0 and 20e-1 are, 1.5 and
// 1e-400 are not. float64 would round some to another whole number. A number beyond int64 becomes
// the nearest int64.
func WholeNumber(v jsontext.Value) (int64, bool) {
	if v.Kind() != '0' {
		return 0, false
	}
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return n, true
	}
	return scaled(v, 0)
}

// MinorUnits parses a JSON number that is an amount in major units: 49.5 with two decimals
// is 4950. It is exact, like WholeNumber, and refuses a number with more decimals.
func MinorUnits(v jsontext.Value, decimals int) (money.Amount, bool) {
	if v.Kind() != '0' {
		return 0, false
	}
	n, ok := scaled(v, decimals)
	return money.Amount(n), ok
}

// scaled returns a JSON number times ten to the power of decimals, if that is whole.
func scaled(v jsontext.Value, decimals int) (int64, bool) {
	sign, unsigned := "", string(v)
	if unsigned[0] == '-' {
		sign, unsigned = "-", unsigned[1:]
	}
	digits, places := significant(unsigned)
	places += decimals
	if len(digits) > places {
		return 0, digits == ""
	}
	zeros := strings.Repeat("0", max(min(places, 20)-len(digits), 0)) // 20 places are beyond int64
	n, _ := strconv.ParseInt(sign+digits+zeros, 10, 64)
	return n, true
}

// significant returns the digits of an unsigned JSON number, without leading and trailing
// zeros, and the position of the decimal point after their first: 0.05e4 is "5", 3.
func significant(number string) (digits string, places int) {
	mantissa, power := number, ""
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		mantissa, power = number[:i], number[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	places = len(digits) - len(fraction)
	const far = 1 << 20 // more than a body has digits
	n, _ := strconv.Atoi(power)
	return strings.TrimRight(digits, "0"), places + max(min(n, far), -far)
}
