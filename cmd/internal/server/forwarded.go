package server

import (
	"net/netip"
	"strings"

	"github.com/gin-gonic/gin"
)

// cutPorts removes the ports from X-Forwarded-For, which some proxies add to the addresses. Gin
// would take such a request for one of the proxy itself, and all clients would share its limits.
func cutPorts(c *gin.Context) {
	forwarded := c.Request.Header["X-Forwarded-For"]
	for i, list := range forwarded {
		if !strings.Contains(list, ":") {
			continue
		}
		addresses := strings.Split(list, ",")
		for j, address := range addresses {
			if both, err := netip.ParseAddrPort(strings.TrimSpace(address)); err == nil {
				addresses[j] = both.Addr().String()
			}
		}
		forwarded[i] = strings.Join(addresses, ",")
	}
}
