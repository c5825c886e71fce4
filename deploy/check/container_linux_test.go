package check_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// container is a folder with the files of the image, in which programs run.
type container struct {
	image
	dir string
}

// container creates a container with further files: their content by their paths in it.
func (i image) container(t *testing.T, further map[string]string) container {
	t.Helper()
	dir, err := os.MkdirTemp(scratch, "container-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c := container{i, dir}
	for to, from := range i.files {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		c.add(t, to, string(content))
	}
	for to, content := range further {
		c.add(t, to, content)
	}
	return c
}

// add writes a file of the container that everyone may read and execute.
func (c container) add(t *testing.T, name, content string) {
	t.Helper()
	target := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(target, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
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
func (c container) command(t *testing.T, env []string, arguments ...string) *exec.Cmd {
	t.Helper()
	uid, gid, err := c.user()
	if err != nil {
		t.Fatal(err)
	}
	entrypoint, _, err := c.image.command()
	if err != nil {
		t.Fatal(err)
	}
	isolate, user := []string{"--mount", "--propagation", "private"}, "real"
	if os.Geteuid() != 0 {
		isolate, user = append(isolate, "--map-root-user"), "mapped"
	}
	arguments = slices.Concat(isolate, []string{"/bin/sh", "-euc", enter, "enter", c.dir, fmt.Sprint(uid), fmt.Sprint(gid), user}, entrypoint, arguments)
	cmd := exec.CommandContext(t.Context(), "unshare", arguments...)
	cmd.Env = slices.Clone(env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// run returns what a command in the container prints, and fails unless it succeeds.
func (c container) run(t *testing.T, env []string, arguments ...string) string {
	t.Helper()
	out, err := c.command(t, env, arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return string(out)
}

// service is a running `commerce serve`.
type service struct {
	cmd           *exec.Cmd
	public, admin string // base URLs
}

// serve runs a command that serves, and waits until it does. Both addresses are chosen by the
// system. It ends with the test.
func (c container) serve(t *testing.T, env []string, arguments ...string) service {
	t.Helper()
	cmd := c.command(t, append(slices.Clone(env), "ADDR=127.0.0.1:0", "ADMIN_ADDR=127.0.0.1:0"), arguments...)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
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
