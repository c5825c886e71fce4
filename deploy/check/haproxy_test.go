package check_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// checkHaproxy returns what haproxy says about a configuration, without starting it.
func checkHaproxy(t *testing.T, text string) (output string, err error) {
	t.Helper()
	program := "/usr/sbin/haproxy" // Debian's, which is not in every PATH
	if found, err := exec.LookPath("haproxy"); err == nil {
		program = found
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatal("haproxy is not installed (sh deploy/ephemeral/install.sh)")
	}
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-c", "-f", file)
	cmd.Env = []string{
		"LISTEN=127.0.0.1:8000",
		"A=127.0.0.1:8080", "A_ADMIN=127.0.0.1:9090", "B=127.0.0.2:8080", "B_ADMIN=127.0.0.2:9090",
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestHaproxy_AcceptsItsConfiguration(t *testing.T) {
	t.Parallel()
	text := read(t, "deploy/haproxy/haproxy.cfg")
	if out, err := checkHaproxy(t, text); err != nil {
		t.Errorf("haproxy -c: %v\n%s", err, out)
	}
	for _, broken := range []struct{ from, to string }{
		{"balance leastconn", "balance leastcon"},
		{"default_backend instances", "default_backend others"},
		{"timeout server 20s", "timeout server long"},
	} {
		if out, err := checkHaproxy(t, replaced(t, text, broken.from, broken.to)); err == nil {
			t.Errorf("haproxy -c accepts %q:\n%s", broken.to, out)
		}
	}
}
