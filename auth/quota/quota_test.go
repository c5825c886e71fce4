package quota_test

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

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"commerce/auth/problem"
	"commerce/auth/quota"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

func TestMain(m *testing.M) {
	redis.SetLogger(connect.RedisLog{Log: slog.New(slog.DiscardHandler)}) // it reports every failed dial
	goleak.VerifyTestMain(m)
}

var refusal = &problem.Error{Code: problem.RateLimited}

// clock is a clock that only the test moves.
type clock struct{ ns atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(1_800_000_000, c.ns.Load()) }
func (c *clock) forward(d time.Duration) { c.ns.Add(int64(d)) }

func dial(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	client, err := connect.Redis(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

var names atomic.Int64

// newName is a name that no other test has, also where processes share a Redis.
func newName() string { return fmt.Sprintf("test%d_%d", os.Getpid(), names.Add(1)) }

// allowed uses a quota until it refuses the client, and returns how often.
func allowed(t *testing.T, q *quota.Quota, client string) (n int) {
	t.Helper()
	for q.Refuse(client, refusal) == nil {
		if n++; n > 10_000 {
			t.Fatal("no limit")
		}
		q.Use(t.Context(), client)
	}
	return n
}

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]quota.Rate{
		"off":           nil,
		"200/s":         {{Uses: 200, Per: time.Second}},
		"200/s,20000/h": {{Uses: 200, Per: time.Second}, {Uses: 20_000, Per: time.Hour}},
		"7/m, 1/h":      {{Uses: 7, Per: time.Minute}, {Uses: 1, Per: time.Hour}},
	} {
		got, err := quota.Parse(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v, %s", text, err, diff)
		}
	}
	for _, text := range []string{"", "on", "200", "200/", "/s", "0/s", "-1/s", "200/d", "200/s,", "1.5/s", "1000001/s", "off,1/s", "200/s/h"} {
		if got, err := quota.Parse(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

func TestQuota_AllowsTheUsesOfItsRateAndThenWaits(t *testing.T) {
	t.Parallel()
	var at clock
	q := quota.New(quota.Config{Name: "it", Now: at.now, Rates: []quota.Rate{{Uses: 10, Per: time.Second}, {Uses: 15, Per: time.Hour}}})
	if n := allowed(t, q, "a"); n != 10 {
		t.Errorf("%d uses at once, want 10", n)
	}
	refused := q.Refuse("a", refusal)
	if refused.RetryAfter != 100*time.Millisecond || refused.Budget != (problem.Budget{Name: "it", Uses: 10}) {
		t.Errorf("refused with %v, %+v", refused.RetryAfter, refused.Budget)
	}
	if n := allowed(t, q, "b"); n != 10 {
		t.Errorf("another client has %d uses, want 10", n)
	}
	at.forward(time.Second)
	if n := allowed(t, q, "a"); n != 5 {
		t.Errorf("%d more uses within the hour, want 5", n)
	}
	at.forward(time.Hour)
	if n := allowed(t, q, "a"); n != 10 {
		t.Errorf("%d uses after an hour, want 10", n)
	}
}

// Calls that were in flight when the limit was reached make the client wait longer.
func TestQuota_CountsUsesBeyondTheLimit(t *testing.T) {
	t.Parallel()
	var at clock
	q := quota.New(quota.Config{Now: at.now, Rates: []quota.Rate{{Uses: 10, Per: time.Second}}})
	for range 14 {
		q.Use(t.Context(), "a")
	}
	if wait := q.Refuse("a", refusal).RetryAfter; wait != 500*time.Millisecond {
		t.Errorf("after 4 uses too many the client waits %v, want 500ms", wait)
	}
}

func TestQuota_NoneHasNoLimit(t *testing.T) {
	t.Parallel()
	q := quota.New(quota.Config{})
	q.Use(t.Context(), "a")
	if q != nil || q.Refuse("a", refusal) != nil {
		t.Error("a quota without rates refuses")
	}
}

func TestQuota_IsSharedByInstances(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(testing.TB) string{"single": ephemeral.Redis, "cluster": ephemeral.Cluster} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := dial(t, url(t))
			c := quota.Config{Name: newName(), Redis: client, Timeout: time.Minute, Rates: []quota.Rate{{Uses: 40, Per: time.Hour}}}
			instances := []*quota.Quota{quota.New(c), quota.New(c)}
			var running sync.WaitGroup
			for i := range 40 {
				running.Go(func() { instances[i%2].Use(t.Context(), "a") })
			}
			running.Wait()
			for _, q := range instances {
				q.Use(t.Context(), "a") // learns what the other instance has counted
				if refused := q.Refuse("a", refusal); refused == nil || refused.RetryAfter > 5*time.Minute {
					t.Errorf("after 40 uses at two instances: %v", refused)
				}
			}
			if restarted := quota.New(c); allowed(t, restarted, "a") != 1 {
				t.Error("an instance that starts later does not continue the count")
			}
		})
	}
}

func TestQuota_LeavesNothingInRedis(t *testing.T) {
	t.Parallel()
	client, name := dial(t, ephemeral.Redis(t)), newName()
	q := quota.New(quota.Config{Name: name, Redis: client, Timeout: time.Minute, Rates: []quota.Rate{{Uses: 2, Per: time.Second}, {Uses: 100, Per: time.Hour}}})
	q.Use(t.Context(), "192.0.2.1")
	keys := client.Keys(t.Context(), "limit:"+name+":*").Val()
	if len(keys) != 1 || strings.Contains(keys[0], "192.0.2.1") {
		t.Fatalf("keys %q", keys)
	}
	if left := client.PTTL(t.Context(), keys[0]).Val(); left <= 30*time.Second || left > 36*time.Second {
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
			q := quota.New(quota.Config{
				Name: "it", Redis: dial(t, url), Now: at.now, Log: slog.New(slog.NewTextHandler(&log, nil)),
				Rates: []quota.Rate{{Uses: 10, Per: time.Second}},
			})
			for range 3 {
				if n := allowed(t, q, "a"); n != 10 {
					t.Errorf("%d uses, want 10", n)
				}
				at.forward(2 * time.Minute)
			}
			if n := strings.Count(log.String(), "level=WARN"); n != 1 {
				t.Errorf("%d warnings, want 1:\n%s", n, log.String())
			}
		})
	}
}

func TestQuota_CountsAClientThatHasDisconnected(t *testing.T) {
	t.Parallel()
	client, name := dial(t, ephemeral.Redis(t)), newName()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	quota.New(quota.Config{Name: name, Redis: client, Timeout: time.Minute, Rates: []quota.Rate{{Uses: 1, Per: time.Hour}}}).Use(ctx, "a")
	if n := len(client.Keys(t.Context(), "limit:"+name+":*").Val()); n != 1 {
		t.Errorf("%d counts in Redis", n)
	}
}

// Anyone with an IPv6 network has more addresses than memory could hold. The bound is 20,000
// clients at about 400 bytes.
func TestQuota_RemembersABoundedNumberOfClients(t *testing.T) {
	q := quota.New(quota.Config{Rates: []quota.Rate{{Uses: 200, Per: time.Second}, {Uses: 20_000, Per: time.Hour}}})
	before := heap()
	for i := range 1_000_000 {
		q.Use(t.Context(), fmt.Sprintf("2001:db8:%x:%x::/64", i>>16, i&0xffff))
	}
	if grown := int64(heap()) - int64(before); grown > 16<<20 {
		t.Errorf("a million clients take %d MiB, want at most 16", grown>>20)
	}
	runtime.KeepAlive(q)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
