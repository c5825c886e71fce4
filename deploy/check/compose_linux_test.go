package check_test

import (
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"

	"commerce/deploy/ephemeral"
)

// The containers of the program run one after the other, with the environment of the Compose
// file. Only the addresses of the servers are the test's own.
func TestCompose_ServicesRunInTheImage(t *testing.T) {
	t.Parallel()
	project := composeProject(t)
	postgres := ephemeral.StartPostgres(t).URL // roles belong to the whole server
	redis := ephemeral.Redis(t)
	env := func(name string) []string {
		env := map[string]string{}
		for setting, value := range project.Services[name].Environment {
			env[setting] = *value
		}
		if unknown := unknown(env, settingsOf(t, commandOf(t, project.Services[name])...)); len(unknown) != 0 {
			t.Errorf("%s sets %q, which its command does not know", name, unknown)
		}
		env["DATABASE_URL"] = moved(t, env["DATABASE_URL"], postgres)
		if name == "commerce" {
			env["REDIS_URL"], env["JWT_SECRET"] = redis, strings.Repeat("s", 32)
		}
		return entries(env)
	}
	assignRoles(t, project.Services["roles"], postgres)
	c := builtImage(t).container(t, nil)
	for _, name := range []string{"migrate", "seed"} {
		c.run(t, env(name), commandOf(t, project.Services[name])...)
	}
	s := c.serve(t, env("commerce"), commandOf(t, project.Services["commerce"])...)
	s.want(t, http.StatusOK, s.admin+"/readyz")
	s.want(t, http.StatusOK, s.public+"/cart", "X-Public-Key", "pk_demo")
}

// moved returns the URL of the test's database, with the user of another URL, unless that is
// the owner.
func moved(t *testing.T, from, to string) string {
	t.Helper()
	old, err := url.Parse(from)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	if old.User.Username() == "commerce_service" {
		u.User = old.User
	}
	return u.String()
}

// commandOf returns what a service of the program passes to it.
func commandOf(t *testing.T, service types.ServiceConfig) []string {
	t.Helper()
	if len(service.Command) != 0 {
		return service.Command
	}
	_, arguments, err := builtImage(t).command()
	if err != nil {
		t.Fatal(err)
	}
	return arguments
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
		if len(installed) == 0 {
			t.Fatal("psql is not installed (sh deploy/ephemeral/install.sh)")
		}
		program = installed[0]
	}
	cmd := exec.CommandContext(t.Context(), program, words[1:]...)
	cmd.Env = os.Environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
}
