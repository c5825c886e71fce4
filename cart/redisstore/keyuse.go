package redisstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"commerce/auth/problem"
	"commerce/cart"
)

// The idempotency keys of the changes applied to a cart are a hash next to it, so that a read of the cart does not read
// them: the digest of the key, and "<ms when applied> <fingerprint of the request>", and " <what it changed>": a line, or
// the outcomes of a list, each after a comma: the line, "-" for none, or "!<code>.<number>" of a refusal.

// encodeKeyUse returns what is stored under a key; "" for none.
func encodeKeyUse(use cart.KeyUse) string {
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

// parseKeyUse is the inverse of encodeKeyUse.
func parseKeyUse(value string) (use cart.KeyUse) {
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

// oldestKeys returns the digests of all keys, the oldest first.
func (s *Store) oldestKeys(ctx context.Context, ref Ref) ([]string, error) {
	all, err := s.Client.HGetAll(ctx, ref.KeysKey()).Result()
	if err != nil {
		return nil, err
	}
	ms := make(map[string]int64, len(all))
	for key, use := range all {
		at, _, _ := strings.Cut(use, " ")
		ms[key], _ = strconv.ParseInt(at, 10, 64)
	}
	return slices.SortedFunc(maps.Keys(ms), func(a, b string) int { return cmp.Or(cmp.Compare(ms[a], ms[b]), cmp.Compare(a, b)) }), nil
}

// excessKeys returns the oldest keys, which leave when others are added.
func (c *Stored) excessKeys(added map[string]cart.KeyUse) []string {
	isAdded := func(key string) bool { _, ok := added[key]; return ok }
	rest := slices.DeleteFunc(slices.Clone(c.oldestKeys), isAdded)
	return rest[:min(len(rest), max(0, len(rest)+len(added)-cart.KeysKept))]
}

func anyOf(texts []string) []any {
	all := make([]any, len(texts))
	for i := range texts {
		all[i] = texts[i]
	}
	return all
}
