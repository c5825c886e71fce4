package carthttp

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// wholeNumber parses a JSON number that is whole in any notation: 2, 2.0 and 20e-1 are,
// 1.5 and 1e-400 are not. It works on the digits, since float64 would round some fractions
// and large numbers to another whole number. A number beyond int64 becomes the nearest
// int64, which is out of any range that matters.
func wholeNumber(v jsontext.Value) (int64, bool) {
	if v.Kind() != '0' {
		return 0, false
	}
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return n, true
	}
	sign, unsigned := "", string(v)
	if unsigned[0] == '-' {
		sign, unsigned = "-", unsigned[1:]
	}
	digits, places := significant(unsigned)
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
