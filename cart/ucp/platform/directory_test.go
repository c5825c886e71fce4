package platform

import (
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/goleak"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// No test could fetch a profile if the proxies of the environment were used.
func TestMain(m *testing.M) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		os.Setenv(name, "http://127.0.0.1:1")
	}
	goleak.VerifyTestMain(m)
}

const (
	release = "2026-04-08"
	cartOf  = "dev.ucp.shopping.cart"
	valid   = `{"ucp":{"version":"2026-04-08","services":{},"payment_handlers":{},"capabilities":{"dev.ucp.shopping.cart":[{"version":"2026-04-08"}]}}}`
)

var (
	public = netip.MustParseAddr("93.184.215.14")
	ours   = map[string][]Capability{cartOf: {{Version: release}}, "dev.ucp.shopping.discount": {{release, []string{cartOf}}}}
	spoken = []Release{{release, ours, "keys"}, {"2026-01-23", map[string][]Capability{cartOf: {{Version: "2026-01-23"}}}, "signing_keys"}}
)

// internet is a Directory, and an internet for it: each name below example.com has the address public unless
// it has others, and one server has all addresses.
type internet struct {
	*Directory
	served atomic.Int64 // requests

	mu     sync.Mutex
	now    time.Time
	names  map[string][]string // addresses of a name, one list for each lookup; the last one stays
	asked  []string
	dialed []string
}

func (i *internet) advance(d time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.now = i.now.Add(d)
}

func (i *internet) name(host string, answers ...string) { i.names[host+"."] = answers }

func (i *internet) lookup(_ context.Context, host string) (addrs []netip.Addr, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked = append(i.asked, host)
	answers, known := i.names[host]
	switch {
	case !known && strings.HasSuffix(host, "example.com."):
		return []netip.Addr{public}, nil
	case !known:
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	case len(answers) > 1:
		i.names[host] = answers[1:]
	}
	for _, text := range strings.Fields(answers[0]) {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	return addrs, nil
}

func (i *internet) connectTo(to string) func(context.Context, netip.AddrPort) (net.Conn, error) {
	return func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
		i.mu.Lock()
		i.dialed = append(i.dialed, addr.String())
		i.mu.Unlock()
		return new(net.Dialer).DialContext(ctx, "tcp", to)
	}
}

// onInternet returns an internet with a server; nil: one that has a valid profile at every URL.
func onInternet(t *testing.T, serve http.HandlerFunc, edits ...func(*Config)) *internet {
	t.Helper()
	i := &internet{now: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), names: map[string][]string{}}
	if serve == nil {
		serve = says("")
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.served.Add(1)
		serve(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	c := Config{
		Releases: spoken, roots: x509.NewCertPool(),
		lookup: i.lookup, connect: i.connectTo(server.Listener.Addr().String()), patience: time.Minute, // for a machine with much to do
	}
	c.roots.AddCert(server.Certificate())
	c.Now = func() time.Time {
		i.mu.Lock()
		defer i.mu.Unlock()
		return i.now
	}
	for _, edit := range edits {
		edit(&c)
	}
	i.Directory = NewDirectory(c)
	return i
}

// says returns a handler that answers with a valid profile, cacheable as a header says.
func says(cacheControl string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", cacheControl)
		fmt.Fprint(w, valid)
	}
}

// want checks the code of a fault; "": a profile.
func (i *internet) want(t *testing.T, code string, r Request) *problem.Error {
	t.Helper()
	p, fault := i.Profile(t.Context(), r)
	got := ""
	if fault != nil {
		got = string(fault.Code)
	}
	assert.That(t, got == code, "%.100s: %v, want %q", r.URL, fault, code)
	assert.That(t, (p == nil) == (fault != nil), "%.100s: both or none of profile %v and fault %v", r.URL, p, fault)
	return fault
}

// later is a request that no limit affects: of another client, after a second.
func (i *internet) later(url string) Request {
	i.advance(period)
	return Request{URL: url}
}

func TestProfile_IsFetchedOnceAndOnlyWithWhatItNeeds(t *testing.T) {
	t.Parallel()
	var header atomic.Pointer[http.Request]
	i := onInternet(t, func(w http.ResponseWriter, r *http.Request) {
		header.Store(r)
		w.Header().Set("Set-Cookie", "a=b")
		fmt.Fprint(w, valid)
	})
	spans := trace.NewTracerProvider()
	ctx, span := spans.Tracer("test").Start(t.Context(), "request")
	defer span.End()
	p, fault := i.Profile(ctx, Request{URL: "https://agent.example.com/p?q=1"})
	assert.Require(t, fault == nil, "%v", fault)
	assert.Equal(t, *p, Profile{release, map[string][]Capability{cartOf: {{Version: release}}}}, "profile")
	got := header.Load()
	assert.Equal(t, got.Host+got.RequestURI, "agent.example.com/p?q=1", "URL")
	assert.Equal(t, got.Header, http.Header{"Accept": {"application/json"}, "Accept-Encoding": {"gzip"}, "User-Agent": {"Go-http-client/1.1"}, "Connection": {"close"}}, "header")
	i.want(t, "", Request{URL: "https://agent.example.com/p?q=1"})
	assert.Equal(t, i.served.Load(), 1, "fetches")
	assert.Equal(t, i.dialed, []string{"93.184.215.14:443"}, "dialed")
	assert.Equal(t, i.asked, []string{"agent.example.com."}, "looked up, not in the search domains of resolv.conf")
}

