package check_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"commerce/deploy/assert"
)

// container is a folder with the files of the image, in which programs run.
type container struct {
	image
	dir string
}

// container creates a container with further files: their content by their paths in it.
func (i image) container(t *testing.T, further map[string]string) container {
	t.Helper()
	dir := assert.Must(os.MkdirTemp(scratch, "container-"))(t)
	assert.NoError(t, os.Chmod(dir, 0o755))
	all := map[string]string{}
	for to, from := range i.files {
		all[to] = string(assert.Must(os.ReadFile(from))(t))
	}
	maps.Copy(all, further)
	for to, content := range all {
		assert.NoError(t, write(filepath.Join(dir, to), []byte(content)))
	}
	return container{i, dir}
}

// enter makes the folder $1 read-only, in a mount namespace of its own, and then the root of
// a program that runs as user $2 and group $3. If $4 is "mapped", these are only names for
// the caller.
const enter = `
dir=$1 uid=$2 gid=$3 user=$4
shift 4
mount --bind "$dir" "$dir"
mount -o remount,bind,ro "$dir"
if [ "$user" = mapped ]; then
	exec unshare --map-user="$uid" --map-group="$gid" --root="$dir" -- "$@"
fi
exec unshare --root="$dir" --setgid="$gid" --setuid="$uid" -- "$@"
`

// command returns the image's program with arguments, as it would run in the container: with
// a read-only root, as the user of the image, with no environment but env. It needs root, or
// a kernel that lets every user create namespaces.
func (c container) command(t *testing.T, env map[string]string, arguments ...string) *exec.Cmd {
	t.Helper()
	isolate, user := []string{"--mount", "--propagation", "private"}, "real"
	if os.Geteuid() != 0 {
		isolate, user = append(isolate, "--map-root-user"), "mapped"
	}
	arguments = slices.Concat(isolate, []string{"/bin/sh", "-euc", enter, "enter", c.dir, fmt.Sprint(c.uid), fmt.Sprint(c.gid), user}, c.entrypoint, arguments)
	cmd := exec.CommandContext(t.Context(), "unshare", arguments...)
	cmd.Env = []string{} // not this process's
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// run returns what a command in the container prints, and fails unless it succeeds.
func (c container) run(t *testing.T, env map[string]string, arguments ...string) string {
	t.Helper()
	out, err := c.command(t, env, arguments...).CombinedOutput()
	assert.Require(t, err == nil, "%s: %v\n%s", strings.Join(arguments, " "), err, out)
	return string(out)
}

// service is a running `commerce serve`.
type service struct {
	cmd           *exec.Cmd
	public, admin string // base URLs
}

// serve runs a command that serves, and waits until it does. Both addresses are chosen by the
// system. It ends with the test.
func (c container) serve(t *testing.T, env map[string]string, arguments ...string) service {
	t.Helper()
	env = maps.Clone(env)
	env["ADDR"], env["ADMIN_ADDR"] = "127.0.0.1:0", "127.0.0.1:0"
	cmd := c.command(t, env, arguments...)
	log := assert.Must(cmd.StderrPipe())(t)
	assert.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(log)
	var printed strings.Builder
	for lines.Scan() {
		fmt.Fprintln(&printed, lines.Text())
		var line struct{ Msg, Addr, Admin string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
			go func() {
				for lines.Scan() { // the process must be able to write
				}
			}()
			return service{cmd, "http://" + line.Addr, "http://" + line.Admin}
		}
	}
	t.Fatalf("%s does not serve:\n%s", strings.Join(arguments, " "), printed.String())
	return service{}
}

// want sends a GET request and checks the status of the response. It returns the body.
func (s service) want(t *testing.T, status int, url string, headers ...string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	assert.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	assert.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	assert.That(t, err == nil && response.StatusCode == status,
		"GET %s: status %d, want %d: %v %s", url, response.StatusCode, status, err, body)
	return string(body)
}

// wantStops checks that the process exits with status 0 after SIGTERM.
func (s service) wantStops(t *testing.T) {
	t.Helper()
	assert.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	assert.Succeeds(t, s.cmd.Wait(), "after SIGTERM")
}
