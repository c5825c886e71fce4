// Package quota limits how often each client may do something, such as create carts. All
// instances count together, in Redis. An instance that cannot reach Redis counts its own
// clients until it can.
//
// Uses are counted after they have happened, so that a client that does nothing of the kind
// never waits for a count. Each use counts, even one beyond the limit: then the client waits
// longer. So a client exceeds its limit only by the calls that are in flight when it reaches
// the limit, and never over time.
package quota

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/redis/go-redis/v9"

	"commerce/auth/problem"
)

const (
	// maxClients is how many clients an instance remembers. Redis remembers the others, and
	// the next use of such a client finds its count there.
	maxClients = 20_000

	// defaultTimeout bounds the wait for Redis. A use that is not counted there still counts in
	// this process.
	defaultTimeout = 50 * time.Millisecond

	// After a failure an instance counts alone for a while, so that its calls do not all wait
	// for a Redis that is down. Missing rights are not restored as quickly as a connection.
	pause      = time.Second
	longPause  = time.Minute
	digestSize = 16 // bytes
)

// Quota limits the uses of each client. It is safe for concurrent use. A nil *Quota has no
// limit.
type Quota struct {
	name    string
	rates   []Rate
	redis   redis.UniversalClient
	timeout time.Duration
	now     func() time.Time
	log     *slog.Logger
	clients *otter.Cache[string, *uses]

	failing atomic.Bool
	resume  atomic.Int64 // Unix ms until which Redis is not asked
}

// Config configures a Quota.
type Config struct {
	Name  string // of what is limited, such as "create"; part of the keys in Redis
	Rates []Rate // a client must keep to all of them; none: no limit

	Redis   redis.UniversalClient // nil: each instance counts alone
	Timeout time.Duration         // of a count in Redis; default 50 ms
	Now     func() time.Time      // default time.Now
	Log     *slog.Logger          // default slog.Default
}

// New returns a Quota, nil if the config has no rates.
func New(c Config) *Quota {
	if len(c.Rates) == 0 {
		return nil
	}
	q := &Quota{
		name: c.Name, rates: c.Rates, redis: c.Redis, timeout: c.Timeout, now: c.Now, log: c.Log,
		clients: otter.Must(&otter.Options[string, *uses]{MaximumSize: maxClients}),
	}
	if q.timeout == 0 {
		q.timeout = defaultTimeout
	}
	if q.now == nil {
		q.now = time.Now
	}
	if q.log == nil {
		q.log = slog.Default()
	}
	return q
}

// Refuse returns a copy of refusal that says how long the client must wait for its next use;
// nil if it need not wait, as far as this instance knows. It does no I/O.
func (q *Quota) Refuse(client string, refusal *problem.Error) *problem.Error {
	if q == nil {
		return nil
	}
	u, ok := q.clients.GetIfPresent(client)
	if !ok {
		return nil
	}
	wait := u.wait(q.now())
	if wait <= 0 {
		return nil
	}
	refused := refusal.After(wait)
	refused.Budget = problem.Budget{Name: q.name, Uses: q.rates[0].Uses}
	return refused
}

// Use counts one use of a client. It waits a limited time for Redis, even if ctx has ended: a
// client must not avoid the count by disconnecting.
func (q *Quota) Use(ctx context.Context, client string) {
	if q == nil {
		return
	}
	u, _ := q.clients.ComputeIfAbsent(client, func() (*uses, bool) {
		return &uses{whole: make([]time.Time, len(q.rates))}, false
	})
	u.count(q.rates, q.now())
	if wait := q.countInRedis(context.WithoutCancel(ctx), client); wait > 0 {
		u.delay(q.now().Add(wait))
	}
}

//go:embed quota.lua
var source string

// script counts in one round trip and one key, also on a cluster. redis_rate would need a
// round trip for each rate, and does not count what is beyond the limit.
var script = redis.NewScript(source)

// countInRedis counts a use for all instances and returns how long the client must wait; 0
// also if Redis does not answer.
func (q *Quota) countInRedis(ctx context.Context, client string) time.Duration {
	now := q.now()
	if q.redis == nil || now.UnixMilli() < q.resume.Load() {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	wait, err := script.Run(ctx, q.redis, []string{key(q.name, client)}, q.args()...).Int64()
	q.report(ctx, now, err)
	return time.Duration(wait) * time.Millisecond
}

func (q *Quota) args() []any {
	args := make([]any, 0, 2*len(q.rates))
	for _, r := range q.rates {
		interval := strconv.FormatFloat(float64(r.Per.Milliseconds())/float64(r.Uses), 'f', -1, 64)
		args = append(args, r.Per.Milliseconds(), interval)
	}
	return args
}

// key is made of the client's digest, so that Redis does not show who the clients are.
func key(name, client string) string {
	sum := sha256.Sum256([]byte(client))
	return "limit:" + name + ":" + hex.EncodeToString(sum[:digestSize])
}

// report logs the first failure and the first success after it, and pauses after a failure.
func (q *Quota) report(ctx context.Context, at time.Time, err error) {
	if err == nil {
		if q.failing.CompareAndSwap(true, false) {
			q.log.InfoContext(ctx, "limits are counted in Redis again", "limit", q.name)
		}
		return
	}
	if q.failing.CompareAndSwap(false, true) {
		q.log.WarnContext(ctx, "limits are counted by each instance alone, because Redis does not count them", "limit", q.name, "err", err)
	}
	wait := pause
	if redis.IsPermissionError(err) {
		wait = longPause
	}
	q.resume.Store(at.Add(wait).UnixMilli())
}

// uses are the uses of one client that this instance has seen.
type uses struct {
	mu      sync.Mutex
	whole   []time.Time // by rate; see Rate.use
	refused time.Time   // until when the client must wait
}

func (u *uses) wait(now time.Time) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.refused.Sub(now)
}

func (u *uses) count(rates []Rate, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, r := range rates {
		var wait time.Duration
		if u.whole[i], wait = r.use(u.whole[i], now); u.refused.Before(now.Add(wait)) {
			u.refused = now.Add(wait)
		}
	}
}

// delay makes the client wait at least until a time.
func (u *uses) delay(until time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.refused.Before(until) {
		u.refused = until
	}
}
