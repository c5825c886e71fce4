package connect

import (
	"context"
	"fmt"
	"log/slog"
)

// RedisLog receives go-redis's own messages, which otherwise go to standard
// error: failed dials, retired connections. They repeat what the callers' errors
// say, so they are logged at debug level.
//
// The library has one logger for the whole process, so setting it is for main
// alone: redis.SetLogger(connect.RedisLog{Log: log}).
type RedisLog struct {
	Log *slog.Logger
}

// Printf implements go-redis's logger.
func (l RedisLog) Printf(ctx context.Context, format string, args ...any) {
	if l.Log.Enabled(ctx, slog.LevelDebug) {
		l.Log.DebugContext(ctx, fmt.Sprintf(format, args...), "from", "go-redis")
	}
}
