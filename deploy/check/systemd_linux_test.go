package check_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coreos/go-systemd/v22/unit"

	"commerce/deploy/ephemeral"
)

// verifyUnits returns what systemd says about units. The program is the rehearsed image's.
func verifyUnits(t *testing.T, units map[string]string) (output string, err error) {
	t.Helper()
	dir := t.TempDir()
	analyze := []string{"verify"}
	for name, text := range units {
		file := filepath.Join(dir, name)
		text = strings.ReplaceAll(text, "/usr/local/bin/commerce", builtImage(t).program(t))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		analyze = append(analyze, file)
	}
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", analyze...).CombinedOutput()
	return string(out), err
}

// systemdUnits returns the files of deploy/systemd by their names.
func systemdUnits(t *testing.T) map[string]string {
	t.Helper()
	units := map[string]string{}
	for _, name := range []string{"commerce.service", "commerce-prune.service", "commerce-prune.timer"} {
		units[name] = read(t, filepath.Join("deploy/systemd", name))
	}
	return units
}

func TestSystemd_AcceptsTheUnits(t *testing.T) {
	t.Parallel()
	units := systemdUnits(t)
	if out, err := verifyUnits(t, units); err != nil || out != "" {
		t.Errorf("systemd-analyze verify (sh deploy/ephemeral/install.sh): %v\n%s", err, out)
	}
	units["commerce.service"] = replaced(t, units["commerce.service"], "ProtectSystem=", "ProtectSystems=")
	if out, _ := verifyUnits(t, units); !strings.Contains(out, "ProtectSystems") {
		t.Errorf("systemd-analyze verify accepts an unknown setting:\n%s", out)
	}
}

// The commands of the units run in the image with their environment and their credentials.
func TestSystemd_UnitsRunTheProgram(t *testing.T) {
	t.Parallel()
	database := ephemeral.Postgres(t)
	secrets := map[string]string{
		"/etc/commerce/secrets/REDIS_URL":          ephemeral.Redis(t),
		"/etc/commerce/secrets/DATABASE_URL":       database,
		"/etc/commerce/secrets/OWNER_DATABASE_URL": database,
		"/etc/commerce/secrets/JWT_SECRET":         strings.Repeat("s", 32),
	}
	builtImage(t).container(t, nil).run(t, []string{"DATABASE_URL=" + database}, "migrate", "up")
	for _, name := range []string{"commerce-prune.service", "commerce.service"} {
		command, env, files := unitOf(t, read(t, filepath.Join("deploy/systemd", name)), secrets)
		if unknown := unknown(env, settingsOf(t, command...)); len(unknown) != 0 {
			t.Errorf("%s sets %q, which its command does not know", name, unknown)
		}
		c := builtImage(t).container(t, files)
		if slices.Equal(command, []string{"serve"}) {
			s := c.serve(t, entries(env), command...)
			s.want(t, http.StatusOK, s.admin+"/readyz")
			s.wantStops(t)
		} else {
			c.run(t, entries(env), command...)
		}
	}
}

// unitOf returns a unit's command, without the program, its environment, and the content of
// its credentials by their paths.
func unitOf(t *testing.T, text string, secrets map[string]string) (command []string, env, credentials map[string]string) {
	t.Helper()
	const folder = "/run/credentials"
	options, err := unit.DeserializeOptions(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	env, credentials = map[string]string{}, map[string]string{}
	for _, option := range options {
		switch option.Name {
		case "ExecStart":
			command = strings.Fields(option.Value)[1:]
		case "Environment":
			name, value, _ := strings.Cut(option.Value, "=")
			env[name] = strings.ReplaceAll(value, "%d", folder)
		case "LoadCredential":
			name, file, _ := strings.Cut(option.Value, ":")
			if secrets[file] == "" {
				t.Fatalf("docs/deploy.md does not create %s", file)
			}
			credentials[filepath.Join(folder, name)] = secrets[file] + "\n"
		}
	}
	return command, env, credentials
}
