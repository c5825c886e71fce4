package check_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"

	"commerce/deploy/assert"
)

// rehearsedVersion is the VERSION of the image that the tests build.
const rehearsedVersion = "v1.2.3-rehearsal"

// image is what `docker build` would make of deploy/Dockerfile, made without Docker: the
// same files, compiled by the same command, and put where the Dockerfile puts them.
type image struct {
	bases                 []string // of the stages
	warnings              []string // of BuildKit's linter
	uid, gid              int
	entrypoint, arguments []string
	files                 map[string]string // where each file is on this machine, by its path in the image
}

// builtImage returns the image, which is built once for all tests of this process.
func builtImage(t *testing.T) image { t.Helper(); return assert.Must(buildImage())(t) }

var buildImage = sync.OnceValues(func() (i image, err error) {
	text, err := os.Open(filepath.Join(root, "deploy/Dockerfile"))
	if err != nil {
		return i, err
	}
	defer text.Close()
	parsed, err := parser.Parse(text)
	if err != nil {
		return i, err
	}
	stages, defaults, err := instructions.Parse(parsed.AST, linter.New(&linter.Config{
		Warn: func(rule, _, _, message string, _ []parser.Range) { i.warnings = append(i.warnings, rule+": "+message) },
	}))
	if err != nil {
		return i, err
	}
	source := filepath.Join(scratch, "source")
	if err := copyContext(source); err != nil {
		return i, fmt.Errorf("copy the build's context: %w", err)
	}
	i.files = map[string]string{}
	var workdir string
	arguments := []string{"GOFLAGS="} // those of this process are not the builder's
	for n, stage := range stages {
		i.bases = append(i.bases, os.Expand(stage.BaseName, func(name string) (value string) {
			for _, argument := range defaults {
				if argument.Args[0].Key == name {
					value = argument.Args[0].ValueString()
				}
			}
			return value
		}))
		for _, command := range stage.Commands {
			switch command := command.(type) {
			case *instructions.WorkdirCommand:
				workdir = command.Path
			case *instructions.CopyCommand:
				if n == 0 && !slices.Equal(command.SourcePaths, []string{"."}) {
					err = errors.New("want to copy all that Dockerfile.dockerignore lets through")
				} else if n > 0 {
					err = i.copy(command, workdir, source)
				}
			case *instructions.ArgCommand:
				for _, a := range command.Args {
					given := map[string]string{"VERSION": rehearsedVersion, "TARGETOS": "linux", "TARGETARCH": runtime.GOARCH}
					arguments = append(arguments, a.Key+"="+given[a.Key])
				}
			case *instructions.RunCommand:
				cmd := exec.Command("/bin/sh", "-c", strings.Join(command.CmdLine, " "))
				cmd.Dir, cmd.Env = source, append(os.Environ(), arguments...)
				if out, failed := cmd.CombinedOutput(); failed != nil {
					err = fmt.Errorf("%w\n%s", failed, out)
				}
			case *instructions.UserCommand:
				_, err = fmt.Sscanf(command.User, "%d:%d", &i.uid, &i.gid)
			case *instructions.EntrypointCommand:
				i.entrypoint = command.CmdLine
			case *instructions.CmdCommand:
				i.arguments = command.CmdLine
			case *instructions.ExposeCommand:
			default:
				err = errors.New("this test cannot rehearse it")
			}
			if err != nil {
				return i, fmt.Errorf("%s: %w", command, err)
			}
		}
	}
	return i, nil
})

// copyContext copies what Docker would: what Dockerfile.dockerignore does not name.
func copyContext(to string) error {
	ignored, err := os.Open(filepath.Join(root, "deploy/Dockerfile.dockerignore"))
	if err != nil {
		return err
	}
	defer ignored.Close()
	patterns, err := ignorefile.ReadAll(ignored)
	if err != nil {
		return err
	}
	matcher, err := patternmatcher.New(patterns)
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if entry.Name() == ".git" || entry.Name() == "node_modules" || entry.Name() == "bin" {
				return filepath.SkipDir // ignored too, and large
			}
			return nil
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if ignored, err := matcher.MatchesOrParentMatches(filepath.ToSlash(relative)); err != nil || ignored {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return write(filepath.Join(to, relative), content)
	})
}

// copy notes the files that the last stage copies from the first. Those outside of the working
// directory come from Debian, as they do in the builder.
func (i image) copy(command *instructions.CopyCommand, workdir, source string) error {
	for _, from := range command.SourcePaths {
		to := command.DestPath
		if strings.HasSuffix(to, "/") {
			to = path.Join(to, path.Base(from))
		}
		if inside, ok := strings.CutPrefix(from, workdir+"/"); ok {
			from = filepath.Join(source, inside)
		}
		if _, err := os.Stat(from); err != nil {
			return fmt.Errorf("%w (sh deploy/ephemeral/install.sh)", err)
		}
		i.files[to] = from
	}
	return nil
}

// write writes a file that everyone may read and execute.
func write(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o755)
}

// Beyond the rehearsal: the image has only what is copied, and its user is not root.
func TestDockerfile_MakesAnImageOfTheProgramAlone(t *testing.T) {
	t.Parallel()
	i := builtImage(t)
	for _, warning := range i.warnings {
		t.Error(warning)
	}
	assert.That(t, i.uid != 0 && i.gid != 0 && len(i.bases) == 2 && tagOf(i.bases[0]) != "" && i.bases[1] == "scratch" && len(i.entrypoint) == 1,
		"from %s, for user %d of group %d, runs %q", i.bases, i.uid, i.gid, i.entrypoint)
}

func tagOf(image string) string {
	_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return tag
}

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

type service struct {
	cmd           *exec.Cmd
	public, admin string // base URLs
}

// serve runs a command that serves, on addresses that the system chooses.
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

func (s service) wantStops(t *testing.T) {
	t.Helper()
	assert.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	assert.Succeeds(t, s.cmd.Wait(), "after SIGTERM")
}
