package limit_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"commerce/auth/limit"
	"commerce/auth/problem"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

func TestMain(m *testing.M) {
	redis.SetLogger(connect.RedisLog{Log: slog.New(slog.DiscardHandler)}) // it reports every failed dial
	goleak.VerifyTestMain(m)
}

var refusal = &problem.Error{Code: problem.RateLimited}

type clock struct{ ns atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(1_800_000_000, c.ns.Load()) }
func (c *clock) forward(d time.Duration) { c.ns.Add(int64(d)) }

func dial(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	client := assert.Must(connect.Redis(url, ephemeral.PatientRedis))(t)
	t.Cleanup(func() { client.Close() })
	return client
}

var names atomic.Int64

// newName is a name that no other test has, also where processes share a Redis.
func newName() string { return fmt.Sprintf("test%d_%d", os.Getpid(), names.Add(1)) }

// inRedis returns the settings of a limit that only this test has in a Redis, and its client.
func inRedis(t *testing.T, url string, rates ...limit.Rate) (limit.Config, redis.UniversalClient) {
	t.Helper()
	client := dial(t, url)
	return limit.Config{Name: newName(), Redis: client, Timeout: time.Minute, Rates: rates}, client
}

func keys(t *testing.T, c limit.Config) []string {
	t.Helper()
	return c.Redis.Keys(t.Context(), "limit:"+c.Name+":*").Val()
}

// allowed uses a quota until it refuses the client, and returns how often.
func allowed(t *testing.T, q *limit.Quota, client string) (n int) {
	t.Helper()
	for q.Refuse(client, refusal) == nil {
		n++
		assert.Require(t, n <= 10_000, "no limit")
		q.Use(t.Context(), client)
	}
	return n
}

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]limit.Rate{
		"off":           nil,
		"200/s":         {{Uses: 200, Per: time.Second}},
		"200/s,20000/h": {{Uses: 200, Per: time.Second}, {Uses: 20_000, Per: time.Hour}},
		"7/m, 1/h":      {{Uses: 7, Per: time.Minute}, {Uses: 1, Per: time.Hour}},
	} {
		got, err := limit.Parse(text)
		diff := cmp.Diff(want, got)
		assert.That(t, err == nil && diff == "", "%q: %v, %s", text, err, diff)
	}
	for _, text := range []string{"", "on", "200", "200/", "/s", "0/s", "-1/s", "200/d", "200/s,", "1.5/s", "1000001/s", "off,1/s", "200/s/h"} {
		got, err := limit.Parse(text)
		assert.That(t, err != nil, "%q was read as %v", text, got)
	}
}

func TestQuota_AllowsTheUsesOfItsRateAndThenWaits(t *testing.T) {
	t.Parallel()
	var at clock
	q := limit.NewQuota(limit.Config{Name: "it", Now: at.now, Rates: []limit.Rate{{Uses: 10, Per: time.Second}, {Uses: 15, Per: time.Hour}}})
	assert.Equal(t, allowed(t, q, "a"), 10, "uses at once")
	refused := q.Refuse("a", refusal)
	assert.That(t, refused.RetryAfter == 100*time.Millisecond && refused.Budget == (problem.Budget{Name: "it", Uses: 10}),
		"refused with %v, %+v", refused.RetryAfter, refused.Budget)
	n := allowed(t, q, "b")
	assert.That(t, n == 10, "another client has %d uses, want 10", n)
	at.forward(time.Second)
	assert.Equal(t, allowed(t, q, "a"), 5, "more uses within the hour")
	if refused := q.Refuse("a", refusal); refused.RetryAfter < time.Minute || refused.Budget.Uses != 15 {
		t.Errorf("refused for the hour with %v, %+v", refused.RetryAfter, refused.Budget)
	}
	at.forward(time.Hour)
	assert.Equal(t, allowed(t, q, "a"), 10, "uses after an hour")
}

