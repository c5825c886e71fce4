package lastknown

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

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
			if _, err := get(t, c, time.Second, "a"); err == nil || err.Error() != "not cached: connection refused" {
				t.Errorf("got %v", err)
			}
			time.Sleep(time.Second)
		}
		s.behave(0, nil)
		want(t, c, time.Second, map[string]string{"a": "1"}, "a")
		synctest.Wait()
		const lines = `level=WARN msg="cannot load values; known ones stay in use" of=texts server="postgres a:1" err="connection refused"
level=INFO msg="values can be loaded again" of=texts server="postgres a:1" after=3s
`
		if got := log.String(); got != lines {
			t.Errorf("got\n%swant\n%s", got, strings.TrimSpace(lines))
		}
	})
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