func TestProfile_RefusesURLsThatAreNoPlatforms(t *testing.T) {
	t.Parallel()
	i := onInternet(t, nil)
	for _, url := range []string{
		"", "agent.example.com/p", "//agent.example.com/p", "https:agent.example.com", "https:///p", "https://:443/p",
		"http://agent.example.com/p", "http://127.0.0.1/p", "http://localhost:8080/p", "http://[::1]/p",
		"ftp://agent.example.com/p", "file:///etc/passwd", "data:application/json,{}", "gopher://agent.example.com:443/_",
		"https://agent.example.com:80/p", "https://agent.example.com:8443/p", "https://agent.example.com:0443/p",
		"https://user@agent.example.com/p", "https://user:secret@agent.example.com/p", "https://@agent.example.com/p",
		"https://agent.example.com@10.0.0.1/p", `https://agent.example.com\@10.0.0.1/p`,
		"https://agent.example.com/p#q", "https://agent.example.com/p#", "https://agent.example.com/a b", "https://agent.example.com/é",
		"https://agent.example.com/\r\nX: y", "https://ag\x00ent.example.com/p", "https://agent.example.com/%zz", "https://[::1/p",
		"https://agent.example.com/" + strings.Repeat("a", maxURL),
	} {
		fault := i.want(t, "invalid_profile_url", Request{URL: url, Loopback: true})
		assert.Equal(t, fault.Status, 400, "%q: status", url)
	}
	assert.Equal(t, len(i.asked)+len(i.dialed), 0, "lookups and connections")
	i.want(t, "", i.later("HTTPS://AGENT.example.com:443/"+strings.Repeat("a", maxURL-34)))
}

func ends(p netip.Prefix) (first, last netip.Addr) {
	bytes := p.Addr().AsSlice()
	for bit := p.Bits(); bit < 8*len(bytes); bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ = netip.AddrFromSlice(bytes)
	return p.Addr(), last
}

// The networks are those of RFC 6890, of the registries that it began, and multicast. No IPv6 address in
// which IPv4 is embedded reaches a network either, nor one with a zone.
func TestProfile_ReachesNoSpecialUseAddress(t *testing.T) {
	t.Parallel()
	i := onInternet(t, nil)
	refused := func(address string) {
		t.Helper()
		for _, url := range []string{"https://by-name.example.com/" + address, "https://" + netip.AddrPortFrom(netip.MustParseAddr(address), 443).String() + "/"} {
			i.name("by-name.example.com", address)
			fault := i.want(t, "invalid_profile_url", i.later(strings.ReplaceAll(url, "%", "%25")))
			assert.That(t, fault != nil && fault.Status == 400 && fault.Message(locale.En) == errHost.Message(locale.En), "%s: %+v", address, fault)
		}
	}
	for _, network := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.0.0/29",
		"192.0.0.170/31", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
		"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32",
		"::1/128", "::/128", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001::/32", "2001:1::1/128",
		"2001:1::2/128", "2001:1::3/128", "2001:2::/48", "2001:3::/32", "2001:4:112::/48", "2001:10::/28", "2001:20::/28", "2001:30::/28",
		"2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
	} {
		first, last := ends(netip.MustParsePrefix(network))
		refused(first.String())
		refused(last.String())
	}
	for name, address := range map[string]string{
		"mapped":            "::ffff:10.0.0.1",
		"mapped, loopback":  "::ffff:7f00:1",
		"translated":        "::ffff:0:10.0.0.1",
		"compatible":        "::10.0.0.1",
		"6to4":              "2002:a00:1::1",
		"6to4 of a public":  "2002:5db8:d70e::1",
		"NAT64":             "64:ff9b::10.0.0.1",
		"NAT64 of a public": "64:ff9b::93.184.215.14",
		"local-use NAT64":   "64:ff9b:1::10.0.0.1",
		"Teredo":            "2001:0:4136:e378:8000:63bf:f5ff:fffe",
		"ISATAP":            "2606:2800::5efe:10.0.0.1",
		"ISATAP, universal": "2606:2800::200:5efe:10.0.0.1",
		"a zone":            "fe80::1%eth0",
		"a zone of another": "2606:2800::1%lo",
		"metadata":          "169.254.169.254",
		"metadata in IPv6":  "fd00:ec2::254",
	} {
		t.Log(name)
		refused(address)
	}
	assert.Equal(t, i.dialed, nil, "dialed")

	for _, address := range []string{
		"1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "172.15.255.255", "172.32.0.0",
		"192.0.1.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255",
		"2000::", "2001:200::", "2001:db7:ffff::", "2001:db9::", "2003::", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "3ffe::1",
	} {
		i.name("by-name.example.com", address)
		i.want(t, "", i.later("https://by-name.example.com/"+address))
	}
	i.name("by-name.example.com", "::ffff:93.184.215.14") // some resolvers write IPv4 so
	i.want(t, "", i.later("https://by-name.example.com/mapped"))
	assert.Equal(t, i.dialed[len(i.dialed)-1], "93.184.215.14:443", "dialed")
}

