package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// parseAddr rejects the empty address, which would mean a random port on every
// interface. Whether the address is free shows only when it is opened.
func parseAddr(addr string) (string, error) {
	if addr == "" {
		return "", errors.New("must be an address such as :8080 or 127.0.0.1:9090")
	}
	_, err := net.ResolveTCPAddr("tcp", addr)
	return addr, err
}

// parseStore reads the id of a store, or 0 for none.
func parseStore(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 0 {
		return 0, fmt.Errorf("%q is not a store's id", text)
	}
	return id, nil
}

// plainPath matches a path without empty segments, in characters that need no
// encoding.
var plainPath = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)*/?$`)

func checkPath(path string) error {
	if !plainPath.MatchString(path) || strings.Contains(path+"/", "/./") || strings.Contains(path+"/", "/../") {
		return fmt.Errorf("%q is not a path such as /api", path)
	}
	return nil
}

// checkURL returns an error that quotes the URL unless it has credentials.
func checkURL(s string) error {
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
	case strings.Contains(origin, "*"): // a browser sends no such origin
		return fmt.Errorf("%q has a wildcard: list each origin, or allow all with *", origin)
	}
	return nil
}

func checkNetwork(s string) error {
	addr, err := netip.ParseAddr(s)
	if _, _, netErr := net.ParseCIDR(s); (err != nil || addr.Zone() != "") && netErr != nil {
		return fmt.Errorf("%q is not an IP address or a network such as 10.0.0.0/8", s)
	}
	return nil
}
