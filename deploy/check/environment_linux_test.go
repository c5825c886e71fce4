package check_test

import (
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/coreos/go-systemd/v22/unit"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

type process struct {
	name      string
	arguments []string
	env       map[string]string
	files     map[string]string // their content by path
}

// run runs the processes in the image, one after the other. The one that serves must know the
// sample stores or none: cart is the status of a call.
func run(t *testing.T, cart int, processes ...process) {
	t.Helper()
	for _, p := range processes {
		names := unknown(p.env, settingsOf(t, p.arguments...))
		assert.That(t, len(names) == 0, "%s sets %q, which commerce %s does not know", p.name, names, strings.Join(p.arguments, " "))
		c := builtImage(t).container(t, p.files)
		if p.arguments[0] != "serve" {
			c.run(t, p.env, p.arguments...)
			continue
		}
		s := c.serve(t, p.env, p.arguments...)
		s.want(t, http.StatusOK, s.admin+"/healthz")
		s.want(t, http.StatusOK, s.admin+"/readyz")
		s.want(t, http.StatusOK, s.admin+"/metrics")
		s.want(t, cart, s.public+"/cart", "X-Public-Key", "pk_demo")
		s.wantStops(t)
	}
}

// Only the addresses of the servers, and the secrets, are the test's own.
func TestCompose_ServicesRunInTheImage(t *testing.T) {
	t.Parallel()
	project := composeProject(t)
	postgres := ephemeral.StartPostgres(t).URL // roles belong to the whole server
	assignRoles(t, project.Services["roles"], postgres)
	var processes []process
	for _, name := range []string{"migrate", "seed", "commerce"} {
		p := process{name: name, arguments: project.Services[name].Command, env: map[string]string{}}
		if len(p.arguments) == 0 {
			p.arguments = builtImage(t).arguments
		}
		for setting, value := range project.Services[name].Environment {
			p.env[setting] = *value
		}
		p.env["DATABASE_URL"] = moved(t, p.env["DATABASE_URL"], postgres)
		if name == "commerce" {
			p.env["REDIS_URL"], p.env["JWT_SECRET"], p.env["HANDOVER_KEY"] = ephemeral.Redis(t), strings.Repeat("s", 32), strings.Repeat("h", 32)
		}
		processes = append(processes, p)
	}
	run(t, http.StatusOK, processes...)
}

// Only the secrets are the test's own.
func TestKubernetes_WorkloadsRunInTheImage(t *testing.T) {
	t.Parallel()
	redis := map[string]string{"small": ephemeral.Redis(t), "cluster": ephemeral.Cluster(t)}
	for _, name := range overlays {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := ephemeral.StartPostgres(t).URL // roles belong to the whole server
			assignRoles(t, composeProject(t).Services["roles"], database)
			service := moved(t, "postgres://commerce_service@postgres", database)
			secrets := map[string]map[string]string{ // as docs/deploy.md has them
				"commerce":       {"REDIS_URL": redis[name], "DATABASE_URL": service, "JWT_SECRET": strings.Repeat("s", 32), "HANDOVER_KEY": strings.Repeat("h", 32)},
				"commerce-owner": {"DATABASE_URL": database},
			}
			if name == "cluster" {
				secrets["commerce"]["DATABASE_REPLICA_URL"] = service
			}
			m, processes := overlay(t, name), map[string]process{}
			for _, p := range m.pods() {
				c, files := p.Spec.Containers[0], map[string]string{}
				for _, mount := range c.VolumeMounts {
					for _, v := range p.Spec.Volumes {
						for key, value := range secrets[v.Secret.SecretName] {
							if v.Name == mount.Name {
								files[path.Join(mount.MountPath, key)] = value + "\n"
							}
						}
					}
				}
				processes[p.workload] = process{name + ": " + p.workload, c.Args, m.env(c), files}
				if is := c.LivenessProbe; is != nil && (is.HTTPGet.Path != "/healthz" || c.ReadinessProbe.HTTPGet.Path != "/readyz") ||
					is != nil && p.Metadata.Annotations["prometheus.io/path"] != "/metrics" {
					t.Errorf("%s: other paths than /healthz, /readyz and /metrics", name)
				}
			}
			run(t, http.StatusBadRequest, processes["commerce-migrate"], processes["commerce-prune"], processes["commerce"])
		})
	}
}