// A name that answers differently the second time has nothing to gain: each fetch looks it up once, and dials
// only addresses of that answer.
func TestProfile_DialsTheAddressThatWasChecked(t *testing.T) {
	t.Parallel()
	i := onInternet(t, nil)
	i.name("rebind.example.com", "93.184.215.14", "127.0.0.1", "93.184.215.14 10.0.0.1", "10.0.0.1 fd00::1 93.184.215.15", "169.254.169.254")
	for n, code := range []string{"", "invalid_profile_url", "", "", "invalid_profile_url"} {
		i.want(t, code, i.later(fmt.Sprint("https://rebind.example.com/", n)))
		assert.Equal(t, len(i.asked), n+1, "lookups after fetch %d", n)
	}
	assert.Equal(t, i.dialed, []string{"93.184.215.14:443", "93.184.215.14:443", "93.184.215.15:443"}, "dialed")

	i.dialed = nil
	i.name("many.example.com", strings.Repeat("93.184.215.14 ", 1000))
	i.cfg.connect = func(context.Context, netip.AddrPort) (net.Conn, error) {
		i.dialed = append(i.dialed, "one")
		return nil, errors.New("refused")
	}
	i.want(t, "profile_unreachable", i.later("https://many.example.com/p"))
	assert.Equal(t, len(i.dialed), maxAttempts, "attempts")
}

// slowEnd is a connection that is late to end, as on a busy machine.
type slowEnd struct{ net.Conn }

func (slowEnd) SetDeadline(time.Time) error { return nil }

func (c slowEnd) Close() error {
	time.Sleep(200 * time.Millisecond)
	return c.Conn.Close()
}

// The one second of a fetch is for all its steps together.
func TestProfile_EndsAFetchThatIsSlowOrEndless(t *testing.T) {
	t.Parallel()
	forever := func(write func(http.ResponseWriter)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				write(w)
			}
		}
	}
	for name, attack := range map[string]struct {
		serve http.HandlerFunc
		edit  func(*Config)
		large bool
	}{
		"a lookup that hangs": {edit: func(c *Config) {
			c.lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
				<-ctx.Done()
				return nil, &net.DNSError{Err: "timeout", Name: host, IsTimeout: true}
			}
		}},
		"a connection that hangs": {edit: func(c *Config) {
			c.connect = func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
		}},
		"a handshake that hangs": {edit: func(c *Config) {
			c.connect = func(context.Context, netip.AddrPort) (net.Conn, error) { here, _ := net.Pipe(); return here, nil }
		}},
		"no header":   {serve: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		"early hints": {serve: forever(func(w http.ResponseWriter) { w.WriteHeader(http.StatusEarlyHints) })},
		"a large header": {serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", maxHeader))
			fmt.Fprint(w, valid)
		}},
		"a slow body": {serve: forever(func(w http.ResponseWriter) {
			fmt.Fprint(w, " ")
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Millisecond)
		})},
		// The server hears of the end by TLS, and ends its body in order, before the connection is closed.
		"a slow body that ends with the connection": {serve: func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, valid)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, edit: func(c *Config) {
			connect := c.connect
			c.connect = func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
				conn, err := connect(ctx, addr)
				return slowEnd{conn}, err
			}
		}},
		"a body that never ends": {large: true, serve: forever(func(w http.ResponseWriter) { fmt.Fprint(w, strings.Repeat(" ", 1<<12)) })},
		"a body that expands": {large: true, serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			zip := gzip.NewWriter(w)
			fmt.Fprint(zip, strings.Repeat(" ", 4<<20))
			zip.Close()
		}},
		"one byte too many": {large: true, serve: func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, valid, strings.Repeat(" ", maxBody+1-len(valid)))
		}},
		"a body that is cut short": {serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9999")
			fmt.Fprint(w, valid)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := onInternet(t, attack.serve, func(c *Config) {
				if !attack.large {
					c.patience = fetchTime
				}
				if attack.edit != nil {
					attack.edit(c)
				}
			})
			began := time.Now()
			fault := i.want(t, "profile_unreachable", Request{URL: "https://agent.example.com/p"})
			took := time.Since(began)
			assert.That(t, fault != nil && fault.Status == 424 && (fault == errTooLarge) == attack.large, "%+v", fault)
			assert.That(t, took < ephemeral.Patience(20*fetchTime), "took %v", took)
		})
	}
	i := onInternet(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, valid, strings.Repeat(" ", maxBody-len(valid)))
	})
	i.want(t, "", Request{URL: "https://agent.example.com/p"})
}

