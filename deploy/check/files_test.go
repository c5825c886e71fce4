package check_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"commerce/deploy/assert"
)

// read returns a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	return string(assert.Must(os.ReadFile(filepath.Join(root, name)))(t))
}

// The programs that read the files check them, and find mistakes.
func TestFiles_AreAcceptedByTheirPrograms(t *testing.T) {
	t.Parallel()
	units := []string{"deploy/systemd/commerce.service", "deploy/systemd/commerce-prune.service", "deploy/systemd/commerce-prune.timer"}
	for _, test := range []struct {
		command  string
		files    []string
		from, to string // a mistake; empty: none
	}{
		{"/usr/sbin/haproxy -c -f", []string{"deploy/haproxy/haproxy.cfg"}, "", ""}, // Debian's, which is not in every PATH
		{"/usr/sbin/haproxy -c -f", []string{"deploy/haproxy/haproxy.cfg"}, "balance leastconn", "balance leastcon"},
		{"/usr/sbin/haproxy -c -f", []string{"deploy/haproxy/haproxy.cfg"}, "default_backend instances", "default_backend others"},
		{"/usr/sbin/haproxy -c -f", []string{"deploy/haproxy/haproxy.cfg"}, "timeout server 20s", "timeout server long"},
		{"systemd-analyze verify", units, "", ""},
		{"systemd-analyze verify", units, "ProtectSystem=", "ProtectSystems="},
	} {
		dir, command := t.TempDir(), strings.Fields(test.command)
		found := test.from == ""
		for _, name := range test.files {
			text := strings.ReplaceAll(read(t, name), "/usr/local/bin/commerce", builtImage(t).files["/commerce"])
			found = found || strings.Contains(text, test.from)
			if test.from != "" {
				text = strings.ReplaceAll(text, test.from, test.to)
			}
			command = append(command, filepath.Join(dir, filepath.Base(name)))
			assert.NoError(t, os.WriteFile(command[len(command)-1], []byte(text), 0o600))
		}
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		cmd.Env = append(os.Environ(), "LISTEN=127.0.0.1:8000",
			"A=127.0.0.1:8080", "A_ADMIN=127.0.0.1:9090", "B=127.0.0.2:8080", "B_ADMIN=127.0.0.2:9090")
		out, err := cmd.CombinedOutput()
		accepts := err == nil && (len(out) == 0 || command[0] != "systemd-analyze") // which only warns of unknown settings
		assert.That(t, accepts == (test.from == "") && found,
			"%s with %q (sh deploy/ephemeral/install.sh): %v\n%s", test.command, test.to, err, out)
	}
}
