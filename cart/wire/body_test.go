package wire

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"commerce/auth/problem"
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
