package check_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

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

// The service believes these headers of a proxy in TRUSTED_PROXIES. A request that an instance never got
// is tried at the other one.
func TestHAProxy_ReplacesTheHeadersOfClientsAndALostInstance(t *testing.T) {
	t.Parallel()
	var got http.Header
	var mu sync.Mutex
	alive := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if mu.Lock(); r.URL.Path == "/cart" {
			got = r.Header
		}
		mu.Unlock()
	}))
	t.Cleanup(alive.Close)
	lost := httptest.NewServer(http.NotFoundHandler())
	lost.Close()
	addr := fmt.Sprintf("127.0.0.1:%d", ephemeral.FreePorts(t, 1)[0])
	cmd := exec.CommandContext(t.Context(), "/usr/sbin/haproxy", "-db", "-f", filepath.Join(root, "deploy/haproxy/haproxy.cfg"))
	admin := alive.Listener.Addr().String() // haproxy does not notice yet that an instance is lost
	cmd.Env = append(os.Environ(), "LISTEN="+addr, "A="+admin, "A_ADMIN="+admin, "B="+lost.Listener.Addr().String(), "B_ADMIN="+admin)
	assert.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	call := func() error {
		request := assert.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/cart", nil))(t)
		request.Host = "shop.example.com"
		for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-For", "Traceparent"} {
			request.Header.Set(name, "planted")
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		return nil
	}
	eventually(t, call)
	for range 6 {
		assert.Succeeds(t, call(), "a request after the loss of an instance")
	}
	mu.Lock()
	defer mu.Unlock()
	want := http.Header{
		"X-Forwarded-Host": {"shop.example.com"}, "X-Forwarded-Proto": {"http"}, "X-Forwarded-For": {"planted", "127.0.0.1"},
		"User-Agent": got["User-Agent"], "Accept-Encoding": {"gzip"},
	}
	assert.Equal(t, cmp.Diff(want, got), "", "headers of the instance")
}

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
			_, err := os.Stat(volume.Source)
			assert.That(t, volume.Type != types.VolumeTypeBind || err == nil, "%s mounts a file that does not exist: %v", name, err)
		}
		for _, port := range service.Ports {
			assert.Equal(t, port.HostIP, "127.0.0.1", "%s: everyone can reach the port %s", name, port.Published)
		}
		if build := service.Build; build != nil && (!service.ReadOnly || strings.Join(service.CapDrop, "") != "ALL") {
			t.Errorf("%s has a writable root or capabilities", name)
		}
	}
}
