package layout

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"commerce/cart"
	"commerce/cart/transfer"
)

// How the data of transfers is stored next to a cart. redisstore/keys.go lists the hashes.

// EncodeClaim returns the member o of a claimed cart: "<owner's tag> <name of the note> <name of the claim>".
func EncodeClaim(c transfer.Claim) string {
	return strings.TrimSuffix(c.Owner+" "+c.Note+" "+c.Name, " ")
}

func ParseClaim(value string) (c transfer.Claim) {
	c.Owner, value, _ = strings.Cut(value, " ")
	c.Note, c.Name, _ = strings.Cut(value, " ")
	return c
}

// ParseAside parses a claimed cart, which has those of the token's keys that its member k names: " <digest>=<ms> …". nil for none.
func ParseAside(flat []string, keys map[string]cart.KeyUse) (*transfer.Aside, error) {
	held, err := Parse(flat)
	if err != nil || len(flat) == 0 {
		return nil, err
	}
	a := &transfer.Aside{Cell: held.Cell, Keys: map[string]cart.KeyUse{}}
	for i := 0; i+1 < len(flat); i += 2 {
		switch flat[i] {
		case "o":
			a.Claim = ParseClaim(flat[i+1])
		case "k":
			for use := range strings.FieldsSeq(flat[i+1]) {
				digest, ms, _ := strings.Cut(use, "=")
				if held, ok := keys[digest]; ok && strconv.FormatInt(held.At.UnixMilli(), 10) == ms {
					a.Keys[digest] = held
				}
			}
		}
	}
	return a, nil
}

func EncodeUses(keys map[string]cart.KeyUse) string {
	var b strings.Builder
	for _, digest := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(&b, " %s=%d ", digest, keys[digest].At.UnixMilli())
	}
	return b.String()
}

func ParseKeys(flat []string) map[string]cart.KeyUse {
	keys := make(map[string]cart.KeyUse, len(flat)/2)
	for i := 0; i+1 < len(flat); i += 2 {
		keys[flat[i]] = ParseKeyUse(flat[i+1])
	}
	return keys
}

// parseOffers parses what a guest's cart has offered: the quantity by line; c, the codes; y, the buyer; d, "1" if it had metadata; n, the
// note of the hand-over that has brought it, if one has; and m, "1" if it had none of these.
func parseOffers(flat []string) (o transfer.Offers) {
	for i := 0; i+1 < len(flat); i += 2 {
		switch member, value := flat[i], flat[i+1]; {
		case OfLine(member):
			if o.Lines == nil {
				o.Lines = map[cart.LineID]int64{}
			}
			o.Lines[cart.LineID(member)], _ = strconv.ParseInt(value, 10, 64)
		case member == "c":
			o.Coupons = parseCodes(value)
		case member == "y":
			o.Buyer = parseBuyer(value)
		case member == "d":
			o.Metadata = true
		case member == "n":
			o.Note = value
		}
	}
	return o
}

// Offers returns what turns the offers before into those after.
func Offers(before, after transfer.Offers) (m Members) {
	for _, id := range slices.Sorted(maps.Keys(after.Lines)) {
		if n := after.Lines[id]; before.Lines[id] != n {
			m.Set = append(m.Set, string(id), n)
		}
	}
	m.put("c", encodeCodes(before.Coupons), encodeCodes(after.Coupons))
	m.put("y", encodeBuyer(before.Buyer), encodeBuyer(after.Buyer))
	m.put("n", before.Note, after.Note)
	if after.Metadata && !before.Metadata {
		m.Set = append(m.Set, "d", 1)
	}
	if len(m.Set) == 0 && len(after.Lines) == 0 {
		m.Set = append(m.Set, "m", 1) // what an emptied cart has shared can be deleted where it was merged
	}
	return m
}

// parseCame parses what the latest merges have brought, for their undo, by the ID of the merge: "<ms when it came> <JSON>".
func parseCame(flat []string) (map[string]transfer.CameIn, error) {
	all := make(map[string]transfer.CameIn, len(flat)/2)
	for i := 0; i+1 < len(flat); i += 2 {
		var in transfer.CameIn
		at, body, _ := strings.Cut(flat[i+1], " ")
		ms, err := strconv.ParseInt(at, 10, 64)
		if err = cmp.Or(err, json.Unmarshal([]byte(body), &in)); err != nil {
			return nil, fmt.Errorf("%w: what a merge has brought: %w", ErrLayout, err)
		}
		in.At = time.UnixMilli(ms)
		all[flat[i]] = in
	}
	return all, nil
}

// Came returns what turns what has come before into that after.
func Came(before, after map[string]transfer.CameIn) Members {
	return difference(before, after, encodeCame)
}

// KeyUses returns what turns the uses of idempotency keys before into those after.
func KeyUses(before, after map[string]cart.KeyUse) Members {
	return difference(before, after, EncodeKeyUse)
}

func difference[V any](before, after map[string]V, encode func(V) string) (m Members) {
	for _, member := range slices.Sorted(maps.Keys(after)) {
		was := ""
		if held, ok := before[member]; ok {
			was = encode(held)
		}
		m.put(member, was, encode(after[member]))
	}
	for _, member := range slices.Sorted(maps.Keys(before)) {
		if _, kept := after[member]; !kept {
			m.Gone = append(m.Gone, member)
		}
	}
	return m
}

func encodeCame(in transfer.CameIn) string {
	body, _ := json.Marshal(in) // texts and numbers always marshal
	return fmt.Sprintf("%d %s", in.At.UnixMilli(), body)
}

// ParseOwner parses the hashes that Apply and Undo read: the cart, and if they are read, the offers, the keys and what has come.
func ParseOwner(hashes [][]string) (held Hash, to transfer.Owner, err error) {
	if held, err = Parse(hashes[0]); err != nil {
		return held, to, err
	}
	to = transfer.Owner{Cell: held.Cell, Offers: parseOffers(hashes[1]), Keys: ParseKeys(hashes[2])}
	to.Came, err = parseCame(hashes[3])
	return held, to, err
}
