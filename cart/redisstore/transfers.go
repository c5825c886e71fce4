package redisstore

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

// How the data of transfers is stored next to a cart. keys.go lists the hashes.

// encodeClaim returns the member o of a claimed cart: "<owner's tag> <name of the note> <name of the claim>".
func encodeClaim(c transfer.Claim) string {
	return strings.TrimSuffix(c.Owner+" "+c.Note+" "+c.Name, " ")
}

func parseClaim(value string) (c transfer.Claim) {
	c.Owner, value, _ = strings.Cut(value, " ")
	c.Note, c.Name, _ = strings.Cut(value, " ")
	return c
}

// parseAside parses a claimed cart, which has those of the token's keys that its member k names: " <digest>=<ms> …". nil for none.
func parseAside(flat []string, keys map[string]cart.KeyUse) (*transfer.Aside, error) {
	held, err := parseMembers(flat, nil)
	if err != nil || len(flat) == 0 {
		return nil, err
	}
	a := &transfer.Aside{Cell: held.Cell, Keys: map[string]cart.KeyUse{}}
	for i := 0; i+1 < len(flat); i += 2 {
		switch flat[i] {
		case "o":
			a.Claim = parseClaim(flat[i+1])
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

func encodeUses(keys map[string]cart.KeyUse) string {
	var b strings.Builder
	for _, digest := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(&b, " %s=%d ", digest, keys[digest].At.UnixMilli())
	}
	return b.String()
}

func parseKeys(flat []string) map[string]cart.KeyUse {
	keys := make(map[string]cart.KeyUse, len(flat)/2)
	for i := 0; i+1 < len(flat); i += 2 {
		keys[flat[i]] = parseKeyUse(flat[i+1])
	}
	return keys
}

// keyUses adds to a commit the writes that turn the idempotency keys before into those after. Each that is set must still be as it
// was read.
func (s *Slot) keyUses(c *commit, hash int, before, after map[string]cart.KeyUse) {
	key := s.keys[hash]
	var set, gone []any
	for _, digest := range slices.Sorted(maps.Keys(after)) {
		if use := after[digest]; before[digest].Fingerprint != use.Fingerprint || !before[digest].At.Equal(use.At) {
			c.check(key, digest, s.Get(hash, digest))
			set = append(set, digest, encodeKeyUse(use))
		}
	}
	for _, digest := range slices.Sorted(maps.Keys(before)) {
		if _, kept := after[digest]; !kept {
			gone = append(gone, digest)
		}
	}
	c.write("HDEL", key, gone...)
	c.write("HSET", key, set...)
	if len(set) > 0 {
		c.write("PEXPIRE", key, cart.KeyLife.Milliseconds())
	}
}

// parseOffers parses what a guest's cart has offered: the quantity by line; c, the codes; y, the buyer; d, "1" if it had metadata; and n, the
// note of the hand-over that has brought it, if one has.
func parseOffers(flat []string) (o transfer.Offers) {
	for i := 0; i+1 < len(flat); i += 2 {
		switch member, value := flat[i], flat[i+1]; {
		case ofLine(member):
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

func (c *commit) offers(key string, before, after transfer.Offers, life time.Duration) {
	m := members{}
	for _, id := range slices.Sorted(maps.Keys(after.Lines)) {
		if n := after.Lines[id]; before.Lines[id] != n {
			m.set = append(m.set, string(id), n)
		}
	}
	m.put("c", encodeCodes(before.Coupons), encodeCodes(after.Coupons))
	m.put("y", encodeBuyer(before.Buyer), encodeBuyer(after.Buyer))
	m.put("n", before.Note, after.Note)
	if after.Metadata && !before.Metadata {
		m.set = append(m.set, "d", 1)
	}
	c.write("HSET", key, m.set...)
	c.write("PEXPIRE", key, life.Milliseconds())
}

// parseCame parses what the latest merges have brought, for their undo, by the ID of the merge: "<ms when it came> <JSON>".
func parseCame(flat []string) (map[string]transfer.CameIn, error) {
	all := make(map[string]transfer.CameIn, len(flat)/2)
	for i := 0; i+1 < len(flat); i += 2 {
		var in transfer.CameIn
		at, body, _ := strings.Cut(flat[i+1], " ")
		ms, err := strconv.ParseInt(at, 10, 64)
		if err = cmp.Or(err, json.Unmarshal([]byte(body), &in)); err != nil {
			return nil, fmt.Errorf("%w: what a merge has brought: %w", errLayout, err)
		}
		in.At = time.UnixMilli(ms)
		all[flat[i]] = in
	}
	return all, nil
}

// came adds to a commit the writes that turn what has come before into that after.
func (c *commit) came(key string, before, after map[string]transfer.CameIn) {
	m := members{}
	for _, id := range slices.Sorted(maps.Keys(after)) {
		was := ""
		if held, ok := before[id]; ok {
			was = encodeCame(held)
		}
		m.put(id, was, encodeCame(after[id]))
	}
	for _, id := range slices.Sorted(maps.Keys(before)) {
		if _, kept := after[id]; !kept {
			m.gone = append(m.gone, id)
		}
	}
	c.write("HDEL", key, m.gone...)
	c.write("HSET", key, m.set...)
	if len(m.set) > 0 {
		c.write("PEXPIRE", key, transfer.UndoLife.Milliseconds())
	}
}

func encodeCame(in transfer.CameIn) string {
	body, _ := json.Marshal(in) // texts and numbers always marshal
	return fmt.Sprintf("%d %s", in.At.UnixMilli(), body)
}

// parseOwner parses the hashes that Apply and Undo read: the cart, and if they are read, the offers, the keys and what has come.
func parseOwner(hashes [][]string) (held Stored, to transfer.Owner, err error) {
	if held, err = parseMembers(hashes[0], nil); err != nil {
		return held, to, err
	}
	to = transfer.Owner{Cell: held.Cell, Offers: parseOffers(hashes[1]), Keys: parseKeys(hashes[2])}
	to.Came, err = parseCame(hashes[3])
	return held, to, err
}
