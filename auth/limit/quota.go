// Package limit limits how often each client may do something, such as create carts, and how many
// operations run at the same time. All instances share the counts of uses in Redis. While an
// instance cannot reach Redis, it counts alone.
//
// A use of a Quota counts after it has happened, so that requests that use nothing never wait for Redis.
// Uses beyond the limit also count, and make the client wait longer. So a client can exceed its
// limit only by the calls that are in flight when it reaches the limit. Over time, it never
// exceeds the limit. A use of a Window counts before its client learns of it.
package limit

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/bounded"
	"commerce/auth/problem"
)

// maxClients is the number of clients that an instance remembers. Redis remembers all
// clients, so the next use of a forgotten client finds its count there.
const maxClients = 20_000

// siteFactor is how many times the uses of a client the clients of one site may have in all. A site is
// an IPv6 /48 network, which has 65,536 clients, and may belong to one person or to a carrier.
const siteFactor = 3

// What a client may exceed its limit by, with calls that are in flight: so many, and so many periods. Beyond them, a
// time in Redis is that of a clock that was ahead.
const maxLate, maxLatePeriods = 1000, 4

// Quota limits each client and each site. It is safe for concurrent use. nil has no limit.
type Quota struct {
	shared
	sites   *Quota // nil in that of the sites
	clients *bounded.Cache[string, *uses]
	args    []any // of the script: for each rate its period, the time in which a use is restored, and the bound of times, in ms
}

type Config struct {
	Name  string // of the limit, such as "create"; part of the keys in Redis
	Rates []Rate // all of them apply; none: no limit
	Most  int64  // uses that one call can count; default 1

	Redis   redis.UniversalClient // nil: each instance counts alone
	Timeout time.Duration         // of a count in Redis; default 50 ms
	Now     func() time.Time      // default time.Now
	Log     *slog.Logger          // default slog.Default
}

// NewQuota returns a Quota, or nil if c has no rates.
func NewQuota(c Config) *Quota {
	if len(c.Rates) == 0 {
		return nil
	}
	q := newQuota(c)
	c.Rates = ofSite(c.Rates)
	q.sites = newQuota(c)
	return q
}

func newQuota(c Config) *Quota {
	q := &Quota{clients: bounded.New[string, *uses](maxClients, nil)}
	for _, r := range c.Rates {
		period := float64(r.Per.Milliseconds())
		interval := period / float64(r.Uses)
		late := maxLate * float64(max(c.Most, 1)) * interval
		q.args = append(q.args, r.Per.Milliseconds(), interval, period+min(late, maxLatePeriods*period))
	}
	q.configure(c)
	return q
}

// Refuse returns a copy of refusal with the time that the client must wait before its next use.
// It returns nil if the client need not wait, as far as this instance knows. It does no I/O.
func (q *Quota) Refuse(client string, refusal *problem.Error) *problem.Error {
	if q == nil {
		return nil
	}
	if wait, rate := q.wait(client); wait > 0 {
		return q.refused(refusal, wait, rate)
	}
	if site := siteOf(client); site != "" {
		return q.sites.Refuse(site, refusal)
	}
	return nil
}

// siteOf returns the site of a client, "" if it has none.
func siteOf(client string) string {
	network, err := netip.ParsePrefix(client)
	if err != nil || network.Bits() != 64 {
		return ""
	}
	return netip.PrefixFrom(network.Addr(), 48).Masked().String()
}

// Refused is Refuse for a call that was refused a moment ago. It also returns the refusal if the
// wait has ended since then, with 0 as the time to wait.
func (q *Quota) Refused(client string, refusal *problem.Error) *problem.Error {
	if q == nil {
		return refusal
	}
	if again := q.Refuse(client, refusal); again != nil {
		return again
	}
	_, rate := q.wait(client)
	return q.refused(refusal, 0, rate)
}

// wait returns how long a client must wait, and the index of the rate that it must wait for.
func (q *Quota) wait(client string) (time.Duration, int) {
	if u, ok := q.clients.Get(client); ok {
		return u.wait(q.cfg.Now())
	}
	return 0, 0
}

// Use counts one use of a client. It waits for Redis up to the timeout, even if ctx has ended,
// so that a client cannot avoid the count by disconnecting.
func (q *Quota) Use(ctx context.Context, client string) { q.UseN(ctx, client, 1) }

// UseN is Use for n uses.
func (q *Quota) UseN(ctx context.Context, client string, n int64) {
	if q == nil || n <= 0 {
		return
	}
	u := q.clients.GetOrPut(client, func() *uses { return &uses{whole: make([]time.Time, len(q.cfg.Rates))} })
	u.count(q.cfg.Rates, q.cfg.Now(), n)
	if wait, rate, ok := q.run(context.WithoutCancel(ctx), rates, client, append([]any{n}, q.args...)); ok && wait > 0 {
		u.mu.Lock()
		u.delay(q.cfg.Now().Add(time.Duration(wait)*time.Millisecond), int(rate))
		u.mu.Unlock()
	}
	if site := siteOf(client); site != "" {
		q.sites.UseN(ctx, site, n)
	}
}

type uses struct {
	mu      sync.Mutex
	whole   []time.Time // by rate; see Rate.use
	refused time.Time   // until when the client must wait
	rate    int         // index of the rate that it must wait for
}

// wait returns how long the client must wait, and the index of the rate that it must wait for,
// or had to wait for the last time.
func (u *uses) wait(now time.Time) (time.Duration, int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.refused.Sub(now), u.rate
}

func (u *uses) count(rates []Rate, now time.Time, n int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, r := range rates {
		var wait time.Duration
		if u.whole[i], wait = r.use(u.whole[i], now, n); wait > 0 {
			u.delay(now.Add(wait), i)
		}
	}
}

// delay makes the client wait for a rate at least until a time. The caller holds mu.
func (u *uses) delay(until time.Time, rate int) {
	if u.refused.Before(until) {
		u.refused, u.rate = until, rate
	}
}