func TestProfile_FollowsNoRedirect(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308, 300, 304, 401, 404, 500, 503} {
		i := onInternet(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/to" {
				fmt.Fprint(w, valid)
				return
			}
			w.Header().Set("Location", "/to")
			w.WriteHeader(status)
			if status != 304 {
				fmt.Fprint(w, valid)
			}
		})
		fault := i.want(t, "profile_unreachable", Request{URL: "https://agent.example.com/p"})
		assert.That(t, fault != nil && strings.Contains(fault.Message(locale.En), fmt.Sprint(status)), "%d: %v", status, fault)
		assert.Equal(t, i.served.Load(), 1, "requests")
	}
}

func TestProfile_TrustsOnlyCertificatesOfTheHost(t *testing.T) {
	t.Parallel()
	for url, edit := range map[string]func(*Config){
		"https://agent.example.com/p": func(c *Config) { c.roots = x509.NewCertPool() },
		"https://agent.example.org/p": func(*Config) {},
	} {
		i := onInternet(t, nil, edit)
		i.name("agent.example.org", public.String())
		fault := i.want(t, "profile_unreachable", Request{URL: url})
		assert.That(t, fault != nil && strings.Contains(fault.Error(), "certificate"), "%v", fault)
		assert.Equal(t, i.served.Load(), 0, "requests")
	}
}

func TestProfile_SaysWhyThereIsNone(t *testing.T) {
	t.Parallel()
	i := onInternet(t, nil, func(c *Config) {
		c.patience = ephemeral.Patience(2 * fetchTime) // half of it is for the address that hangs
		connect := c.connect
		c.connect = func(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
			switch a.Addr().String() {
			case "93.184.215.15":
				return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
			case "93.184.215.16":
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return connect(ctx, a)
		}
		lookup := c.lookup
		c.lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			if strings.HasPrefix(host, "broken") {
				return nil, &net.DNSError{Err: "server misbehaving", Name: host, IsTemporary: true}
			}
			return lookup(ctx, host)
		}
	})
	i.name("refuses.example.com", "93.184.215.15")
	i.name("one-works.example.com", "93.184.215.15 93.184.215.16 93.184.215.14")
	for host, code := range map[string]string{
		"missing.test": "invalid_profile_url", "2130706433": "invalid_profile_url", "0x7f.1": "invalid_profile_url", "broken.test": "invalid_profile_url",
		"refuses.example.com": "profile_unreachable", "one-works.example.com": "",
	} {
		fault := i.want(t, code, i.later("https://"+host+"/p"))
		if code != "" {
			assert.That(t, fault.Cause != nil, "%s: no cause for the log", host)
		}
	}
}

