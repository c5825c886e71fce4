package wire

import (
	"net/http"
	"slices"
	"strings"

	"commerce/auth/locale"
	"commerce/auth/problem"
)

// Tags are those of an If-Match or If-None-Match header, without quotes and W/.
type Tags struct {
	List []string
	Any  bool // it was "*"
}

// BadHeader is the refusal of a request header that is not valid.
func BadHeader(name string) *problem.Error {
	return problem.New(problem.InvalidParameter, name, textBadHeader, name)
}

var textBadHeader = locale.Text{
	locale.En: "The %s header is not valid.",
	locale.Ar: "الترويسة %s غير صالحة.",
}

// ParseTags parses If-Match or If-None-Match. It accepts weak tags too, since proxies that compress
// turn strong tags into weak ones. An invalid header is a problem.InvalidParameter.
func ParseTags(h http.Header, name string) (Tags, error) {
	values := h.Values(name)
	rest := strings.Trim(strings.Join(values, ","), ", \t")
	if rest == "*" {
		return Tags{Any: true}, nil
	}
	if rest == "" && len(values) > 0 {
		return Tags{}, BadHeader(name) // an empty header is not the same as no header
	}
	var t Tags
	for rest != "" {
		rest = strings.TrimPrefix(rest, "W/")
		if !strings.HasPrefix(rest, `"`) {
			return Tags{}, BadHeader(name)
		}
		tag, after, closed := strings.Cut(rest[1:], `"`)
		if !closed || strings.ContainsAny(tag, " \x00") {
			return Tags{}, BadHeader(name)
		}
		t.List = append(t.List, tag)
		after = strings.TrimSpace(after)
		if after != "" && after[0] != ',' {
			return Tags{}, BadHeader(name)
		}
		rest = strings.TrimLeft(after, ", \t")
	}
	return t, nil
}

// codings are what compression adds to a tag: strong tags of different bytes differ.
var codings = []string{"", "-gzip", "-zstd"}

// Encoded returns the ETag of a response that was compressed. It does not change weak tags.
func Encoded(tag, contentEncoding string) string {
	if !strings.HasPrefix(tag, `"`) {
		return tag
	}
	return strings.TrimSuffix(tag, `"`) + "-" + contentEncoding + `"`
}

// Find returns the tag that is the same as tag, which is without quotes, or the tag of its
// compressed form. If the tags are "*", it returns tag.
func (t Tags) Find(tag string) (known string, found bool) {
	for _, known := range t.List {
		if coding, same := strings.CutPrefix(known, tag); same && slices.Contains(codings, coding) {
			return known, true
		}
	}
	return tag, t.Any
}
