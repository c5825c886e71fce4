package platform

import (
	"net/netip"
	"slices"
	"time"
)

// The fetches of each period. One that hangs ends within fetchTime, so about as many run at the same time.
//
// Each client may begin one, and each host is asked once. Names that do not exist and servers that do not answer cost
// nothing to name, so a fetch counts for all only once it has connected: otherwise a few clients could keep all other
// platforms out. One that does not connect counts for the network of its client.
const (
	period    = time.Second
	maxStarts = 10  // that connect
	maxTries  = 100 // that begin: lookups of names, and connections
	kept      = 1   // of both, for hosts that have had a profile
)

// step is a step of a fetch that counts towards the limits.
type step struct {
	kind         stepKind
	at           time.Time
	client, host string
	answered     bool // the host has had a profile
}

type stepKind int

const (
	tried   stepKind = iota
	reached          // it has connected
	failed           // it has not connected
)

// most returns how many steps of all there may be.
func (s step) most(all int) int {
	if s.answered {
		return all
	}
	return all - kept
}

// take adds a step to the earlier ones, and drops those that do not count any more. If it must wait, take returns
// for how long, and does not add it.
func take(steps []step, next step) (_ []step, wait time.Duration) {
	steps = slices.DeleteFunc(steps, func(s step) bool { return next.at.Sub(s.at) >= period })
	tries, connected := 0, 0
	for _, s := range slices.Backward(steps) { // at a limit, its oldest step must end first
		full := false
		switch s.kind {
		case tried:
			tries++
			full = next.kind == tried && (tries == next.most(maxTries) || s.client == next.client || s.host == next.host)
		case reached:
			connected++
			full = connected == next.most(maxStarts)
		case failed:
			full = next.kind == tried && (networkOf(s.client) == networkOf(next.client) || s.host == next.host)
		}
		if full {
			wait = max(wait, s.at.Add(period).Sub(next.at))
		}
	}
	if wait > 0 {
		return steps, wait
	}
	return append(steps, next), 0
}

// networkOf returns the network that a client's failures count for: an IPv6 /48, or an IPv4 /24.
func networkOf(client string) string {
	bits := 48
	network, err := netip.ParsePrefix(client)
	if addr, single := netip.ParseAddr(client); single == nil {
		network, err, bits = netip.PrefixFrom(addr, addr.BitLen()), nil, 24
	}
	if err != nil {
		return client
	}
	return netip.PrefixFrom(network.Addr(), min(bits, network.Bits())).Masked().String()
}
