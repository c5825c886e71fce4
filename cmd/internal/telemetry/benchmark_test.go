package telemetry

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// BenchmarkRequest measures what a request pays for its own metrics.
func BenchmarkRequest(b *testing.B) {
	m := New("test")
	b.ReportAllocs()
	for b.Loop() {
		m.RequestBegan()
		m.RequestEnded("GET", "/cart", 200, time.Millisecond)
	}
}

// BenchmarkRedis measures what a command pays, with a Redis that takes no time.
func BenchmarkRedis(b *testing.B) {
	m, cmd := New("test"), redis.NewStringCmd(b.Context(), "hgetall", "k")
	process := m.redis.ProcessHook(func(context.Context, redis.Cmder) error { return nil })
	pipeline := m.redis.ProcessPipelineHook(func(context.Context, []redis.Cmder) error { return nil })
	b.Run("command", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = process(b.Context(), cmd)
		}
	})
	b.Run("pipeline", func(b *testing.B) {
		cmds := []redis.Cmder{cmd, cmd}
		b.ReportAllocs()
		for b.Loop() {
			_ = pipeline(b.Context(), cmds)
		}
	})
}
