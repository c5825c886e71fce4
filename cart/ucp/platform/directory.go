// Package platform knows the platforms whose agents call. It reads the URL of a platform's profile from a
// request, fetches the profile, and negotiates what both sides support.
//
// Anyone may name any URL. So a fetch reaches only servers on the internet, and all fetches together take
// little time, memory and traffic, whoever asks for how many URLs.
package platform

import (
	"cmp"
	"context"
	"crypto/x509"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"commerce/auth/bounded"
	"commerce/auth/problem"
	"commerce/auth/timing"
)

const (
	minAge     = time.Minute // of a profile that is used without a fetch, whatever its headers say
	maxAge     = 24 * time.Hour
	failureAge = 30 * time.Second

	maxProfiles = 1000
	maxFailures = int(maxTries * failureAge / period) // more cannot be current
)

type Config struct {
	Releases []Release        // of the protocol that this service speaks, the latest first
	Trust    bool             // fetch nothing: each platform speaks the latest release, and has all its capabilities
	Loopback bool             // serve requests with a profile on this machine, as the demo does
	Now      func() time.Time // default time.Now

	// For tests.
	patience time.Duration // default fetchTime
	lookup   func(ctx context.Context, host string) ([]netip.Addr, error)
	connect  func(context.Context, netip.AddrPort) (net.Conn, error)
	roots    *x509.CertPool
}

// Directory has the profiles of platforms. It is safe for concurrent use.
type Directory struct {
	cfg      Config
	profiles *bounded.Cache[string, *result] // by URL
	failures *bounded.Cache[string, *result] // of their own, so that they evict no profile
	answered *bounded.Cache[string, bool]    // hosts that have had a profile

	mu      sync.Mutex
	fetches map[string]*fetch // in progress, by URL
	steps   []step            // of fetches in the last period
}

type Request struct {
	URL    string // of the profile; "": none
	Client string // that the request counts for

	// Loopback says that the request came from this machine, to a Host that is this machine, and without
	// Origin. Otherwise a page or another machine could read from servers on this one.
	Loopback bool
}

// result is the result of a fetch. It is immutable.
type result struct {
	profile *Profile
	fault   *problem.Error // nil if there is a profile
	fetched time.Time      // when the fetch began
	age     time.Duration  // 0 if the limits did not allow the fetch
}

func (r *result) fresh(now time.Time) bool { return r != nil && now.Sub(r.fetched) < r.age }

// fetch is a fetch in progress. Several requests may wait for it.
type fetch struct {
	done   chan struct{}
	result *result // read it only after done is closed
}

// NewDirectory returns a Directory that knows no profile yet.
func NewDirectory(c Config) *Directory {
	if c.Now == nil {
		c.Now = time.Now
	}
	c.patience = cmp.Or(c.patience, fetchTime)
	if c.lookup == nil {
		c.lookup = lookup
	}
	if c.connect == nil {
		c.connect = connect
	}
	return &Directory{
		cfg:      c,
		profiles: bounded.New[string, *result](maxProfiles, nil),
		failures: bounded.New[string, *result](uint64(maxFailures), nil),
		answered: bounded.New[string, bool](maxProfiles, nil),
		fetches:  map[string]*fetch{},
	}
}

// Profile returns the profile that a request names. It fetches the profile unless it knows it, and waits at
// most fetchTime.
//
// When the limit of fetches is reached, a profile that should be fetched again is used for up to a day. So
// nobody can keep known platforms out by naming many others.
func (d *Directory) Profile(ctx context.Context, r Request) (*Profile, *problem.Error) {
	u, ok := parseURL(r.URL)
	if !ok || u.Scheme == "http" && !(d.cfg.Loopback && r.Loopback) {
		return nil, errURL
	}
	if d.cfg.Trust {
		latest := d.cfg.Releases[0]
		return &Profile{Version: latest.Version, Capabilities: latest.Capabilities}, nil
	}
	known := d.known(r.URL)
	if !known.fresh(d.cfg.Now()) {
		f, wait := d.ask(ctx, r, u)
		if f == nil {
			if known = d.known(r.URL); known == nil {
				return nil, errBusy.After(cmp.Or(wait, time.Second))
			}
			return known.profile, known.fault
		}
		began := time.Now()
		defer func() { timing.Add(ctx, timing.Waiting, time.Since(began)) }()
		select {
		case <-f.done:
			if known = f.result; known.age == 0 {
				known = cmp.Or(d.known(r.URL), known)
			}
		case <-ctx.Done():
			return nil, errBusy.Because(ctx.Err()).After(time.Second)
		}
	}
	return known.profile, known.fault
}

// known returns the current result for a URL, or else a profile that is at most a day old; nil for none.
func (d *Directory) known(address string) *result {
	now := d.cfg.Now()
	profile, _ := d.profiles.Get(address)
	if profile.fresh(now) {
		return profile
	}
	if failure, _ := d.failures.Get(address); failure.fresh(now) {
		return failure
	}
	if profile != nil && now.Sub(profile.fetched) < maxAge {
		return profile
	}
	return nil
}

// ask returns the fetch to wait for, the current one or a new one. It returns nil if the result is known by
// now, or if no fetch may begin before a wait.
func (d *Directory) ask(ctx context.Context, r Request, u *url.URL) (*fetch, time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.fetches[r.URL]; f != nil {
		return f, 0
	}
	now := d.cfg.Now()
	if d.known(r.URL).fresh(now) {
		return nil, 0
	}
	host := hostOf(u)
	_, answered := d.answered.Get(host)
	next := step{kind: tried, at: now, client: r.Client, host: host, answered: answered}
	var wait time.Duration
	if d.steps, wait = take(d.steps, next); wait > 0 {
		return nil, wait
	}
	f := &fetch{done: make(chan struct{})}
	address := strings.Clone(r.URL) // which may be part of a body
	d.fetches[address] = f
	go func() {
		ctx, traced := timing.Step(timing.Detach(ctx), "fetch profile")
		result, connected := d.fetch(ctx, u, func() *problem.Error { return d.reach(next) })
		result.fetched = now
		if result.fault != nil {
			traced(result.fault)
		} else {
			traced(nil)
		}
		d.end(address, f, result, next, connected)
	}()
	return f, 0
}

// reach counts a fetch that has connected. It returns an error if that is one too many.
func (d *Directory) reach(s step) *problem.Error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s.kind, s.at = reached, d.cfg.Now()
	var wait time.Duration
	if d.steps, wait = take(d.steps, s); wait > 0 {
		return errBusy.After(wait)
	}
	return nil
}

func (d *Directory) end(address string, f *fetch, r *result, s step, connected bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case r.fault == nil:
		d.profiles.Put(address, r)
		d.answered.Put(s.host, true)
	case r.age > 0:
		d.failures.Put(address, r)
	}
	if !connected {
		s.kind, s.at = failed, d.cfg.Now()
		d.steps = append(d.steps, s)
	}
	delete(d.fetches, address)
	f.result = r
	close(f.done)
}

// hostOf returns the host that a fetch counts for. On this machine each port is one.
func hostOf(u *url.URL) string {
	if u.Scheme == "http" {
		return u.Host
	}
	return strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
}