func TestProfile_MustHaveWhatTheSchemaRequires(t *testing.T) {
	t.Parallel()
	var body atomic.Value
	i := onInternet(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body.Load()) })
	const head = `{"ucp":{"version":"2026-04-08",`
	n := 0
	get := func(text string) (*Profile, *problem.Error) {
		body.Store(text)
		n++
		return i.Profile(t.Context(), i.later(fmt.Sprint("https://agent.example.com/", n)))
	}
	for text, at := range map[string]string{
		``: "", `profile`: "", `{"ucp":`: "", valid + `}`: "", `{"ucp":{},"ucp":{}}`: "", "\xff": "", `{"a":` + strings.Repeat("[", 100_000): "",
		`[]`: "/", `"a"`: "/", `{"ucp":[]}`: "/ucp", `{"ucp":1}`: "/ucp",
		`null`: "/ucp/version", `{}`: "/ucp/version", `{"ucp":null}`: "/ucp/version", `{"UCP":{"version":"2026-04-08"}}`: "/ucp/version",
		`{"ucp":{"version":20260408}}`: "/ucp/version", `{"ucp":{"version":"draft"}}`: "/ucp/version", `{"ucp":{"version":"2026-04-08\n"}}`: "/ucp/version",
		`{"ucp":{"version":"2026-4-8"}}`:                                                     "/ucp/version",
		`{"ucp":{"version":"2026-04-08"}}`:                                                   "/ucp/services",
		head + `"services":[]}}`:                                                             "/ucp/services",
		head + `"services":{"a.b":{}}}}`:                                                     "/ucp/services",
		head + `"services":{"a.b":["rest"]}}}`:                                               "/ucp/services",
		head + `"services":{"a.b":[{"transport":"rest"}]}}}`:                                 "/ucp/services",
		head + `"services":{"a.b":[{"version":"2026-04-08"}]}}}`:                             "/ucp/services",
		head + `"services":{},"capabilities":["a"]}}`:                                        "/ucp/capabilities",
		head + `"services":{},"capabilities":{"a.b":"c"}}}`:                                  "/ucp/capabilities",
		head + `"services":{},"capabilities":{"a.b":[{}]}}}`:                                 "/ucp/capabilities",
		head + `"services":{},"capabilities":{"a.b":[null]}}}`:                               "/ucp/capabilities",
		head + `"services":{}},"keys":{}}`:                                                   "/keys",
		head + `"services":{}},"keys":[{"kid":"a"}]}`:                                        "/keys",
		`{"ucp":{"version":"2026-01-23","services":{}},"signing_keys":[1]}`:                  "/signing_keys",
		head + `"services":{},"capabilities":{"` + strings.Repeat("a", 100_000) + `":[1]}}}`: "/ucp/capabilities",
	} {
		_, fault := get(text)
		assert.Require(t, fault != nil, "%.100q is valid", text)
		assert.That(t, fault.Code == "profile_malformed" && fault.Status == 422, "%.100q: %v", text, fault)
		content := fault.Message(locale.En)
		assert.That(t, len(content) < 100 && (at == "" && content == errNotJSON.Message(locale.En) || at != "" && strings.HasSuffix(content, " at "+at+".")),
			"%.100q: %.200s", text, content)
	}
	type caps = map[string][]Capability
	for text, want := range map[string]Profile{
		`{"ucp":{"version":"2026-01-11","services":{"a":{"rest":{}}},"capabilities":[{"name":"a"}]}}`: {Version: "2026-01-11"}, // that release's form
		`{"ucp":{"version":"2099-01-01"}}`:                                         {Version: "2099-01-01"},
		head + `"services":{}},"keys":[{"kid":"a","kty":"new"}],"signing_keys":1}`: {Version: release},
		`{"ucp":{"version":"2026-01-23","services":{},"capabilities":{"dev.ucp.shopping.cart":[{"version":"2026-04-08"},{"version":"2026-01-23"}]}},"keys":1}`: {
			Version: "2026-01-23", Capabilities: caps{cartOf: {{Version: "2026-01-23"}}},
		},
		head + `"services":{}}}`: {Version: release},
		head + `"services":{"a.b":[{"version":"2026-04-08","transport":"new"}]},"more":1},"more":[]}`: {Version: release},
		head + `"services":{},"capabilities":{"dev.ucp.shopping.cart":[]}}}`:                          {Version: release},
		head + `"services":{},"capabilities":{"dev.ucp.shopping.cart":[{"version":"2099-01-01"},{"version":"2026-04-08","spec":1},{"version":"2026-04-08"}]}}}`: {
			Version: release, Capabilities: caps{cartOf: {{Version: release}}},
		},
	} {
		p, fault := get(text)
		assert.Require(t, fault == nil, "%.100q: %v", text, fault)
		if want.Capabilities == nil {
			want.Capabilities = caps{}
		}
		assert.Equal(t, *p, want, "%.100q", text)
	}
}

func TestProfile_IsUsedAsLongAsItsHeadersSay(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{
		"":                                    time.Minute,
		"public":                              time.Minute,
		"public, max-age=60":                  time.Minute,
		"public, max-age=61":                  61 * time.Second,
		"PUBLIC, MAX-AGE=3600":                time.Hour,
		`max-age="3600"`:                      time.Hour,
		"max-age=1":                           time.Minute,
		"max-age=0":                           time.Minute,
		"max-age=-1":                          time.Minute,
		"max-age=x":                           time.Minute,
		"max-age":                             time.Minute,
		"max-age=86400":                       maxAge,
		"max-age=86401":                       maxAge,
		"max-age=99999999999999999999999999":  maxAge,
		"max-age=3600, s-maxage=120":          2 * time.Minute,
		"s-maxage=120,max-age=3600":           2 * time.Minute,
		"s-maxage=7200, max-age=120":          2 * time.Hour,
		"max-age=3600, no-store":              time.Minute,
		"private, max-age=3600":               time.Minute,
		"max-age=3600, no-cache=\"a\"":        time.Minute,
		"max-age=3600, stale-if-error=864000": time.Hour,
	} {
		assert.Equal(t, ageOf(http.Header{"Cache-Control": {header}}), want, "%q", header)
	}
	assert.Equal(t, ageOf(http.Header{"Cache-Control": {"public", "max-age=3600"}, "Age": {"600"}}), 50*time.Minute, "in two lines, and of another cache")
	assert.Equal(t, ageOf(http.Header{"Cache-Control": {"max-age=3600"}, "Age": {"9999999999"}}), time.Minute, "very old")

	i := onInternet(t, says("max-age=120"))
	for _, step := range []struct {
		after   time.Duration
		fetches int64
	}{{0, 1}, {119 * time.Second, 1}, {time.Second, 2}, {119 * time.Second, 2}, {2 * time.Second, 3}} {
		i.advance(step.after)
		i.want(t, "", Request{URL: "https://agent.example.com/p"})
		assert.Equal(t, i.served.Load(), step.fetches, "fetches after %v more", step.after)
	}
}

