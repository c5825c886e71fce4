//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

func TestRun_PassesOnTheServersAndTheExitCode(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "seen")
	script := `echo "$` + ephemeral.EnvRedis + ` $` + ephemeral.EnvCluster + ` $` + ephemeral.EnvPostgres + ` $` + ephemeral.EnvSlowness + `" >` + seen + `; exit 3`

	t.Setenv(ephemeral.EnvCluster, "given")
	t.Setenv(ephemeral.EnvSlowness, "")
	code, err := run([]string{"sh", "-c", script})
	assert.That(t, code == 3 && err == nil, "code %d, error %v, want 3 and none", code, err)
	text, err := os.ReadFile(seen)
	assert.NoError(t, err)
	words := strings.Fields(string(text))
	if len(words) != 4 || !strings.HasPrefix(words[0], "redis://127.0.0.1:") || words[1] != "given" || !strings.HasPrefix(words[2], "postgres://") {
		t.Errorf("the command saw %q, want servers and what the environment gave", words)
	}
	slowness := assert.Must(strconv.Atoi(words[3]))(t)
	assert.That(t, slowness >= 1 && slowness <= 10, "slowness %d", slowness)
}

func TestRun_FailsIfTheCommandIsMissingOrKilled(t *testing.T) {
	t.Setenv(ephemeral.EnvRedis, "given")
	t.Setenv(ephemeral.EnvCluster, "given")
	t.Setenv(ephemeral.EnvPostgres, "given")
	t.Setenv(ephemeral.EnvSlowness, "1")
	code, err := run([]string{"/no/such/command"})
	assert.That(t, code == 1 && err != nil, "missing command: code %d, error %v, want 1 and an error", code, err)
	code, _ = run([]string{"sh", "-c", "kill -9 $$"})
	assert.That(t, code == 1, "killed command: code %d, want 1", code)
}