// Calls that were in flight when the limit was reached make the client wait longer.
func TestQuota_CountsUsesBeyondTheLimit(t *testing.T) {
	t.Parallel()
	var at clock
	q := limit.NewQuota(limit.Config{Now: at.now, Rates: []limit.Rate{{Uses: 10, Per: time.Second}}})
	for range 14 {
		q.Use(t.Context(), "a")
	}
	wait := q.Refuse("a", refusal).RetryAfter
	assert.That(t, wait == 500*time.Millisecond, "after 4 uses too many the client waits %v, want 500ms", wait)
}

func TestQuota_RefusedHasItsBudgetAfterTheWait(t *testing.T) {
	t.Parallel()
	var at clock
	q := limit.NewQuota(limit.Config{Name: "it", Now: at.now, Rates: []limit.Rate{{Uses: 10, Per: time.Second}, {Uses: 15, Per: time.Hour}}})
	if refused := q.Refused("unknown", refusal); refused.Budget != (problem.Budget{Name: "it", Uses: 10}) || refused.RetryAfter != 0 {
		t.Errorf("an unknown client: %v, %+v", refused.RetryAfter, refused.Budget)
	}
	for range 20 {
		q.Use(t.Context(), "a")
	}
	at.forward(time.Hour)
	if refused := q.Refused("a", refusal); q.Refuse("a", refusal) != nil || refused.Budget != (problem.Budget{Name: "it", Uses: 15}) || refused.RetryAfter != 0 {
		t.Errorf("after the wait: %v, %+v", refused.RetryAfter, refused.Budget)
	}
}

// Each of the 65,536 clients of an IPv6 /48 network could otherwise use the whole limit.
func TestQuota_LimitsASiteToThreeClients(t *testing.T) {
	t.Parallel()
	var at clock
	q := limit.NewQuota(limit.Config{Name: "it", Now: at.now, Rates: []limit.Rate{{Uses: 10, Per: time.Hour}}})
	uses := 0
	for i := range 5 {
		uses += allowed(t, q, fmt.Sprintf("2001:db8:1:%x::/64", i))
	}
	assert.Equal(t, uses, 30, "uses of a site")
	unused := "2001:db8:1:ff::/64"
	for _, refused := range []*problem.Error{q.Refuse(unused, refusal), q.Refused(unused, refusal)} {
		assert.That(t, refused != nil && refused.RetryAfter == time.Hour/30 && refused.Budget == (problem.Budget{Name: "it", Uses: 30}), "refused with %+v", refused)
	}
	for _, other := range []string{"2001:db8:2:1::/64", "192.0.2.1"} {
		assert.Equal(t, allowed(t, q, other), 10, "uses of %s", other)
	}
}

// A quota of bytes: a call counts many at once, and no later one takes back by how much it has exceeded the limit.
func TestQuota_CountsManyUsesAtOnce(t *testing.T) {
	t.Parallel()
	c, _ := inRedis(t, ephemeral.Redis(t), limit.Rate{Uses: 20_000_000, Per: time.Hour})
	c.Most = 100_000
	alone := c
	alone.Redis = nil
	for name, c := range map[string]limit.Config{"alone": alone, "in Redis": c} {
		client := name + "'s"
		for i, q := range []*limit.Quota{limit.NewQuota(c), limit.NewQuota(c)} {
			if c.Redis == nil && i == 1 {
				continue // it would know nothing of the first
			}
			for range 400 * (1 - i) {
				q.UseN(t.Context(), client, 100_000)
			}
			q.UseN(t.Context(), client, 0)
			q.UseN(t.Context(), client, 1)
			refused := q.Refuse(client, refusal)
			assert.That(t, refused != nil && refused.RetryAfter > 58*time.Minute && refused.RetryAfter <= time.Hour+time.Second,
				"%s: after twice the limit: %v", name, refused)
		}
	}
	q := limit.NewQuota(c)
	q.UseN(t.Context(), "2001:db8:1:2::/64", 19_999_999)
	assert.That(t, q.Refuse("2001:db8:1:2::/64", refusal) == nil, "one use before the limit is refused")
	q.UseN(t.Context(), "2001:db8:1:3::/64", 19_999_999)
	assert.That(t, q.Refuse("2001:db8:1:4::/64", refusal) == nil, "a site has no more than one client")
}

