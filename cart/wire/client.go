package wire

import (
	"net/netip"

	"github.com/gin-gonic/gin"
)

// Client returns the client that a request counts for: its IPv4 address, or the /64
// network that one IPv6 subscriber gets.
func Client(c *gin.Context) string {
	ip := c.ClientIP()
	addr, err := netip.ParseAddr(ip)
	if err != nil || addr.Unmap().Is4() {
		return ip
	}
	network, _ := addr.Prefix(64) // 64 fits every IPv6 address
	return network.String()
}
