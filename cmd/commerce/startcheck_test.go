package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// checked stops serve, and returns what its check has logged.
func (r *running) checked(t *testing.T) []logLine {
	t.Helper()
	r.end(t)
	return slices.DeleteFunc(r.log.lines(t, 0), func(l logLine) bool { return !strings.HasPrefix(l.Msg, "check: ") })
}

func TestServe_LogsWhatTheCheckFinds(t *testing.T) {
	t.Parallel()
	serve := startServe(t, seeded(t), "REDIS_URL="+startGuarded(t).URL, "DURABILITY=replica")
	serve.log.wait(t, 0, "commerce check")
	lines := serve.checked(t)
	codes := map[string]string{}
	for _, line := range lines {
		codes[line.Code] = line.Level + " " + line.Finding
	}
	assert.That(t, codes["redis_replicas"] == "WARN serious" && codes["postgres_writes"] == "WARN warning" &&
		codes["redis_eviction"] == "", "logged %+v", lines)
	last := lines[len(lines)-1]
	assert.That(t, last.Level == "INFO" && codes[""] == "INFO " && strings.Contains(last.Msg, "`commerce check`"),
		"logged %+v, want one line about what is unknown, at the end", lines)
}

// Each later check logs only what is new. What Redis refuses to it again is no further entry in the ACL LOG.
func TestServe_FindsWhatGoesWrongLater(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	redis := startGuarded(t)
	serve := startServe(t, seeded(t), "REDIS_URL="+redis.URL)
	serve.log.wait(t, 0, "commerce check")
	const finding = `commerce_check_findings{code="redis_eviction",level="serious"}`
	refused := redis.Admin().ACLLog(t.Context(), 100).Val()
	assert.That(t, serve.metric(t, finding) == 0 && len(refused) > 0, "%s before: %+v", finding, refused)
	assert.NoError(t, redis.Admin().ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
	time.Sleep(checkInterval)
	serve.log.wait(t, 0, "redis_eviction")
	assert.Equal(t, serve.metric(t, finding), 1, "%s", finding)
	assert.Equal(t, len(redis.Admin().ACLLog(t.Context(), 100).Val()), len(refused), "entries of the ACL LOG")
	seen := map[string]int{}
	for _, line := range serve.checked(t) {
		if seen[line.Code]++; seen[line.Code] > 1 {
			t.Errorf("logged again: %+v", line)
		}
	}
}

// A check that waits for a frozen server must not delay the end of the process.
func TestServe_EndsWhileTheCheckWaits(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t)
	server.Freeze()
	lines := startServe(t, seeded(t), "REDIS_URL="+server.URL).checked(t)
	assert.That(t, len(lines) == 0, "logged %+v", lines)
}
