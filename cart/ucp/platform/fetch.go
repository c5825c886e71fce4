package platform

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"commerce/auth/cause"
	"commerce/auth/problem"
)

const (
	fetchTime   = time.Second // from the lookup of the name to the end of the body
	maxBody     = 256 << 10   // bytes, decompressed
	maxHeader   = 32 << 10
	maxAttempts = 4   // addresses of a host
	maxCause    = 200 // bytes of the text for the log, which is cached, and partly chosen by a server
)

// fetch fetches a profile, and reports whether it has connected; reach is called then, and may refuse to go on. It
// follows no redirects, uses no proxy, and sends no cookies or trace headers.
func (d *Directory) fetch(ctx context.Context, u *url.URL, reach func() *problem.Error) (_ *result, connected bool) {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.patience)
	defer cancel()
	var dialed atomic.Bool // a transport may go on without its dial
	r := d.get(ctx, u, func(_ context.Context, _, address string) (net.Conn, error) {
		conn, err := d.dial(ctx, u, address)
		if err != nil {
			return nil, err
		}
		dialed.Store(true)
		if busy := reach(); busy != nil {
			_ = conn.Close()
			return nil, busy
		}
		return conn, nil
	})
	return r, dialed.Load()
}

func (d *Directory) get(ctx context.Context, u *url.URL, dial func(context.Context, string, string) (net.Conn, error)) *result {
	began := time.Now()
	transport := &http.Transport{ // HTTP/1.1 only
		DialContext:            dial,
		TLSClientConfig:        &tls.Config{RootCAs: d.cfg.roots},
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: maxHeader,
	}
	request := (&http.Request{Method: http.MethodGet, URL: u, Header: http.Header{"Accept": {"application/json"}}}).WithContext(ctx)
	response, err := transport.RoundTrip(request)
	if busy, ok := errors.AsType[*problem.Error](err); ok {
		return &result{fault: busy}
	}
	if err != nil {
		return noProfile(unreachable(u, began, err))
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return noProfile(badStatus(response.StatusCode))
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err == nil {
		err = ctx.Err() // a server that learns that the time is over can end its body in order, but unfinished
	}
	switch {
	case err != nil:
		return noProfile(unreachable(u, began, err))
	case len(body) > maxBody:
		return noProfile(errTooLarge)
	}
	profile, fault := parse(body, d.cfg.Releases)
	if fault != nil {
		return noProfile(fault)
	}
	return &result{profile: profile, age: ageOf(response.Header)}
}

func noProfile(f *problem.Error) *result { return &result{fault: f, age: failureAge} }

func unreachable(u *url.URL, began time.Time, err error) *problem.Error {
	fault := errNoAnswer
	if name, ok := errors.AsType[*net.DNSError](err); ok && !name.IsTimeout || errors.Is(err, errNoAddress) {
		fault = errHost
	}
	text := cause.Of("profile at "+u.Host, began, err).Error()
	return fault.Because(errors.New(text[:min(len(text), maxCause)]))
}

var errNoAddress = errors.New("no public address")

// dial connects to a host of a profile. It looks up the name itself, so that the address that it checks is the
// one that it dials. All use of the connection ends with ctx: a transport may go on without it.
func (d *Directory) dial(ctx context.Context, u *url.URL, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := d.addresses(ctx, u, host)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	err = errNoAddress
	ends, _ := ctx.Deadline()
	for i, addr := range addrs {
		share := time.Until(ends) / time.Duration(len(addrs)-i) // one that hangs leaves time for the others
		attempt, cancel := context.WithTimeout(ctx, share)
		var conn net.Conn
		conn, err = d.cfg.connect(attempt, netip.AddrPortFrom(addr, uint16(number)))
		cancel()
		if err == nil {
			return conn, conn.SetDeadline(ends)
		}
	}
	return nil, err
}

// addresses returns the addresses of a host that may be dialed.
func (d *Directory) addresses(ctx context.Context, u *url.URL, host string) (allowed []netip.Addr, err error) {
	addr, err := netip.ParseAddr(host)
	all := []netip.Addr{addr}
	switch {
	case u.Scheme == "http" && err != nil: // localhost, whatever DNS says
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	case u.Scheme == "http":
		return all, nil
	case err != nil:
		if all, err = d.cfg.lookup(ctx, strings.TrimSuffix(host, ".")+"."); err != nil { // not in search domains
			return nil, err
		}
	}
	for _, addr := range all {
		if addr = addr.Unmap(); isPublic(addr) && len(allowed) < maxAttempts {
			allowed = append(allowed, addr)
		}
	}
	return allowed, nil
}

// lookup does not use the resolver of the C library, whose threads outlive ctx.
func lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	return (&net.Resolver{PreferGo: true}).LookupNetIP(ctx, "ip", host)
}

func connect(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
	return (&net.Dialer{KeepAlive: -1}).DialContext(ctx, "tcp", addr.String())
}

// ageOf returns for how long a profile is used without a fetch. This service is a shared cache (RFC 9111,
// section 4.2). The specification forbids directives against caching, so they only give the minimum.
func ageOf(h http.Header) time.Duration {
	seconds, shared := uint64(0), false
	for directive := range strings.SplitSeq(strings.ToLower(strings.Join(h.Values("Cache-Control"), ",")), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch name {
		case "no-store", "no-cache", "private":
			return minAge
		case "max-age", "s-maxage":
			if name == "s-maxage" || !shared {
				seconds, _ = strconv.ParseUint(strings.Trim(value, `"`), 10, 31) // the maximum for a larger number
			}
			shared = shared || name == "s-maxage"
		}
	}
	already, _ := strconv.ParseUint(h.Get("Age"), 10, 31)
	return min(max(time.Duration(seconds-min(seconds, already))*time.Second, minAge), maxAge)
}
