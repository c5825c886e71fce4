package wire

import (
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"commerce/auth/problem"
	"commerce/cart/money"
	"commerce/deploy/assert"
)

// codeOf returns the code of a problem.Error; "" for any other error or nil.
func codeOf(err error) problem.Code {
	if e, ok := errors.AsType[*problem.Error](err); ok {
		return e.Code
	}
	return ""
}

func TestReadBody_IsStrict(t *testing.T) {
	t.Parallel()
	deepest := strings.Repeat(`{"a":`, maxDepth-1) + "{}" + strings.Repeat("}", maxDepth-1)
	for name, tc := range map[string]struct {
		body string
		want problem.Code
	}{
		"an object":             {` {"product_id": 1} `, ""},
		"the maximum depth":     {deepest, ""},
		"the maximum size":      {`{"a":"` + strings.Repeat("x", maxBody-8) + `"}`, ""},
		"an empty body":         {"", problem.MalformedJSON},
		"not JSON":              {"product_id=1", problem.MalformedJSON},
		"a list":                {`[{"product_id":1}]`, problem.MalformedJSON},
		"a number":              {"1", problem.MalformedJSON},
		"null":                  {"null", problem.MalformedJSON},
		"cut off":               {`{"product_id":1`, problem.MalformedJSON},
		"data after it":         {`{"product_id":1}x`, problem.MalformedJSON},
		"another after it":      {`{"product_id":1}{}`, problem.MalformedJSON},
		"a member twice":        {`{"qty":1,"qty":2}`, problem.MalformedJSON},
		"a member twice within": {`{"fields":{"a":"1","a":"2"}}`, problem.MalformedJSON},
		"the same name escaped": {`{"qty":1,"\u0071ty":2}`, problem.MalformedJSON},
		"invalid UTF-8":         {"{\"notice\":\"\xff\"}", problem.MalformedJSON},
		"half a surrogate pair": {`{"notice":"\ud800"}`, problem.MalformedJSON},
		"a byte order mark":     {"\ufeff{}", problem.MalformedJSON},
		"spaces":                {" \n ", problem.MalformedJSON},
		"single quotes":         {`{'product_id':1}`, problem.MalformedJSON},
		"a trailing comma":      {`{"product_id":1,}`, problem.MalformedJSON},
		"a comment":             {`{"product_id":1/**/}`, problem.MalformedJSON},
		"NaN":                   {`{"product_id":NaN}`, problem.MalformedJSON},
		"a leading zero":        {`{"product_id":01}`, problem.MalformedJSON},
		"a text":                {`"product_id"`, problem.MalformedJSON},
		"a NUL after it":        {"{}\x00", problem.MalformedJSON},
		"UTF-16":                {"\xff\xfe{\x00}\x00", problem.MalformedJSON},
		"overlong UTF-8":        {"{\"notice\":\"\xc0\x80\"}", problem.MalformedJSON},
		"bad UTF-8 in a name":   {"{\"\xff\":1}", problem.MalformedJSON},
		"surrogates swapped":    {`{"notice":"\ude00\ud83d"}`, problem.MalformedJSON},
		"a control character":   {"{\"notice\":\"\x00\"}", problem.MalformedJSON},
		"too deep":              {`{"a":` + deepest + `}`, problem.MalformedJSON},
		"too large":             {`{"a":"` + strings.Repeat("x", maxBody-7) + `"}`, problem.BodyTooLarge},
		"large and normal":      {`{"a":"` + strings.Repeat("é", maxBody/2-4) + `"}`, ""},
		"large and escaped":     {`{"a":"` + strings.Repeat(`e\u0301`, maxBody/7-2) + `"}`, ""},
		"partly combining":      {`{"a":"` + strings.Repeat("x", maxBody/2) + strings.Repeat("e\u0301", maxCombining/3) + `"}`, ""},
		"too much combining":    {`{"a":"` + strings.Repeat("x", maxBody/2) + strings.Repeat("e\u0301", maxCombining/3+1) + `"}`, problem.BodyTooLarge},
	} {
		_, _, err := ReadBody(httptest.NewRequest("POST", "/", strings.NewReader(tc.body)))
		got := codeOf(err)
		assert.That(t, got == tc.want && (err == nil) == (tc.want == ""), "%s: %v, want %q", name, err, tc.want)
	}
}

func TestReadBody_WantsJSONInUTF8(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		header http.Header
		want   problem.Code
	}{
		{http.Header{}, ""},
		{http.Header{"Content-Type": {"application/json"}}, ""},
		{http.Header{"Content-Type": {"Application/JSON; charset=UTF-8"}}, ""},
		{http.Header{"Content-Type": {`application/json;charset="UTF8"`}}, ""},
		{http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"identity"}}, ""},
		{http.Header{"Content-Type": {"application/json; charset=utf-16"}}, problem.UnsupportedMediaType},
		{http.Header{"Content-Type": {"text/json"}}, problem.UnsupportedMediaType},
		{http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, problem.UnsupportedMediaType},
		{http.Header{"Content-Type": {""}}, problem.UnsupportedMediaType},
		{http.Header{"Content-Type": {"application/json", "application/json"}}, problem.UnsupportedMediaType},
		{http.Header{"Content-Type": {"multipart/form-data; boundary=x"}}, problem.UnsupportedMediaType},
		{http.Header{"Content-Type": {"application/vnd.api+json"}}, problem.UnsupportedMediaType},
		{http.Header{"Content-Type": {"application/json, text/plain"}}, problem.UnsupportedMediaType},
		{http.Header{"Content-Encoding": {"gzip"}}, problem.UnsupportedMediaType},
		{http.Header{"Content-Encoding": {"br"}}, problem.UnsupportedMediaType},
	} {
		r := httptest.NewRequest("POST", "/", strings.NewReader("{}"))
		r.Header = tc.header
		_, _, err := ReadBody(r)
		assert.That(t, codeOf(err) == tc.want, "%v: %v, want %q", tc.header, err, tc.want)
	}
}

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
