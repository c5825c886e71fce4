package server

import (
	"net/netip"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/sethvargo/go-limiter/memorystore"
)

// clientRate is how many requests a second one client address may make of one
// instance. A storefront that renders on its server speaks for many shoppers.
const clientRate = 1000

// rateLimit keeps one client from taking everybody's share. It counts in process,
// so that it costs no trip and works while everything behind is down.
func rateLimit(p problems) (gin.HandlerFunc, error) {
	buckets, err := memorystore.New(&memorystore.Config{
		Tokens: clientRate, Interval: time.Second,
		SweepInterval: time.Minute, SweepMinTTL: time.Minute, // so that passers-by take no memory for long
	})
	if err != nil {
		return nil, err
	}
	return func(c *gin.Context) {
		most, left, reset, ok, err := buckets.Take(c.Request.Context(), client(c.ClientIP()))
		if err != nil { // only after Close
			return
		}
		wait := max(time.Until(time.Unix(0, int64(reset))), 0)
		c.Header("RateLimit-Limit", strconv.FormatUint(most, 10))
		c.Header("RateLimit-Remaining", strconv.FormatUint(left, 10))
		c.Header("RateLimit-Reset", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
		if !ok {
			p.write(c, errRateLimited)
		}
	}, nil
}

// client names who is counted together: an IPv4 address, or the /64 network that
// one IPv6 subscriber has to itself.
func client(ip string) string {
	addr, err := netip.ParseAddr(ip)
	if err != nil || addr.Unmap().Is4() {
		return ip
	}
	network, _ := addr.Prefix(64) // 64 fits every IPv6 address
	return network.String()
}