func TestQuota_NoneHasNoLimit(t *testing.T) {
	t.Parallel()
	q := limit.NewQuota(limit.Config{})
	q.Use(t.Context(), "a")
	assert.That(t, q == nil && q.Refuse("a", refusal) == nil && q.Refused("a", refusal) == refusal,
		"a quota without rates refuses")
}

func TestQuota_IsSharedByInstances(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(testing.TB) string{"single": ephemeral.Redis, "cluster": ephemeral.Cluster} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := inRedis(t, url(t), limit.Rate{Uses: 40, Per: time.Hour})
			instances := []*limit.Quota{limit.NewQuota(c), limit.NewQuota(c)}
			var running sync.WaitGroup
			for i := range 40 {
				running.Go(func() { instances[i%2].Use(t.Context(), "a") })
			}
			running.Wait()
			for _, q := range instances {
				q.Use(t.Context(), "a") // learns what the other instance has counted
				refused := q.Refuse("a", refusal)
				assert.That(t, refused != nil && refused.RetryAfter <= 5*time.Minute, "after 40 uses at two instances: %v", refused)
			}
			restarted := limit.NewQuota(c)
			assert.That(t, allowed(t, restarted, "a") == 1, "an instance that starts later does not continue the count")
		})
	}
}

func TestQuota_AnnouncesTheRateThatRefusesInRedis(t *testing.T) {
	t.Parallel()
	c, _ := inRedis(t, ephemeral.Redis(t), limit.Rate{Uses: 200, Per: time.Second}, limit.Rate{Uses: 3, Per: time.Hour})
	allowed(t, limit.NewQuota(c), "a")
	later := limit.NewQuota(c) // has only the count in Redis
	later.Use(t.Context(), "a")
	assert.That(t, later.Refuse("a", refusal) != nil && later.Refused("a", refusal).Budget.Uses == 3,
		"refused with %+v", later.Refused("a", refusal).Budget)
}

// A failover may be to a server whose clock is behind.
func TestQuota_DoesNotWaitForAClockOfRedisThatWasAhead(t *testing.T) {
	t.Parallel()
	c, client := inRedis(t, ephemeral.Redis(t), limit.Rate{Uses: 200, Per: time.Second}, limit.Rate{Uses: 20_000, Per: time.Hour})
	limit.NewQuota(c).Use(t.Context(), "a")
	key := keys(t, c)[0]
	ahead := time.Now().Add(10 * time.Hour).UnixMilli()
	assert.NoError(t, client.HSet(t.Context(), key, "1000", ahead, "3600000", ahead).Err())
	q := limit.NewQuota(c)
	q.Use(t.Context(), "a")
	wait := q.Refused("a", refusal).RetryAfter
	assert.That(t, wait <= 200*time.Second, "the client waits %v, want at most the time of 1,000 uses", wait)
	left := client.PTTL(t.Context(), key).Val()
	assert.That(t, left <= time.Hour+200*time.Second, "the key expires in %v", left)
}

func TestQuota_LeavesNothingInRedis(t *testing.T) {
	t.Parallel()
	c, client := inRedis(t, ephemeral.Redis(t), limit.Rate{Uses: 2, Per: time.Second}, limit.Rate{Uses: 100, Per: time.Hour})
	limit.NewQuota(c).Use(t.Context(), "192.0.2.1")
	left := keys(t, c)
	assert.Require(t, len(left) == 1 && !strings.Contains(left[0], "192.0.2.1"), "keys %q", left)
	if left := client.PTTL(t.Context(), left[0]).Val(); left <= 30*time.Second || left > 36*time.Second {
		t.Errorf("the key expires in %v, want 36s: one use of 100 in an hour", left)
	}
}

