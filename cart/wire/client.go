package wire

import (
	"net/netip"

	"github.com/gin-gonic/gin"
)

// ClientKey is the key of a context value, a *string, in which Client keeps its result,
// because several limits of a request ask for it.
type ClientKey struct{}

// Client returns the client that a request counts for: its IPv4 address, or the /64
// network that one IPv6 subscriber gets.
func Client(c *gin.Context) string {
	kept, ok := c.Request.Context().Value(ClientKey{}).(*string)
	if !ok {
		return clientOf(c.ClientIP())
	}
	if *kept == "" {
		*kept = clientOf(c.ClientIP())
	}
	return *kept
}

func clientOf(ip string) string {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return ip
	}
	if addr.Is4() {
		return ip // an IPv4 address can be written in one way only
	}
	if addr = addr.Unmap(); addr.Is4() {
		return addr.String()
	}
	network, _ := addr.Prefix(64) // 64 fits every IPv6 address
	return network.String()
}