// Only the credentials are the test's own.
func TestSystemd_UnitsRunTheProgram(t *testing.T) {
	t.Parallel()
	const folder = "/run/credentials"
	database := ephemeral.Postgres(t)
	secrets := map[string]string{ // as docs/deploy.md has them
		"/etc/commerce/secrets/REDIS_URL":          ephemeral.Redis(t),
		"/etc/commerce/secrets/DATABASE_URL":       database,
		"/etc/commerce/secrets/OWNER_DATABASE_URL": database,
		"/etc/commerce/secrets/JWT_SECRET":         strings.Repeat("s", 32),
		"/etc/commerce/secrets/HANDOVER_KEY":       strings.Repeat("h", 32),
	}
	processes := []process{{"docs/deploy.md", []string{"migrate", "up"}, map[string]string{"DATABASE_URL": database}, nil}}
	for _, name := range []string{"commerce-prune.service", "commerce.service"} {
		options := assert.Must(unit.DeserializeOptions(strings.NewReader(read(t, filepath.Join("deploy/systemd", name)))))(t)
		p := process{name: name, env: map[string]string{}, files: map[string]string{}}
		for _, option := range options {
			switch option.Name {
			case "ExecStart":
				p.arguments = strings.Fields(option.Value)[1:]
			case "Environment":
				setting, value, _ := strings.Cut(option.Value, "=")
				p.env[setting] = strings.ReplaceAll(value, "%d", folder)
			case "LoadCredential":
				credential, file, _ := strings.Cut(option.Value, ":")
				assert.Require(t, secrets[file] != "", "docs/deploy.md does not create %s", file)
				p.files[filepath.Join(folder, credential)] = secrets[file] + "\n"
			}
		}
		processes = append(processes, p)
	}
	run(t, http.StatusBadRequest, processes...)
}

// moved returns the URL of the test's database, with the user of another URL, unless that is
// the owner.
func moved(t *testing.T, from, to string) string {
	t.Helper()
	old := assert.Must(url.Parse(from))(t)
	u := assert.Must(url.Parse(to))(t)
	if old.User.Username() == "commerce_service" {
		u.User = old.User
	}
	return u.String()
}

// assignRoles runs the command of the service "roles" for another database.
func assignRoles(t *testing.T, service types.ServiceConfig, database string) {
	t.Helper()
	words := slices.Concat(service.Entrypoint, service.Command)
	for i, word := range words {
		switch {
		case strings.HasPrefix(word, "postgres://"):
			words[i] = database
		case word == service.Volumes[0].Target:
			words[i] = service.Volumes[0].Source
		}
	}
	program, err := exec.LookPath(words[0])
	if err != nil {
		installed, _ := filepath.Glob("/usr/lib/postgresql/*/bin/psql")
		assert.Require(t, len(installed) != 0, "psql is not installed (sh deploy/ephemeral/install.sh)")
		program = installed[0]
	}
	cmd := exec.CommandContext(t.Context(), program, words[1:]...)
	cmd.Env = os.Environ()
	out, err := cmd.CombinedOutput()
	assert.Require(t, err == nil, "%s: %v\n%s", strings.Join(words, " "), err, out)
}

// settingsOf returns the environment variables that a command knows, by its own help.
func settingsOf(t *testing.T, arguments ...string) (names []string) {
	t.Helper()
	help, err := exec.CommandContext(t.Context(), builtImage(t).files["/commerce"], append(slices.Clone(arguments), "--help")...).Output()
	for _, match := range regexp.MustCompile(`\(\$([A-Z0-9_]+)\)`).FindAllStringSubmatch(string(help), -1) {
		names = append(names, match[1])
	}
	assert.Require(t, err == nil && len(names) != 0,
		"found no settings in the help of commerce %s: %v", strings.Join(arguments, " "), err)
	return names
}

// unknown returns the variables of an environment that neither a command nor Go knows.
func unknown(env map[string]string, known []string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(env)), func(name string) bool {
		return slices.Contains(known, strings.TrimSuffix(name, "_FILE")) || slices.Contains([]string{"GOMAXPROCS", "GOGC", "GOMEMLIMIT"}, name)
	})
}

func TestUnknown_FindsMisspeltSettings(t *testing.T) {
	t.Parallel()
	env := map[string]string{"DRAIN_DELAY": "4s", "DRAIN_DELAYS": "4s", "JWT_SECRET_FILE": "/f", "GOGC": "100"}
	got := unknown(env, settingsOf(t, "serve"))
	assert.That(t, slices.Equal(got, []string{"DRAIN_DELAYS"}), "unknown settings: %q", got)
	got = unknown(map[string]string{"REDIS_URL": "redis://r"}, settingsOf(t, "subscriptions", "prune"))
	assert.That(t, len(got) == 1, "a setting of serve counts as one of prune")
}