func TestProfile_RemembersAFailureFor30Seconds(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	i := onInternet(t, func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		says("max-age=60")(w, r)
	})
	r := Request{URL: "https://agent.example.com/p"}
	i.want(t, "", r)
	down.Store(true)
	i.want(t, "", r)
	i.advance(time.Minute)
	i.want(t, "profile_unreachable", r) // an old profile must not be used then
	down.Store(false)
	i.advance(failureAge - time.Millisecond)
	i.want(t, "profile_unreachable", r)
	assert.Equal(t, i.served.Load(), 2, "fetches")
	i.advance(time.Millisecond)
	i.want(t, "", r)
	assert.Equal(t, i.served.Load(), 3, "fetches")
}

func TestProfile_IsFetchedOnceForAllWhoWait(t *testing.T) {
	t.Parallel()
	proceed := make(chan struct{})
	i := onInternet(t, func(w http.ResponseWriter, r *http.Request) {
		<-proceed
		says("")(w, r)
	})
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	_, fault := i.Profile(impatient, Request{URL: "https://agent.example.com/p", Client: "first"})
	assert.That(t, fault != nil && fault.Status == 503 && fault.RetryAfter > 0, "%+v", fault) // the fetch goes on without it
	var all sync.WaitGroup
	for n := range 50 {
		all.Go(func() { i.want(t, "", Request{URL: "https://agent.example.com/p", Client: fmt.Sprint(n)}) })
	}
	close(proceed)
	all.Wait()
	assert.Equal(t, i.served.Load(), 1, "fetches")
	u, _ := parseURL("https://agent.example.com/p")
	f, wait := i.ask(t.Context(), Request{URL: u.String()}, u) // as one does that looked before the fetch ended
	assert.That(t, f == nil && wait == 0, "another fetch %v, or a wait of %v", f, wait)
}

func TestTake_LimitsAllFetchesAndThoseOfEachClientAndHost(t *testing.T) {
	t.Parallel()
	epoch := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	type call struct {
		at           int // ms
		client, host string
		wait         int // ms
	}
	for name, calls := range map[string][]call{
		"one client":        {{0, "a", "1", 0}, {0, "a", "2", 1000}, {999, "a", "2", 1}, {1000, "a", "2", 0}, {1001, "a", "3", 999}},
		"one host":          {{0, "a", "1", 0}, {0, "b", "1", 1000}, {400, "c", "1", 600}, {400, "c", "2", 0}, {1000, "a", "1", 0}},
		"the later of both": {{0, "a", "1", 0}, {300, "b", "2", 0}, {500, "a", "2", 800}, {500, "b", "1", 800}},
	} {
		var steps []step
		for _, c := range calls {
			var wait time.Duration
			steps, wait = take(steps, step{at: epoch.Add(time.Duration(c.at) * time.Millisecond), client: c.client, host: c.host})
			assert.Equal(t, wait, time.Duration(c.wait)*time.Millisecond, "%s: wait of %v", name, c)
		}
	}
	for kind, most := range map[stepKind]int{tried: maxTries, reached: maxStarts} {
		var steps []step
		n := 0
		next := func(at int, answered bool) (wait time.Duration) {
			n++
			name := fmt.Sprint(n)
			steps, wait = take(steps, step{kind, epoch.Add(time.Duration(at) * time.Millisecond), name, name, answered})
			return wait / time.Millisecond
		}
		for n := range most - 1 {
			assert.Equal(t, next(n, false), 0, "wait of %d", n)
		}
		assert.Equal(t, []time.Duration{next(500, false), next(500, true), next(500, true), next(500, false)}, []time.Duration{500, 0, 500, 501},
			"waits at the limit, of hosts that have had a profile or not")
		assert.Equal(t, []time.Duration{next(1000, false), next(1001, false), next(1001, false)}, []time.Duration{1, 0, 1}, "waits a period later")
	}
}

// Whoever names hosts that do not exist, or do not answer, keeps only their own neighbors out.
func TestProfile_ThatCannotConnectCountsForItsNetworkAlone(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*Config, context.Context){
		"unknown names": func(*Config, context.Context) {},
		"names that take long": func(c *Config, released context.Context) {
			lookup := c.lookup
			c.lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
				addrs, err := lookup(ctx, host)
				if err != nil {
					<-released.Done()
				}
				return addrs, err
			}
		},
		"servers that refuse": func(c *Config, _ context.Context) {
			c.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
				if strings.HasSuffix(host, ".test.") {
					return []netip.Addr{netip.MustParseAddr("93.184.215.15")}, nil
				}
				return []netip.Addr{public}, nil
			}
			connect := c.connect
			c.connect = func(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
				if a.Addr() != public {
					return nil, errors.New("connection refused")
				}
				return connect(ctx, a)
			}
		},
	} {
		released, release := context.WithCancel(t.Context())
		i := onInternet(t, nil, func(c *Config) { edit(c, released) })
		var all sync.WaitGroup
		for n := range 60 {
			all.Go(func() {
				client := fmt.Sprintf("198.51.%d.1", n)
				if n%2 == 1 {
					client = fmt.Sprintf("2001:db8:%x:1::/64", n)
				}
				i.Profile(t.Context(), Request{URL: fmt.Sprintf("https://%d.test/p", n), Client: client})
			})
		}
		ephemeral.Eventually(t, "all begin", func() bool {
			i.mu.Lock()
			defer i.mu.Unlock()
			return len(i.asked) == 60 || name == "servers that refuse"
		})
		i.want(t, "", Request{URL: "https://new.example.com/p", Client: "203.0.113.1"})
		release()
		all.Wait()
		for n, neighbors := range []string{"198.51.0.200", "2001:db8:1:2::/64"} {
			i.want(t, "unavailable", Request{URL: fmt.Sprintf("https://more%d.example.com/p", n), Client: neighbors})
		}
		i.want(t, "unavailable", Request{URL: "https://0.test/more", Client: "203.0.113.2"})
		for n, other := range []string{"198.51.100.200", "2001:db8:0:2::/64"} {
			i.want(t, "", Request{URL: fmt.Sprintf("https://other%d.example.com/p", n), Client: other})
		}
		i.advance(period)
		i.want(t, "", Request{URL: "https://last.example.com/p", Client: "198.51.0.200"})
	}
}

