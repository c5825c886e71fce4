package lastknown

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"commerce/deploy/assert"
)

func TestStats_CountLookupsByResult(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, c *Cache[string, string]) {
		want(t, c, 0, texts{"a": "1", "b": "1"}, "a", "b", "none") // the first two wait
		want(t, c, 0, texts{"a": "1"}, "a", "none")
		time.Sleep(2 * time.Second)
		s.behave(0, errGone)
		want(t, c, 0, texts{"a": "1"}, "a") // the last known one
		wantUnknown(t, c, 0, "never seen")
		got := c.Stats()
		got.Oldest = got.Oldest.Truncate(time.Second)
		assert.Equal(t, got, Stats{Fresh: 1, Waited: 2, Stale: 1, Missing: 2, Failed: 1, Oldest: 2 * time.Second}, "got")
	})
}

func TestStats_ForgetTheOldestValueAfterAMinute(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, c *Cache[string, string]) {
		want(t, c, 0, texts{"a": "1"}, "a")
		time.Sleep(time.Hour)
		s.behave(0, errGone)
		want(t, c, 0, texts{"a": "1"}, "a")
		got := c.Stats().Oldest
		assert.That(t, got >= time.Hour, "the oldest value is %v old, want an hour", got)
		s.behave(0, nil)
		time.Sleep(time.Second)
		want(t, c, 0, texts{"a": "1"}, "a") // the last old one: it causes a load
		time.Sleep(30 * time.Second)
		want(t, c, 0, texts{"a": "1"}, "a")
		got = c.Stats().Oldest
		assert.That(t, got >= time.Hour, "after half a minute it is %v old, want an hour", got)
		time.Sleep(31 * time.Second)
		got = c.Stats().Oldest
		assert.That(t, got <= time.Second, "after a minute it is %v old", got)
		time.Sleep(time.Hour)
		assert.Equal(t, c.Stats().Oldest, 0, "although nothing was served")
	})
}

func TestShown_ReportsHowLongReadersWaitForAChange(t *testing.T) {
	t.Parallel()
	for name, expire := range map[string]func(*Cache[string, string]){
		"key": func(c *Cache[string, string]) { c.Expire("a") },
		"all": (*Cache[string, string]).ExpireAll,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var shown []time.Duration
				s := &source{rows: map[string]string{"a": "1"}}
				c := New(Config[string, string]{
					Name: "texts", Source: s.load, MaxWeight: 1 << 20, Log: slog.New(slog.DiscardHandler),
					Weigh: func(string, string) uint32 { return 1 }, Shown: func(d time.Duration) { shown = append(shown, d) },
				})
				want(t, c, 0, texts{"a": "1"}, "a")
				time.Sleep(time.Second)
				want(t, c, 0, texts{"a": "1"}, "a") // too old, but not expired
				s.set("a", "2")
				expire(c)
				time.Sleep(time.Minute) // nobody reads it
				s.behave(200*time.Millisecond, nil)
				want(t, c, 50*time.Millisecond, texts{"a": "1"}, "a")
				time.Sleep(time.Second)
				synctest.Wait()
				assert.Equal(t, shown, []time.Duration{200 * time.Millisecond}, "shown")
			})
		})
	}
}

// At the start nothing is known yet, so the log must not promise values.
func TestGet_LogsAnOutageOfTheSourceOnceAndItsEndOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, log := &source{rows: map[string]string{"a": "1"}, broken: errors.New("connection refused")}, &bytes.Buffer{}
		c := New(Config[string, string]{
			Name: "texts", Server: "postgres a:1", Source: s.load, MaxWeight: 1 << 20,
			Weigh: func(string, string) uint32 { return 1 }, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{ReplaceAttr: withoutTime})),
		})
		for range 3 {
			_, err := get(t, c, time.Second, "a")
			assert.That(t, err != nil && err.Error() == "not cached: connection refused", "got %v", err)
			time.Sleep(time.Second)
		}
		s.behave(0, nil)
		want(t, c, time.Second, map[string]string{"a": "1"}, "a")
		synctest.Wait()
		const lines = `level=WARN msg="cannot load values; known ones stay in use" of=texts server="postgres a:1" err="connection refused"
level=INFO msg="values can be loaded again" of=texts server="postgres a:1" after=3s
`
		got := log.String()
		assert.That(t, got == lines, "got\n%swant\n%s", got, strings.TrimSpace(lines))
	})
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
