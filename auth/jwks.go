package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"commerce/auth/cause"
	"commerce/auth/timing"
)

const (
	// jwksInterval is the minimum time between fetches if the first failed or lacked a key.
	jwksInterval = 10 * time.Second

	// jwksMaxAge is the age at which a key set is refreshed in the background, so that a
	// withdrawn key does not stay valid.
	jwksMaxAge = 5 * time.Minute

	// jwksTrust is the age from which keys are no longer trusted. While nobody can fetch the
	// issuer's keys, nobody learns that it has withdrawn one.
	jwksTrust = 24 * time.Hour

	jwksWait      = 500 * time.Millisecond
	jwksTimeout   = 5 * time.Second // of a fetch, including redirects
	jwksRedirects = 3
	maxJWKS       = 256 << 10 // bytes, decompressed
	maxJWKSHeader = 32 << 10
	maxKeysAsked  = 256 // requested names that a fetch keeps
)

type JWKSConfig struct {
	URL       string                             // https, or http of this machine. Redirects to other URLs, and from https to http, are refused
	Transport http.RoundTripper                  // nil: a new transport
	Propagate func(context.Context, http.Header) // adds the headers of a trace to a fetch; nil: none

	// Wait is how long a request waits for a fetch. Default: 500 ms.
	Wait time.Duration

	// Log receives a warning when fetches begin to fail, since withdrawn keys then stay
	// valid for up to a day, and a message when they work again. Default: slog.Default.
	Log *slog.Logger

	// Reachable is called after each fetch, with whether it succeeded, and with false when a
	// request stops waiting for a slow one. It and Log must not block. nil: not called.
	Reachable func(bool)
}

// JWKS is an issuer's published key set. The first token causes the first fetch. Known
// keys stay in use for a day while the issuer is down. A token with an unknown key causes a fetch,
// which all such tokens share; each waits at most for Wait. If the last fetch succeeded less
// than 10 s ago, there is no fetch and the token is unauthenticated: otherwise anyone could
// cause fetches, or errors in the log, with invented key IDs. While the issuer is down the
// token is unavailable.
type JWKS struct {
	cfg    JWKSConfig
	name   string // for errors: the URL without what may be a credential
	client *http.Client
	set    atomic.Pointer[keySet] // nil before the first successful fetch

	mu     sync.Mutex
	fetch  *jwksFetch // in progress; nil for none
	closed time.Time  // no fetch begins before this time
	last   error      // of the last fetch; nil if it succeeded
	lost   time.Time  // when fetches began to fail or to be late; zero while they work
}

// jwksFetch is a fetch. Several requests may wait for it.
type jwksFetch struct {
	began time.Time
	asked map[keyName]struct{} // guarded by the mutex of JWKS
	done  chan struct{}
	err   error // read it only after done is closed
}

// NewJWKS returns the key set at cfg.URL, or an error that names JWT_JWKS_URL.
func NewJWKS(cfg JWKSConfig) (*JWKS, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || !secure(u) {
		return nil, errors.New("JWT_JWKS_URL must be an https URL, or an http URL of this machine")
	}
	if cfg.Transport == nil {
		cfg.Transport = &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			ForceAttemptHTTP2:      true,
			DisableKeepAlives:      true, // fetches are minutes apart
			MaxResponseHeaderBytes: maxJWKSHeader,
		}
	}
	if cfg.Propagate == nil {
		cfg.Propagate = func(context.Context, http.Header) {}
	}
	if cfg.Reachable == nil {
		cfg.Reachable = func(bool) {}
	}
	cfg.Wait, cfg.Log = cmp.Or(cfg.Wait, jwksWait), cmp.Or(cfg.Log, slog.Default())
	return &JWKS{
		cfg:    cfg,
		name:   "jwks " + (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(),
		client: &http.Client{Transport: cfg.Transport, CheckRedirect: checkRedirect, Timeout: jwksTimeout},
	}, nil
}

func checkRedirect(next *http.Request, via []*http.Request) error {
	switch {
	case len(via) > jwksRedirects:
		return fmt.Errorf("more than %d redirects", jwksRedirects)
	case via[0].URL.Scheme == "https" && next.URL.Scheme != "https", !secure(next.URL):
		return fmt.Errorf("redirect from %s to %s", via[0].URL.Scheme, next.URL.Scheme)
	}
	return nil
}

// secure reports whether nobody on the network can change what a URL returns.
func secure(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && IsLoopback(u.Hostname())
}

// current returns the key set in use, nil if there is none.
func (j *JWKS) current() *keySet {
	if j == nil {
		return nil
	}
	return j.set.Load()
}