// Many may connect at the same time, since fetches count for all from then on.
func TestProfile_ThatFindsNoPlaceIsFetchedLater(t *testing.T) {
	t.Parallel()
	proceed := make(chan struct{})
	i := onInternet(t, says("max-age=3600"))
	i.want(t, "", Request{URL: "https://known.example.com/p"})
	i.advance(period)
	connect := i.cfg.connect
	i.cfg.connect = func(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
		<-proceed
		return connect(ctx, a)
	}
	request := func(n int) Request {
		return Request{URL: fmt.Sprintf("https://a%d.example.com/p", n), Client: fmt.Sprint(n)}
	}
	var all sync.WaitGroup
	var profiles, busy atomic.Int64
	for n := range 40 {
		all.Go(func() {
			if p, fault := i.Profile(t.Context(), request(n)); p != nil {
				profiles.Add(1)
			} else if fault.Code == "unavailable" && fault.RetryAfter == period {
				busy.Add(1)
			}
		})
	}
	ephemeral.Eventually(t, "all begin", func() bool { i.mu.Lock(); defer i.mu.Unlock(); return len(i.asked) == 41 })
	close(proceed)
	all.Wait()
	assert.Equal(t, []int64{profiles.Load(), busy.Load(), i.served.Load()}, []int64{maxStarts - kept, 40 - maxStarts + kept, maxStarts - kept + 1}, "profiles, busy, served")
	assert.Equal(t, i.failures.Len(), 0, "failures that are kept")
	i.want(t, "", Request{URL: "https://known.example.com/more", Client: "more"}) // has the place that is kept
	i.advance(period)
	for n := range 40 {
		if _, has := i.profiles.Get(request(n).URL); !has {
			i.want(t, "", request(n))
			break
		}
	}
}

// A host that answers each fetch after a second has at most one at a time, so others have theirs.
func TestProfile_OfOneHostCannotStarveOthers(t *testing.T) {
	t.Parallel()
	proceed := make(chan struct{})
	i := onInternet(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(strings.ToLower(r.Host), "slow.") {
			<-proceed
		}
		says("max-age=60")(w, r)
	})
	i.want(t, "", Request{URL: "https://known.example.com/p", Client: "known"})
	i.advance(61 * time.Second)
	var all sync.WaitGroup
	var busy atomic.Int64
	slow := []string{"slow.example.com", "SLOW.example.com", "slow.example.com.", "slow.example.com:443"}
	for n := range 100 {
		all.Go(func() {
			_, fault := i.Profile(t.Context(), Request{URL: fmt.Sprintf("https://%s/%d", slow[n%len(slow)], n), Client: fmt.Sprint("attacker", n)})
			if fault != nil && fault.Code == "unavailable" && fault.Status == 503 && fault.RetryAfter == period {
				busy.Add(1)
			}
		})
	}
	ephemeral.Eventually(t, "99 fetches of one host must wait", func() bool { return busy.Load() == 99 })
	i.want(t, "", Request{URL: "https://good.example.com/p", Client: "other"})
	for n := range 20 { // one client with many hosts, then many clients with many hosts
		i.Profile(t.Context(), Request{URL: fmt.Sprintf("https://a%d.example.com/p", n), Client: "one"})
		i.Profile(t.Context(), Request{URL: fmt.Sprintf("https://b%d.example.com/p", n), Client: fmt.Sprint("many", n)})
	}
	close(proceed)
	all.Wait()
	i.want(t, "unavailable", Request{URL: "https://new.example.com/p", Client: "new"})
	i.want(t, "", Request{URL: "https://known.example.com/p", Client: "known"}) // although it should be fetched again
	served := i.served.Load()
	assert.That(t, served <= 1+maxStarts, "%d fetches in two seconds", served)

	i.advance(maxAge)
	for range maxStarts {
		i.steps = append(i.steps, step{kind: reached, at: i.cfg.Now()})
	}
	i.want(t, "unavailable", Request{URL: "https://known.example.com/p", Client: "known"})
}

