package check_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// Only a test that failed and then passes, alone, lets a run go on.
func TestTestScript_RepeatsOnlyWhatFailedInATest(t *testing.T) {
	t.Parallel()
	const once = `if _, err := os.Stat("failed"); err != nil { os.WriteFile("failed", nil, 0o600); `
	for name, c := range map[string]struct {
		body   string // of a test
		passes bool
		says   string
	}{
		"passes":           {"", true, "DONE 2 tests in"},
		"fails once":       {once + `t.Fatal("reason") }`, true, "FLAKY: "},
		"fails twice":      {`t.Fatal("reason")`, false, "(re-run 1)"},
		"ends the process": {once + `os.Exit(1) }`, false, "outside of their tests"},
		"is killed":        {once + `syscall.Kill(os.Getpid(), syscall.SIGKILL) }`, false, "signal: killed"},
		"leaves something": {`leak = "reason"`, false, "reason"},
		"panics":           {once + `panic("reason") }`, false, "suspected panic"},
		"does not compile": {`undefined`, false, "undefined: undefined"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ephemeral.Slow(t)
			dir := t.TempDir()
			for file, text := range map[string]string{
				"go.mod": read(t, "go.mod"), "go.sum": read(t, "go.sum"), "deploy/test.sh": read(t, "deploy/test.sh"),
				"tested/a_test.go": `package tested
import ("fmt"; "os"; "syscall"; "testing")
var _, leak = syscall.Kill, ""
func TestMain(m *testing.M) {
	status := m.Run()
	if leak != "" { fmt.Println(leak); status = 1 }
	os.Exit(status)
}
func TestOne(t *testing.T) { ` + c.body + ` }
func TestOther(t *testing.T) {}
`,
			} {
				path := filepath.Join(dir, file)
				assert.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				assert.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-c", "sh deploy/test.sh ./tested -short && sh deploy/test.sh")
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			assert.That(t, (err == nil) == c.passes && strings.Contains(string(out), c.says), "%v: %s", err, out)
		})
	}
}