// refresh begins a fetch in the background if a set that has verified a token is old.
func (j *JWKS) refresh(ctx context.Context, set *keySet) {
	if set == nil || time.Since(set.fetched) <= jwksMaxAge {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.fetch == nil && !time.Now().Before(j.closed) {
		j.begin(ctx)
	}
}

// keyFor returns the public key for t's kid and alg. Its errors are problem.Errors.
func (j *JWKS) keyFor(ctx context.Context, t *jwt.Token) (any, error) {
	name, ok := keyNameOf(t)
	if !ok {
		return nil, errTokenMalformed
	}
	set := j.current()
	key, found := set.find(name)
	switch found {
	case keyFound:
		j.refresh(ctx, set)
	case keyAbsent:
		if err := j.obtain(ctx, name); err != nil {
			return nil, err
		}
		key, found = j.set.Load().find(name)
	}
	if found != keyFound {
		return nil, errTokenKeyUnknown
	}
	return key, nil
}

// obtain waits for a fetch that may return the key.
func (j *JWKS) obtain(ctx context.Context, name keyName) error {
	fetch, err := j.ask(ctx, name)
	if err != nil || fetch == nil {
		return err
	}
	start := time.Now()
	defer func() { timing.Add(ctx, timing.Waiting, time.Since(start)) }()
	select {
	case <-fetch.done:
		err = fetch.err
	case <-time.After(j.cfg.Wait):
		err = fmt.Errorf("%s: no answer after %s", j.name, j.cfg.Wait)
		j.late(ctx, fetch, err)
	case <-ctx.Done():
		err = fmt.Errorf("%s: %w", j.name, ctx.Err())
	}
	if err != nil {
		return unavailable(err)
	}
	return nil
}

// ask returns the fetch to wait for, current or new; nil if the key is known by now.
func (j *JWKS) ask(ctx context.Context, name keyName) (*jwksFetch, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, found := j.set.Load().find(name); found != keyAbsent {
		return nil, nil
	}
	if j.fetch == nil {
		if time.Now().Before(j.closed) {
			if j.last == nil {
				return nil, errTokenKeyUnknown
			}
			return nil, unavailable(fmt.Errorf("%w (fetched again after %s)", j.last, jwksInterval))
		}
		j.begin(ctx)
	}
	if len(j.fetch.asked) < maxKeysAsked {
		j.fetch.asked[name] = struct{}{}
	}
	return j.fetch, nil
}

// begin starts a fetch, which outlives the request. The caller holds the mutex.
func (j *JWKS) begin(ctx context.Context) {
	fetch := &jwksFetch{began: time.Now(), asked: make(map[keyName]struct{}), done: make(chan struct{})}
	j.fetch = fetch
	go func() {
		ctx, traced := timing.Step(timing.Detach(ctx), "fetch JWKS")
		keys, err := j.load(ctx)
		traced(err)
		j.end(ctx, fetch, keys, cause.Of(j.name, fetch.began, err))
	}()
}

// late records that a request stopped waiting for a fetch, unless that has just ended.
func (j *JWKS) late(ctx context.Context, fetch *jwksFetch, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.fetch == fetch {
		j.report(ctx, fetch, err)
	}
}

// report reports whether the keys can be fetched, and logs a change. The caller holds the mutex.
func (j *JWKS) report(ctx context.Context, fetch *jwksFetch, err error) {
	j.cfg.Reachable(err == nil)
	switch {
	case err != nil && j.lost.IsZero():
		j.lost = fetch.began
		j.cfg.Log.WarnContext(ctx, "cannot fetch the issuer's keys; known keys stay in use for a day", "err", err)
	case err == nil && !j.lost.IsZero():
		j.cfg.Log.InfoContext(ctx, "the issuer's keys can be fetched again", "after", cause.Text(time.Since(j.lost)))
		j.lost = time.Time{}
	}
}

// end publishes the result of a fetch. Unless the fetch returned all requested keys, it delays the
// next one.
func (j *JWKS) end(ctx context.Context, fetch *jwksFetch, keys []verificationKey, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	defer close(fetch.done)
	j.report(ctx, fetch, err)
	j.last, j.fetch, fetch.err = err, nil, err
	missing := err != nil
	if err == nil {
		set := &keySet{keys: keys, fetched: fetch.began}
		for name := range fetch.asked {
			_, found := set.find(name)
			missing = missing || found == keyAbsent
		}
		j.set.Store(set)
	}
	if missing {
		j.closed = fetch.began.Add(jwksInterval)
	}
}

// load fetches the set. It refuses an empty one: an error page must not replace valid keys.
func (j *JWKS) load(ctx context.Context) ([]verificationKey, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, j.cfg.URL, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	j.cfg.Propagate(ctx, request.Header)
	response, err := j.client.Do(request)
	if err != nil {
		return nil, cause.WithoutURL(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxJWKS+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxJWKS {
		return nil, fmt.Errorf("more than %d bytes", maxJWKS)
	}
	return parseKeys(body)
}
