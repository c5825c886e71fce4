// Package quota limits how often each client may do something, such as create carts. All
// instances share the counts in Redis. While an instance cannot reach Redis, it counts alone.
//
// A use counts after it has happened, so that requests that use nothing never wait for Redis.
// Uses beyond the limit also count, and make the client wait longer. So a client can exceed its
// limit only by the calls that are in flight when it reaches the limit. Over time, it never
// exceeds the limit.
package quota

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/bounded"
	"commerce/auth/problem"
)

const (
	// maxClients is the number of clients that an instance remembers. Redis remembers all
	// clients, so the next use of a forgotten client finds its count there.
	maxClients = 20_000

	// defaultTimeout limits the wait for Redis. If Redis does not count a use, this process
	// still does.
	defaultTimeout = 50 * time.Millisecond

	// After a failure, an instance counts alone for a pause, so that not every call waits while
	// Redis is down. The pause is longer after a permission error, which takes longer to fix
	// than a lost connection.
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
	clients *bounded.Cache[string, *uses]

	failing atomic.Bool
	resume  atomic.Pointer[time.Time] // when Redis is asked again; nil: now
}

// Config configures a Quota.
type Config struct {
	Name  string // of the limit, such as "create"; part of the keys in Redis
	Rates []Rate // all of them apply; none: no limit

	Redis   redis.UniversalClient // nil: each instance counts alone
	Timeout time.Duration         // of a count in Redis; default 50 ms
	Now     func() time.Time      // default time.Now
	Log     *slog.Logger          // default slog.Default
}

// New returns a Quota, or nil if c has no rates.
func New(c Config) *Quota {
	if len(c.Rates) == 0 {
		return nil
	}
	q := &Quota{
		name: c.Name, rates: c.Rates, redis: c.Redis, timeout: c.Timeout, now: c.Now, log: c.Log,
		clients: bounded.New[string, *uses](maxClients, nil),
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

// Refuse returns a copy of refusal with the time that the client must wait before its next use.
// It returns nil if the client need not wait, as far as this instance knows. It does no I/O.
func (q *Quota) Refuse(client string, refusal *problem.Error) *problem.Error {
	if q == nil {
		return nil
	}
	wait, rate := q.wait(client)
	if wait <= 0 {
		return nil
	}
	return q.refused(refusal.After(wait), rate)
}

// Refused is Refuse for a call that was refused a moment ago. It also returns the refusal if the
// wait has ended since then, with 0 as the time to wait.
func (q *Quota) Refused(client string, refusal *problem.Error) *problem.Error {
	if q == nil {
		return refusal
	}
	wait, rate := q.wait(client)
	return q.refused(refusal.After(max(wait, 0)), rate)
}

// refused adds the budget of a rate to a copy of a refusal.
func (q *Quota) refused(refusal *problem.Error, rate int) *problem.Error {
	refusal.Budget = problem.Budget{Name: q.name, Uses: q.rates[rate].Uses}
	return refusal
}

// wait returns how long a client must wait, and the index of the rate that it must wait for.
func (q *Quota) wait(client string) (time.Duration, int) {
	u, ok := q.clients.Get(client)
	if !ok {
		return 0, 0
	}
	return u.wait(q.now())
}

// Use counts one use of a client. It waits for Redis up to the timeout, even if ctx has ended,
// so that a client cannot avoid the count by disconnecting.
func (q *Quota) Use(ctx context.Context, client string) {
	if q == nil {
		return
	}
	u := q.usesOf(client)
	u.count(q.rates, q.now())
	if wait, rate := q.countInRedis(context.WithoutCancel(ctx), client, 1); wait > 0 {
		u.delay(q.now().Add(wait), rate)
	}
}

// Ask learns from Redis what other instances have counted of a client, for uses that are rare. It
// waits for Redis like Use.
func (q *Quota) Ask(ctx context.Context, client string) {
	if q == nil {
		return
	}
	if wait, rate := q.countInRedis(context.WithoutCancel(ctx), client, 0); wait > 0 {
		q.usesOf(client).delay(q.now().Add(wait), rate)
	}
}

func (q *Quota) usesOf(client string) *uses {
	return q.clients.GetOrPut(client, func() *uses {
		return &uses{whole: make([]time.Time, len(q.rates))}
	})
}

// countInRedis counts uses for all instances. It returns how long the client must wait, and the
// index of the rate that it must wait for. The wait is 0 also if Redis does not answer.
func (q *Quota) countInRedis(ctx context.Context, client string, n int) (time.Duration, int) {
	now := q.now()
	if resume := q.resume.Load(); q.redis == nil || resume != nil && now.Before(*resume) {
		return 0, 0
	}
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	wait, rate, err := runScript(ctx, q.redis, key(q.name, client), q.args(n))
	q.report(ctx, now, err)
	return time.Duration(wait) * time.Millisecond, rate
}

func (q *Quota) args(n int) []any {
	args := make([]any, 1, 1+2*len(q.rates))
	args[0] = n
	for _, r := range q.rates {
		interval := strconv.FormatFloat(float64(r.Per.Milliseconds())/float64(r.Uses), 'f', -1, 64)
		args = append(args, r.Per.Milliseconds(), interval)
	}
	return args
}

// key returns the key of a client. It contains a digest, so that Redis does not show who the
// clients are.
func key(name, client string) string {
	sum := sha256.Sum256([]byte(client))
	return "limit:" + name + ":" + hex.EncodeToString(sum[:digestSize])
}

// report logs the first failure and the first success after it. After each failure, it starts a
// pause.
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
	resume := at.Add(wait) // not in Unix time, so that setting the clock changes nothing
	q.resume.Store(&resume)
}

// uses are the uses of one client that this instance has seen.
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

func (u *uses) count(rates []Rate, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, r := range rates {
		var wait time.Duration
		if u.whole[i], wait = r.use(u.whole[i], now); wait > 0 {
			u.extend(now.Add(wait), i)
		}
	}
}

// delay makes the client wait for a rate at least until a time.
func (u *uses) delay(until time.Time, rate int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.extend(until, rate)
}

// extend is delay. The caller holds mu.
func (u *uses) extend(until time.Time, rate int) {
	if u.refused.Before(until) {
		u.refused, u.rate = until, rate
	}
}
