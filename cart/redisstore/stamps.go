package redisstore

import (
	"strconv"
	"time"

	"commerce/cart"
)

// lua/stamps.lua describes how a cart holds its stamps.

// stampEntry is the size of a stamp with its time.
const stampEntry = cart.StampSize + 11

// stamps are those that lie in a guest's cart, or in what remains of one that was claimed.
type stamps map[string]cart.StampUse

// add adds what a member of a cart says about stamps.
func (s *stamps) add(member, value string) {
	if *s == nil {
		*s = stamps{}
	}
	if member[0] == 'e' {
		use := (*s)[member[1:]]
		use.Line = cart.LineID(value)
		(*s)[member[1:]] = use
		return
	}
	for ; len(value) >= stampEntry; value = value[stampEntry:] {
		use := (*s)[value[:cart.StampSize]]
		ms, _ := strconv.ParseInt(value[cart.StampSize:stampEntry], 16, 64)
		use.At = time.UnixMilli(ms)
		(*s)[value[:cart.StampSize]] = use
	}
}

// args lists the stamps in the form of apply.lua: stamp, ms, line or "", …
func (s stamps) args() []any {
	var args []any
	for stamp, use := range s {
		args = append(args, stamp, use.At.UnixMilli(), string(use.Line))
	}
	return args
}

// stampsOf returns the stamps of a cart.
func stampsOf(flat []string) (s stamps) {
	for i := 0; i+1 < len(flat); i += 2 {
		if m := flat[i]; m != "" && (m[0] == 'r' || m[0] == 'e') {
			s.add(m, flat[i+1])
		}
	}
	return s
}
