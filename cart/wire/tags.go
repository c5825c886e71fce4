package wire

import (
	"net/http"
	"slices"
	"strings"

	"commerce/auth/locale"
	"commerce/auth/problem"
)

// Tags are the entity tags of a condition, without quotes and weakness marks.
type Tags struct {
	List []string
	Any  bool // it was "*"
}

var textBadHeader = locale.Text{
	locale.En: "The header %s cannot be read.",
	locale.Ar: "تعذّرت قراءة الترويسة %s.",
}

// ParseTags reads If-Match or If-None-Match. It also takes weak tags: proxies that
// compress turn strong ones into weak ones. A condition that cannot be read is a
// problem.InvalidParameter.
func ParseTags(h http.Header, name string) (Tags, error) {
	refusal := problem.New(problem.InvalidParameter, name, textBadHeader, name)
	values := h.Values(name)
	rest := strings.Trim(strings.Join(values, ","), ", \t")
	if rest == "*" {
		return Tags{Any: true}, nil
	}
	if rest == "" && len(values) > 0 {
		return Tags{}, refusal // a condition that says nothing differs from none
	}
	var t Tags
	for rest != "" {
		rest = strings.TrimPrefix(rest, "W/")
		if !strings.HasPrefix(rest, `"`) {
			return Tags{}, refusal
		}
		tag, after, closed := strings.Cut(rest[1:], `"`)
		if !closed || strings.ContainsAny(tag, " \x00") {
			return Tags{}, refusal
		}
		t.List = append(t.List, tag)
		after = strings.TrimSpace(after)
		if after != "" && after[0] != ',' {
			return Tags{}, refusal
		}
		rest = strings.TrimLeft(after, ", \t")
	}
	return t, nil
}

// Contain reports whether the condition names a tag.
func (t Tags) Contain(tag string) bool { return t.Any || slices.Contains(t.List, tag) }
