package main

import (
	"slices"
	"strings"
	"testing"

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

// A check that waits for a frozen server must not delay the end of the process.
func TestServe_EndsWhileTheCheckWaits(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t)
	server.Freeze()
	lines := startServe(t, seeded(t), "REDIS_URL="+server.URL).checked(t)
	assert.That(t, len(lines) == 0, "logged %+v", lines)
}
