package connect

import (
	"context"
	"fmt"
	"log/slog"
)

// RedisLog logs go-redis's own messages, such as failed dials and closed connections,
// at debug level: callers get the same information as errors. By default go-redis
// writes them to standard error.
//
// go-redis has one logger for the whole process, so only main sets it:
// redis.SetLogger(connect.RedisLog{Log: log}).
type RedisLog struct {
	Log *slog.Logger
}

// Printf implements go-redis's logger.
func (l RedisLog) Printf(ctx context.Context, format string, args ...any) {
	if l.Log.Enabled(ctx, slog.LevelDebug) {
		l.Log.DebugContext(ctx, fmt.Sprintf(format, args...), "from", "go-redis")
	}
}
