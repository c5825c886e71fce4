//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"commerce/deploy/ephemeral"
)

func TestRun_PassesOnTheServersAndTheExitCode(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "seen")
	script := `echo "$` + ephemeral.EnvRedis + ` $` + ephemeral.EnvCluster + ` $` + ephemeral.EnvPostgres + `" >` + seen + `; exit 3`

	t.Setenv(ephemeral.EnvCluster, "given")
	t.Setenv(ephemeral.EnvPostgres, "given")
	code, err := run([]string{"sh", "-c", script})
	if code != 3 || err != nil {
		t.Errorf("code %d, error %v, want 3 and none", code, err)
	}
	text, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(text))
	if len(words) != 3 || !strings.HasPrefix(words[0], "redis://127.0.0.1:") || words[1] != "given" || words[2] != "given" {
		t.Errorf("the command saw %q, want a new Redis and what the environment gave", words)
	}
}

func TestRun_FailsIfTheCommandIsMissingOrKilled(t *testing.T) {
	t.Setenv(ephemeral.EnvRedis, "given")
	t.Setenv(ephemeral.EnvCluster, "given")
	t.Setenv(ephemeral.EnvPostgres, "given")
	if code, err := run([]string{"/no/such/command"}); code != 1 || err == nil {
		t.Errorf("missing command: code %d, error %v, want 1 and an error", code, err)
	}
	if code, _ := run([]string{"sh", "-c", "kill -9 $$"}); code != 1 {
		t.Errorf("killed command: code %d, want 1", code)
	}
}