func TestQuota_CountsAloneWithoutRedisAndLogsOnce(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t)
	old := ephemeral.AsUser(t, server.URL, "user service on ~cart:* +@all", "service")
	down := ephemeral.StartRedis(t)
	down.Kill()
	for name, url := range map[string]string{"down": down.URL, "an older users.conf": old} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var at clock
			var log bytes.Buffer
			q := limit.NewQuota(limit.Config{
				Name: "it", Redis: dial(t, url), Now: at.now, Log: slog.New(slog.NewTextHandler(&log, nil)),
				Rates: []limit.Rate{{Uses: 10, Per: time.Second}},
			})
			for range 3 {
				assert.Equal(t, allowed(t, q, "a"), 10, "uses")
				at.forward(2 * time.Minute)
			}
			n := strings.Count(log.String(), "level=WARN")
			assert.That(t, n == 1, "%d warnings, want 1:\n%s", n, log.String())
		})
	}
}

type sentScripts struct{ atomic.Int64 }

func (*sentScripts) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *sentScripts) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.FullName() == limit.ScriptName {
			s.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (*sentScripts) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// setBack returns the time d later on a clock that was set back by an hour meanwhile. Only
// time.Now makes times whose wall clock and monotonic clock differ, so it writes the seconds of
// the wall clock, which begin at bit 30 of the first word.
func setBack(t time.Time, d time.Duration) time.Time {
	t = t.Add(d)
	*(*uint64)(unsafe.Pointer(&t)) -= uint64(time.Hour/time.Second) << 30
	return t
}

func TestQuota_PausesAsLongWhenItsClockIsSetBack(t *testing.T) {
	t.Parallel()
	down := ephemeral.StartRedis(t)
	down.Kill()
	client, sent := dial(t, down.URL), &sentScripts{}
	client.AddHook(sent)
	began := time.Now()
	now := began
	q := limit.NewQuota(limit.Config{
		Redis: client, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler), Rates: []limit.Rate{{Uses: 10, Per: time.Second}},
	})
	for _, at := range []struct {
		now  time.Time
		want int64
	}{{began, 1}, {setBack(began, 500*time.Millisecond), 1}, {setBack(began, 2*time.Second), 2}} {
		now = at.now
		q.Use(t.Context(), "a")
		assert.That(t, sent.Load() == at.want, "%v later Redis was asked %d times, want %d", at.now.Sub(began), sent.Load(), at.want)
	}
}

func TestQuota_CountsAClientThatHasDisconnected(t *testing.T) {
	t.Parallel()
	c, _ := inRedis(t, ephemeral.Redis(t), limit.Rate{Uses: 1, Per: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	limit.NewQuota(c).Use(ctx, "a")
	assert.Equal(t, len(keys(t, c)), 1, "counts in Redis")
}

// Anyone with an IPv6 network has more addresses than memory could hold, and can make up cart
// tokens. The bound is 20,000 clients at about 230 bytes.
func TestLimits_RememberABoundedNumberOfClients(t *testing.T) {
	quota := limit.NewQuota(limit.Config{Rates: []limit.Rate{{Uses: 200, Per: time.Second}, {Uses: 20_000, Per: time.Hour}}})
	window := limit.NewWindow(limit.Config{Rates: threeInTenMinutes})
	for name, use := range map[string]func(client string){
		"quota": func(client string) { quota.Use(t.Context(), client) },
		"window": func(client string) {
			window.Take(t.Context(), client+" 1:g:digest-of-22-characters", "0123456789abcdef", refusal)
		},
	} {
		before := heap()
		for i := range 500_000 {
			use(fmt.Sprintf("2001:db8:%x:%x::/64", i>>16, i&0xffff))
		}
		grown := int64(heap()) - int64(before)
		assert.That(t, grown <= 16<<20, "half a million clients of a %s take %d MiB, want at most 16", name, grown>>20)
	}
	runtime.KeepAlive(quota)
	runtime.KeepAlive(window)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
