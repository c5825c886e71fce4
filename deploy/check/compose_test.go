package check_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"commerce/deploy/assert"
)

// composeProject returns deploy/compose.yaml as `docker compose` reads it, with all profiles.
// Compose refuses unknown members and references to services that do not exist.
func composeProject(t *testing.T) *types.Project {
	t.Helper()
	options := assert.Must(cli.NewProjectOptions([]string{filepath.Join(root, "deploy/compose.yaml")}, cli.WithProfiles([]string{"*"})))(t)
	return assert.Must(options.LoadProject(t.Context()))(t)
}

func TestCompose_RefersToWhatExistsAndListensLocally(t *testing.T) {
	t.Parallel()
	for name, service := range composeProject(t).Services {
		tag := tagOf(service.Image)
		assert.That(t, tag != "" && tag != "latest", "%s: the image %s has no version", name, service.Image)
		for _, volume := range service.Volumes {
			if _, err := os.Stat(volume.Source); volume.Type == types.VolumeTypeBind && err != nil {
				t.Errorf("%s mounts a file that does not exist: %v", name, err)
			}
		}
		for _, port := range service.Ports {
			assert.Equal(t, port.HostIP, "127.0.0.1", "%s: everyone can reach the port %s", name, port.Published)
		}
		if build := service.Build; build != nil && (!service.ReadOnly || strings.Join(service.CapDrop, "") != "ALL") {
			t.Errorf("%s has a writable root or capabilities", name)
		}
	}
}