func TestProfile_OfManyURLsTakesLittleMemoryAndEvictsNoKnownOne(t *testing.T) {
	t.Parallel()
	i := onInternet(t, says("max-age=86400"))
	connect := i.cfg.connect
	known := Request{URL: "https://known.example.com/p"}
	i.want(t, "", known)

	failure := errors.New(strings.Repeat("x", 10<<10)) // a server's certificate can make it long
	i.cfg.connect = func(context.Context, netip.AddrPort) (net.Conn, error) { return nil, failure }
	for n := range 10_000 {
		i.advance(period / maxStarts)
		fault := i.want(t, "profile_unreachable", Request{URL: fmt.Sprintf("https://a%d.example.com/p", n), Client: fmt.Sprint(n)})
		assert.Require(t, len(fault.Cause.Error()) <= maxCause, "a cause of %d bytes is kept", len(fault.Cause.Error()))
	}
	assert.Equal(t, []int{i.failures.Len(), i.profiles.Len(), len(i.fetches)}, []int{maxFailures, 1, 0}, "failures, profiles, fetches")
	assert.That(t, len(i.steps) <= 2*maxTries, "%d steps", len(i.steps))
	i.cfg.connect = nil
	i.want(t, "", known)
	for n := range maxProfiles * 2 { // successes do evict, but not one that is used
		i.profiles.Put(fmt.Sprint(n), &result{profile: &Profile{}, fetched: i.cfg.Now(), age: maxAge})
		i.want(t, "", known)
	}
	assert.Equal(t, i.profiles.Len(), maxProfiles, "profiles")

	large := new(strings.Builder)
	fmt.Fprint(large, valid[:len(valid)-3])
	for n := range 3000 {
		fmt.Fprintf(large, `,"com.example.c%d":[{"version":"2026-04-08"},{"version":"2026-04-09"}]`, n)
	}
	p, fault := parse([]byte(large.String()+"}}}"), spoken)
	assert.Require(t, fault == nil && large.Len() > 200_000, "%v", fault)
	assert.Equal(t, p.Capabilities, map[string][]Capability{cartOf: {{Version: release}}}, "what is kept of a large profile")
	i.cfg.connect = connect
}

// Only the demo reaches this machine, for requests of its own programs by its own name.
func TestProfile_OnThisMachineIsForTheDemoAlone(t *testing.T) {
	t.Parallel()
	local := httptest.NewServer(says(""))
	t.Cleanup(local.Close)
	port := local.Listener.Addr().(*net.TCPAddr).Port
	byName, byAddress := fmt.Sprintf("http://localhost:%d/p", port), fmt.Sprintf("http://127.0.0.1:%d/p", port)
	real := func(c *Config) { c.connect = nil }

	demo := onInternet(t, nil, real, func(c *Config) { c.Loopback = true })
	demo.name("localhost", "10.0.0.1")
	demo.want(t, "invalid_profile_url", Request{URL: byAddress})
	demo.want(t, "", Request{URL: byAddress, Loopback: true})
	demo.want(t, "", Request{URL: byName, Loopback: true, Client: "another"})
	for _, url := range []string{byAddress, byName} { // cached by now
		demo.want(t, "invalid_profile_url", Request{URL: url})
	}
	for _, url := range []string{
		fmt.Sprintf("https://127.0.0.1:%d/p", port), "https://127.0.0.1/p", "https://localhost/p", "http://10.0.0.1/p", "http://169.254.169.254/latest",
		"http://agent.example.com/p", "http://localhost.example.com/p", "http://127.0.0.1.example.com/p", "http://user@localhost/p",
	} {
		demo.advance(period)
		demo.want(t, "invalid_profile_url", Request{URL: url, Loopback: true})
	}
	assert.Equal(t, demo.asked, []string{"localhost."}, "looked up: for https only")

	served := onInternet(t, nil, real, func(c *Config) { c.lookup = nil })
	served.want(t, "invalid_profile_url", Request{URL: "https://localhost/p", Loopback: true})
	served.want(t, "invalid_profile_url", Request{URL: byAddress, Loopback: true})
}

func TestProfile_IsNotFetchedWhenPlatformsAreTrusted(t *testing.T) {
	t.Parallel()
	i := onInternet(t, nil, func(c *Config) { c.Trust = true })
	for n := range 100 {
		url := fmt.Sprintf("https://a%d.example.com/p", n)
		p, fault := i.Profile(t.Context(), Request{URL: url})
		assert.Require(t, fault == nil, "%v", fault)
		assert.Equal(t, *p, Profile{release, ours}, "profile")
	}
	for _, url := range []string{"", "http://agent.example.com/p", "http://localhost/p", "https://user@agent.example.com/p", "https://agent.example.com:22/p"} {
		i.want(t, "invalid_profile_url", Request{URL: url, Loopback: true})
	}
	assert.Equal(t, len(i.asked)+len(i.dialed), 0, "lookups and connections")
}
