package layout

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"commerce/auth/problem"
	"commerce/cart"
)

// The idempotency keys of the changes applied to a cart are a hash next to it, so that a read of the cart does not read
// them: the digest of the key, and "<ms when applied> <fingerprint of the request>", and " <what it changed>": a line, or
// the outcomes of a list, each after a comma: the line, "-" for none, or "!<code>.<number>" of a refusal.

// EncodeKeyUse returns what is stored under a key; "" for none.
func EncodeKeyUse(use cart.KeyUse) string {
	if use.Fingerprint == "" {
		return ""
	}
	text := strconv.FormatInt(use.At.UnixMilli(), 10) + " " + use.Fingerprint
	if use.Ops == nil {
		return strings.TrimSuffix(text+" "+string(use.Line), " ")
	}
	var b strings.Builder
	b.WriteString(text + " ")
	for _, o := range use.Ops {
		switch {
		case o.Refusal != nil:
			b.WriteString(",!" + string(o.Refusal.Code) + "." + strconv.FormatInt(o.Refusal.Held, 10))
		default:
			b.WriteString("," + cmp.Or(string(o.Line), "-"))
		}
	}
	return b.String()
}

// ParseKeyUse is the inverse of EncodeKeyUse.
func ParseKeyUse(value string) (use cart.KeyUse) {
	if value == "" {
		return use
	}
	at, rest, _ := strings.Cut(value, " ")
	ms, _ := strconv.ParseInt(at, 10, 64)
	fingerprint, changed, _ := strings.Cut(rest, " ")
	use = cart.KeyUse{At: time.UnixMilli(ms), Fingerprint: fingerprint}
	list, isList := strings.CutPrefix(changed, ",")
	if !isList {
		use.Line = cart.LineID(changed)
		return use
	}
	for one := range strings.SplitSeq(list, ",") {
		var o cart.OpOutcome
		if refusal, refused := strings.CutPrefix(one, "!"); refused {
			code, held, _ := strings.Cut(refusal, ".")
			n, _ := strconv.ParseInt(held, 10, 64)
			o.Refusal = &cart.Refusal{Code: problem.Code(code), Held: n}
		} else if one != "-" {
			o.Line = cart.LineID(one)
		}
		use.Ops = append(use.Ops, o)
	}
	return use
}
