package main

import (
	"bufio"
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// checkLine is a line that the check at the start of serve logs.
type checkLine struct{ Level, Msg, Finding, Code string }

// linesOfCheck starts `commerce serve` and returns the lines that the check logs. It stops
// serve after a message that contains last.
func linesOfCheck(t *testing.T, last string, settings ...string) (lines []checkLine) {
	t.Helper()
	cmd := program(t, append(settings, "JWT_SECRET="+secret, "DRAIN_DELAY=0s"), "serve")
	log := assert.Must(cmd.StderrPipe())(t)
	assert.NoError(t, cmd.Start())
	late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	logged := bufio.NewScanner(log)
	for logged.Scan() {
		var line checkLine
		err := json.Unmarshal(logged.Bytes(), &line)
		assert.Require(t, err == nil, "%s: %v", logged.Bytes(), err)
		if strings.HasPrefix(line.Msg, "check: ") {
			lines = append(lines, line)
		}
		if strings.Contains(line.Msg, last) {
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	err := cmd.Wait()
	assert.That(t, err == nil, "serve ended with %v, after %+v", err, lines)
	return lines
}

func TestServe_LogsWhatTheCheckFinds(t *testing.T) {
	t.Parallel()
	server := startGuarded(t)
	lines := linesOfCheck(t, "commerce check", "REDIS_URL="+server.URL, "DATABASE_URL="+seeded(t), "DURABILITY=replica")
	codes := map[string]string{}
	for _, line := range lines {
		codes[line.Code] = line.Level + " " + line.Finding
	}
	if codes["redis_replicas"] != "WARN serious" || codes["postgres_writes"] != "WARN warning" || codes["redis_eviction"] != "" {
		t.Errorf("logged %+v", lines)
	}
	if last := lines[len(lines)-1]; last.Level != "INFO" || codes[""] != "INFO " || !strings.Contains(last.Msg, "`commerce check`") {
		t.Errorf("logged %+v, want one line about what is unknown, at the end", lines)
	}
}

// A check that waits for a frozen server must not delay the end of the process.
func TestServe_EndsWhileTheCheckWaits(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t)
	server.Freeze()
	began := time.Now()
	lines := linesOfCheck(t, "serving", "REDIS_URL="+server.URL, "DATABASE_URL="+seeded(t))
	if len(lines) > 0 || time.Since(began) > 15*time.Second {
		t.Errorf("after %v, logged %+v", time.Since(began), lines)
	}
}
