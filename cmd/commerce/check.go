package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"commerce/cart"
)

// faults checks what demo and serve have in common.
func (s *settings) faults() faults {
	var f faults
	f.add("ADDR", checkAddr(s.Addr))
	f.add("ADMIN_ADDR", checkAddr(s.AdminAddr))
	f.add("PPROF", oneOf(s.Pprof, "", "on", "off"))
	f.add(s.JWT.name(), s.JWT.fault())
	f.add("GUEST_CART_TTL", checkTTL(s.GuestCartTTL))
	f.add("CUSTOMER_CART_TTL", checkTTL(s.CustomerCartTTL))
	_, err := cart.ParseStrategy(s.MergeStrategy)
	f.add("MERGE_STRATEGY", err)
	if s.DefaultStore < 0 {
		f.add("DEFAULT_STORE", errors.New("must be a store's id"))
	}
	f.add("REDIS_MIN_REPLICAS", within(s.RedisMinReplicas, 0, 100))
	f.add("DURABILITY", oneOf(s.Durability, "memory", "replica"))
	f.add("MAX_LINES", within(s.MaxLines, 1, cart.MaxLines))
	f.add("MAX_QUANTITY", within(s.MaxQuantity, 1, cart.MaxQuantity))
	f.add("MAX_LINE_TEXT", within(s.MaxLineText, 1, cart.MaxText))
	f.add("MAX_CART_TEXT", within(s.MaxCartText, 1, cart.MaxText))
	f.add("BASE_PATH", checkPath(s.BasePath))
	f.add("PUBLIC_URL", checkURL(s.PublicURL))
	for _, origin := range s.CORSOrigins {
		f.add("CORS_ORIGINS", checkOrigin(origin))
	}
	f.add("RATE_LIMIT", oneOf(s.RateLimit, "on", "off"))
	for _, proxy := range s.TrustedProxies {
		f.add("TRUSTED_PROXIES", checkNetwork(proxy))
	}
	f.add("PLAYGROUND", oneOf(s.Playground, "", "on", "off"))
	_, err = parseLevel(s.LogLevel)
	f.add("LOG_LEVEL", err)
	f.add("LOG_FORMAT", oneOf(s.LogFormat, "", "json", "text"))
	return f
}

// checkAddr refuses the empty address, which would be every interface at a random
// port. That an address is taken, or not of this machine, shows when it is opened.
func checkAddr(addr string) error {
	if addr == "" {
		return errors.New("must be an address such as :8080 or 127.0.0.1:9090")
	}
	_, err := net.ResolveTCPAddr("tcp", addr)
	return err
}

func checkTTL(d time.Duration) error {
	if d < time.Second {
		return errors.New("must be 1s or more")
	}
	return nil
}

// plainPath is a path whose spelling is its meaning: every segment is of characters
// that need no encoding, and none is empty.
var plainPath = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)*/?$`)

func checkPath(path string) error {
	if !plainPath.MatchString(path) || strings.Contains(path+"/", "/./") || strings.Contains(path+"/", "/../") {
		return fmt.Errorf("%q is not a path such as /api", path)
	}
	return nil
}

// checkURL quotes the URL only if it has no credentials.
func checkURL(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	switch {
	case err == nil && u.User != nil || strings.Contains(s, "@"):
		return errors.New("must not contain credentials")
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" ||
		strings.ContainsAny(s, "?#") || checkPath(u.EscapedPath()) != nil:
		return fmt.Errorf("%q is not a URL such as https://shop.example.com or https://example.com/shop", s)
	}
	return nil
}

func checkOrigin(origin string) error {
	if origin == "*" {
		return nil
	}
	u, err := url.Parse(origin)
	switch {
	case err == nil && u.User != nil || strings.Contains(origin, "@"):
		return errors.New("must not contain credentials")
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.Path != "" || strings.ContainsAny(origin, "?#"):
		return fmt.Errorf("%q is not an origin such as https://shop.example.com", origin)
	}
	return nil
}

func checkNetwork(s string) error {
	addr, err := netip.ParseAddr(s)
	if _, _, netErr := net.ParseCIDR(s); (err != nil || addr.Zone() != "") && netErr != nil {
		return fmt.Errorf("%q is neither an address nor a network", s)
	}
	return nil
}
