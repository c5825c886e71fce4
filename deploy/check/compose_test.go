package check_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// composeProject returns deploy/compose.yaml as `docker compose` reads it, with all profiles.
// Compose refuses unknown members and references to services that do not exist.
func composeProject(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "deploy/compose.yaml")}, cli.WithProfiles([]string{"*"}))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

func TestCompose_RefersToWhatExistsAndListensLocally(t *testing.T) {
	t.Parallel()
	for name, service := range composeProject(t).Services {
		if tag := tagOf(service.Image); tag == "" || tag == "latest" {
			t.Errorf("%s: the image %s has no version", name, service.Image)
		}
		for _, volume := range service.Volumes {
			if _, err := os.Stat(volume.Source); volume.Type == types.VolumeTypeBind && err != nil {
				t.Errorf("%s mounts a file that does not exist: %v", name, err)
			}
		}
		for _, port := range service.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s: everyone can reach the port %s", name, port.Published)
			}
		}
		if build := service.Build; build != nil && (!service.ReadOnly || strings.Join(service.CapDrop, "") != "ALL") {
			t.Errorf("%s has a writable root or capabilities", name)
		}
	}
}
