package platform

import (
	"net/netip"
	"slices"
)

// special are the special-use addresses (RFC 6890 and its registries), and multicast. Of IPv6, it has only
// those within unicast. The first two, Teredo and 6to4, can contain an IPv4 address.
var special = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16",
	"192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",

	"2001::/23", "2002::/16", "2001:db8::/32", "2620:4f:8000::/48", "3fff::/20",
)

// unicast are the IPv6 addresses that are assigned to networks on the internet. Everything else is
// special-use, also NAT64 and the other forms with an IPv4 address.
var unicast = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// isPublic reports whether an address, which is not IPv4 in IPv6, is that of a server on the internet.
func isPublic(addr netip.Addr) bool {
	if addr.Is6() && (!unicast.Contains(addr) || isISATAP(addr)) { // also if it has a zone
		return false
	}
	return !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// isISATAP reports whether an IPv6 address ends with an IPv4 address as RFC 5214, section 6.1 says.
func isISATAP(addr netip.Addr) bool {
	b := addr.As16()
	return b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}
