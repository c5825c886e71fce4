package cart

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
)

// conditionsOf reads the terms on which a change is asked for from its headers.
func conditionsOf(r *http.Request, body []byte) (Conditions, error) {
	key, err := keyDigest(r.Header)
	if err != nil {
		return Conditions{}, err
	}
	ifMatch, err := entityTags(r.Header, "If-Match")
	if err != nil {
		return Conditions{}, err
	}
	on := Conditions{IfMatch: ifMatch.versions()}
	path := r.URL.EscapedPath() // as it was sent
	if key != "" {
		on.Key = key
		on.Fingerprint = digest(r.Method, path, string(body))
	} else if stamp := r.Header.Get("X-Timestamp"); stamp != "" {
		on.Stamp = digest(r.Method, path, string(body), stamp)
	}
	return on, nil
}

// keyDigest stands for the client's key in Redis; "" when there is none.
func keyDigest(h http.Header) (string, error) {
	key, err := idempotencyKey(h)
	if key == "" {
		return "", err
	}
	return digest(key), nil
}

// idempotencyKey is the client's key for this change: 1 to 255 visible ASCII
// characters; "" when there is none.
func idempotencyKey(h http.Header) (string, error) {
	keys := h.Values("Idempotency-Key")
	if len(keys) == 0 {
		return "", nil
	}
	visible := !strings.ContainsFunc(keys[0], func(r rune) bool { return r < '!' || r > '~' })
	if len(keys) > 1 || len(keys[0]) < 1 || len(keys[0]) > 255 || !visible {
		return "", refuse(CodeInvalidParameter, "Idempotency-Key", sayBadHeader, "Idempotency-Key")
	}
	return keys[0], nil
}

// digest is 96 bits over parts that cannot run together.
func digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		sum := sha256.Sum256([]byte(part))
		h.Write(sum[:])
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12])
}

// tags are the entity tags of a condition, without quotes and weakness marks;
// any says that it was "*".
type tags struct {
	list []string
	any  bool
}

// entityTags reads If-Match or If-None-Match. Weak tags are taken too: proxies that
// compress turn strong ones into weak ones.
func entityTags(h http.Header, name string) (tags, error) {
	refusal := refuse(CodeInvalidParameter, name, sayBadHeader, name)
	values := h.Values(name)
	rest := strings.Trim(strings.Join(values, ","), ", \t")
	if rest == "*" {
		return tags{any: true}, nil
	}
	if rest == "" && len(values) > 0 {
		return tags{}, refusal // a condition that says nothing is not the same as none
	}
	var t tags
	for rest != "" {
		rest = strings.TrimPrefix(rest, "W/")
		if !strings.HasPrefix(rest, `"`) {
			return tags{}, refusal
		}
		tag, after, closed := strings.Cut(rest[1:], `"`)
		if !closed || strings.ContainsAny(tag, " \x00") {
			return tags{}, refusal
		}
		t.list = append(t.list, tag)
		after = strings.TrimSpace(after)
		if after != "" && after[0] != ',' {
			return tags{}, refusal
		}
		rest = strings.TrimLeft(after, ", \t")
	}
	return t, nil
}

// versions are the tags cut to what a change is judged by, the part before "-": a
// new price or another language never makes a change come too late.
func (t tags) versions() string {
	if t.any {
		return "*"
	}
	if len(t.list) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteByte(' ')
	for _, tag := range t.list {
		version, _, _ := strings.Cut(tag, "-")
		b.WriteString(version)
		b.WriteByte(' ')
	}
	return b.String()
}

func (t tags) contain(tag string) bool {
	if t.any {
		return true
	}
	for _, listed := range t.list {
		if listed == tag {
			return true
		}
	}
	return false
}
