package limit

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/script"
)

const (
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

// shared are the counts in Redis.
type shared struct {
	name    string
	redis   redis.UniversalClient
	timeout time.Duration
	now     func() time.Time
	log     *slog.Logger

	failing atomic.Bool
	resume  atomic.Pointer[time.Time] // when Redis is asked again; nil: now
}

func (s *shared) configure(c Config) {
	s.name, s.redis, s.timeout, s.now, s.log = c.Name, c.Redis, c.Timeout, c.Now, c.Log
	if s.timeout == 0 {
		s.timeout = defaultTimeout
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.Default()
	}
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

// run runs a script for a client. Its reply begins with the time that the client must wait. ok is
// false if Redis does not answer, or is not asked during a pause.
func (s *shared) run(ctx context.Context, what script.Script, client string, args []any) (wait time.Duration, reply []int64, ok bool) {
	now := s.now()
	if resume := s.resume.Load(); s.redis == nil || resume != nil && now.Before(*resume) {
		return 0, nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	reply, err := what.Run(ctx, s.redis, script.Repeatable, []string{key(s.name, client)}, args...).Int64Slice()
	s.report(ctx, now, err)
	if err != nil {
		return 0, nil, false
	}
	return time.Duration(reply[0]) * time.Millisecond, reply, true
}

// key returns the key of a client. It contains a digest, so that Redis does not show who the
// clients are.
func key(name, client string) string {
	sum := sha256.Sum256([]byte(client))
	return "limit:" + name + ":" + hex.EncodeToString(sum[:digestSize])
}

// report logs the first failure and the first success after it. After each failure, it starts a
// pause.
func (s *shared) report(ctx context.Context, at time.Time, err error) {
	if err == nil {
		if s.failing.CompareAndSwap(true, false) {
			s.log.InfoContext(ctx, "limits are counted in Redis again", "limit", s.name)
		}
		return
	}
	if s.failing.CompareAndSwap(false, true) {
		s.log.WarnContext(ctx, "limits are counted by each instance alone, because Redis does not count them", "limit", s.name, "err", err)
	}
	wait := pause
	if redis.IsPermissionError(err) {
		wait = longPause
	}
	resume := at.Add(wait) // not in Unix time, so that setting the clock changes nothing
	s.resume.Store(&resume)
}
