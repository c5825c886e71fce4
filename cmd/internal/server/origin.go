package server

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/wire"
)

// origins finds the URL by which a client reaches the service, for links.
type origins struct {
	public  string         // without BASE_PATH; "": the URL of each request
	host    string         // of public, without a port
	trusted []netip.Prefix // proxies
}

// newOrigins returns the origins for PUBLIC_URL, BASE_PATH and TRUSTED_PROXIES. If
// PUBLIC_URL ends with BASE_PATH, BASE_PATH is not appended again.
func newOrigins(publicURL, basePath string, trustedProxies []string) (origins, error) {
	o := origins{}
	if publicURL != "" {
		u, err := url.Parse(publicURL)
		if err != nil {
			return origins{}, err
		}
		o.host = u.Hostname()
		o.public = u.Scheme + "://" + u.Host + strings.TrimSuffix(strings.TrimRight(u.EscapedPath(), "/"), basePath)
	}
	for _, s := range trustedProxies {
		network, err := netip.ParsePrefix(s)
		if addr, single := netip.ParseAddr(s); single == nil {
			network, err = addr.Prefix(addr.BitLen())
		}
		if err != nil {
			return origins{}, err
		}
		o.trusted = append(o.trusted, network)
	}
	return o, nil
}

// of returns the URL in front of a route's path, such as "https://shop.example.com".
func (o origins) of(r *http.Request) string {
	if o.public != "" {
		return o.public
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	if o.trusts(r.RemoteAddr) {
		if s := strings.ToLower(first(r.Header.Get("X-Forwarded-Proto"))); s == "http" || s == "https" {
			scheme = s
		}
	}
	return scheme + "://" + o.hostOf(r)
}

func (o origins) hostOf(r *http.Request) string {
	if s := first(r.Header.Get("X-Forwarded-Host")); o.trusts(r.RemoteAddr) && hostAndPort.MatchString(s) {
		return s
	}
	if called, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && r.Host == "" { // as HTTP/1.0 allows
		return called.String()
	}
	return r.Host
}

// first returns the value of the proxy nearest to the client. Later proxies append.
func first(list string) string {
	value, _, _ := strings.Cut(list, ",")
	return strings.TrimSpace(value)
}

var hostAndPort = regexp.MustCompile(`^([A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?$`)

// onlyLocal refuses requests for another host than this machine or that of PUBLIC_URL. Otherwise the
// owner of a website could let its name lead to 127.0.0.1, and its pages could read what a browser
// on this machine may read.
func (r *responder) onlyLocal(c *gin.Context) {
	host := (&url.URL{Host: c.Request.Host}).Hostname()
	if !auth.IsLoopback(host) && (r.origins.host == "" || !strings.EqualFold(host, r.origins.host)) {
		r.fail(c, wire.Answer{}, errForeignHost)
	}
}

var errForeignHost = problem.New(problem.InvalidParameter, "Host", locale.Text{
	locale.En: "This demo serves only localhost, 127.0.0.1 and the host of PUBLIC_URL.",
	locale.Ar: "لا يخدم هذا العرض التجريبي إلا localhost و127.0.0.1 ومضيف PUBLIC_URL.",
})

// country returns a function that finds the country of a request in a header, "" if there is no single one that ISO 3166-1 has
// assigned. Only proxies say it: others could choose their tax.
func (o origins) country(header string) func(*http.Request) string {
	return func(r *http.Request) string {
		if values := r.Header.Values(header); len(values) == 1 && o.trusts(r.RemoteAddr) {
			return cart.ParseCountry(strings.TrimSpace(values[0]))
		}
		return ""
	}
}

func (o origins) trusts(remoteAddr string) bool {
	if len(o.trusted) == 0 {
		return false
	}
	peer, err := netip.ParseAddrPort(remoteAddr)
	if err != nil {
		return false
	}
	addr := peer.Addr().Unmap()
	return slices.ContainsFunc(o.trusted, func(network netip.Prefix) bool { return network.Contains(addr) })
}

// warnOfProxy logs once that requests come through a proxy, without PUBLIC_URL or TRUSTED_PROXIES.
func warnOfProxy(log *slog.Logger) gin.HandlerFunc {
	var once sync.Once
	return func(c *gin.Context) {
		for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
			if len(c.Request.Header[name]) > 0 {
				once.Do(func() {
					log.WarnContext(c.Request.Context(), "a request came through a proxy, and neither PUBLIC_URL nor TRUSTED_PROXIES is set: "+
						"links may bypass the proxy, and all its clients share one rate limit")
				})
			}
		}
	}
}

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
