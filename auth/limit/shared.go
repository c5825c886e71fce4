package limit

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/problem"
	"commerce/auth/script"
)

const (
	// defaultTimeout limits the wait for Redis. What that does not count, this process does.
	defaultTimeout = 50 * time.Millisecond

	// After a failure, an instance counts alone for a pause, so that not every call waits while
	// Redis is down. The pause is longer after a permission error, which takes longer to fix
	// than a lost connection.
	pause      = time.Second
	longPause  = time.Minute
	digestSize = 16 // bytes
)

type shared struct {
	cfg    Config
	resume atomic.Pointer[time.Time] // when Redis is asked again after a failure; nil if it answered
}

func (s *shared) configure(c Config) {
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Timeout, c.Log = cmp.Or(c.Timeout, defaultTimeout), cmp.Or(c.Log, slog.Default())
	s.cfg = c
}

// The scripts count in one round trip and one key, also on a cluster. redis_rate would need a
// round trip for each rate, and does not count what is beyond the limit.
var (
	//go:embed quota.lua
	quotaSource string
	//go:embed window.lua
	windowSource string

	rates  = script.New(ScriptName, quotaSource)
	window = script.New(ScriptName, windowSource)
)

// ScriptName is the name of the scripts in metrics and traces.
const ScriptName = "limit"

// run runs a script for a client. It returns the two numbers of its reply. ok is false if Redis does not
// answer, or is not asked during a pause.
func (s *shared) run(ctx context.Context, what script.Script, client string, args []any) (first, second int64, ok bool) {
	now := s.cfg.Now()
	if resume := s.resume.Load(); s.cfg.Redis == nil || resume != nil && now.Before(*resume) {
		return 0, 0, false
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	reply, err := what.Run(ctx, s.cfg.Redis, script.Repeatable, []string{key(s.cfg.Name, client)}, args...).Int64Slice()
	if err == nil && len(reply) != 2 {
		err = fmt.Errorf("the script of limits replied %v", reply)
	}
	s.report(ctx, now, err)
	if err != nil {
		return 0, 0, false
	}
	return reply[0], reply[1], true
}

// key contains a digest, so that Redis does not show who the clients are.
func key(name, client string) string {
	sum := sha256.Sum256([]byte(client))
	return "limit:" + name + ":" + hex.EncodeToString(sum[:digestSize])
}

// report logs the first failure and the first success after it. Each failure starts a pause.
func (s *shared) report(ctx context.Context, at time.Time, err error) {
	if err == nil {
		// A call that began before the failure says nothing about the time after it.
		if paused := s.resume.Load(); paused != nil && !at.Before(*paused) && s.resume.CompareAndSwap(paused, nil) {
			s.cfg.Log.InfoContext(ctx, "limits are counted in Redis again", "limit", s.cfg.Name)
		}
		return
	}
	wait := pause
	if redis.IsPermissionError(err) {
		wait = longPause
	}
	resume := at.Add(wait) // not in Unix time, so that setting the clock changes nothing
	if s.resume.Swap(&resume) == nil {
		s.cfg.Log.WarnContext(ctx, "limits are counted by each instance alone, because Redis does not count them", "limit", s.cfg.Name, "err", err)
	}
}

// refused returns a copy of a refusal with the time to wait for a rate, and its budget.
func (s *shared) refused(refusal *problem.Error, wait time.Duration, rate int) *problem.Error {
	refused := refusal.After(max(wait, 0))
	refused.Budget = problem.Budget{Name: s.cfg.Name, Uses: s.cfg.Rates[rate].Uses}
	return refused
}
