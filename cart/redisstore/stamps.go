package redisstore

import (
	"strings"
	"time"

	"commerce/cart"
)

// lua/stamps.lua describes how a cart holds its stamps.
const (
	stampMembers = 4
	stampsInOne  = 5
	stampEntry   = cart.StampSize + 6
)

// stampsOf returns the stamps that count in a guest's cart, or in what remains of one that was claimed.
func stampsOf(flat []string) map[string]cart.StampUse {
	all, lines := map[string]cart.StampUse{}, map[string]cart.LineID{}
	var parts [stampMembers]string
	for i := 0; i+1 < len(flat); i += 2 {
		switch m := flat[i]; {
		case len(m) == 2 && m[0] == 'r' && '1' <= m[1] && m[1] < '1'+stampMembers:
			parts[m[1]-'1'] = flat[i+1]
		case strings.HasPrefix(m, "e"):
			lines[m[1:]] = cart.LineID(flat[i+1])
		}
	}
	for entries := inOrder(parts); len(entries) >= stampEntry; entries = entries[stampEntry:] {
		stamp := entries[:cart.StampSize]
		var ms int64
		for _, b := range []byte(entries[cart.StampSize:stampEntry]) {
			ms = ms<<8 | int64(b)
		}
		all[stamp] = cart.StampUse{At: time.UnixMilli(ms), Line: lines[stamp]}
	}
	return all
}

// inOrder returns the entries that count, the oldest first. The member that was written last is the
// one which is not full, or else the one whose last entry has the latest time, of which r1 follows r4.
func inOrder(parts [stampMembers]string) string {
	last, latest, first := 0, "", ""
	for i, part := range parts {
		if part == "" {
			continue
		}
		if len(part) < stampsInOne*stampEntry {
			last, first = i+1, ""
			break
		}
		written := part[len(part)-stampEntry+cart.StampSize:]
		if written >= latest {
			last, latest = i+1, written
		}
		if i == 0 {
			first = written
		}
	}
	if first != "" && first == latest && last == stampMembers {
		last = 1
	}
	all := strings.Join(parts[last:], "") + strings.Join(parts[:last], "")
	return all[max(0, len(all)-cart.StampsKept*stampEntry):]
}
