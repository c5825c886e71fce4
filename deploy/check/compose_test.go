package check_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// loadCompose reads a Compose file as `docker compose` does, with all profiles.
func loadCompose(t *testing.T, file string) (*types.Project, error) {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{file}, cli.WithProfiles([]string{"*"}))
	if err != nil {
		t.Fatal(err)
	}
	return options.LoadProject(t.Context())
}

// composeProject returns deploy/compose.yaml.
func composeProject(t *testing.T) *types.Project {
	t.Helper()
	project, err := loadCompose(t, filepath.Join(root, "deploy/compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// composeFaults returns what is wrong with a project, although Compose accepts it.
func composeFaults(project *types.Project) (found []string) {
	for name, service := range project.Services {
		fault := func(format string, values ...any) {
			found = append(found, name+": "+fmt.Sprintf(format, values...))
		}
		if tag := tagOf(service.Image); tag == "" || tag == "latest" {
			fault("the image %s has no version", service.Image)
		}
		for _, volume := range service.Volumes {
			if _, err := os.Stat(volume.Source); volume.Type == types.VolumeTypeBind && err != nil {
				fault("mounts a file that does not exist: %v", err)
			}
		}
		for _, port := range service.Ports {
			if port.HostIP != "127.0.0.1" {
				fault("everyone can reach the port %s", port.Published)
			}
		}
		for setting, value := range service.Environment {
			if value == nil || !strings.HasSuffix(setting, "_URL") {
				continue
			}
			if address, err := url.Parse(*value); err != nil || project.Services[address.Hostname()].Image == "" {
				fault("%s refers to a service that does not exist: %s", setting, *value)
			}
		}
		if build := service.Build; build != nil {
			if _, err := os.Stat(filepath.Join(build.Context, build.Dockerfile)); err != nil {
				fault("%v", err)
			}
			if !service.ReadOnly || strings.Join(service.CapDrop, "") != "ALL" {
				fault("has a writable root or capabilities")
			}
		}
	}
	return found
}

func TestCompose_RefersToWhatExists(t *testing.T) {
	t.Parallel()
	for _, fault := range composeFaults(composeProject(t)) {
		t.Error(fault)
	}
}

// Each check finds what it is for.
func TestCompose_FaultsAreFound(t *testing.T) {
	t.Parallel()
	text := read(t, "deploy/compose.yaml")
	for _, broken := range []struct{ from, to, want string }{
		{"./postgres/roles.sql", "./postgres/rules.sql", "rules.sql"},
		{"redis:7-bookworm", "redis", "no version"},
		{"127.0.0.1:6379:6379", "6379:6379", "everyone"},
		{"redis://redis:", "redis://cache:", "REDIS_URL"},
		{"deploy/Dockerfile", "Dockerfile", "Dockerfile"},
		{"read_only: true", "read_only: false", "writable"},
	} {
		project, err := loadCompose(t, write(t, replaced(t, text, broken.from, broken.to)))
		if err != nil {
			t.Errorf("with %q: %v", broken.to, err)
			continue
		}
		if got := strings.Join(composeFaults(project), "\n"); !strings.Contains(got, broken.want) {
			t.Errorf("with %q: faults %q, want %q", broken.to, got, broken.want)
		}
	}
	for _, misspelt := range []struct{ from, to string }{
		{"depends_on:", "depend_on:"}, {"{condition: service_healthy}", "{condition: healthy}"}, {"      migrate: {", "      migration: {"},
	} {
		if _, err := loadCompose(t, write(t, replaced(t, text, misspelt.from, misspelt.to))); err == nil {
			t.Errorf("accepted %q", misspelt.to)
		}
	}
}

// write returns the path of a new file, which is removed when the test ends.
func write(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "compose.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
