package check_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// dockerfile is what the tests need to know about deploy/Dockerfile.
type dockerfile struct {
	build, final instructions.Stage
	warnings     []string // of BuildKit's linter
}

// parseDockerfile reads a Dockerfile of two stages, as BuildKit does.
func parseDockerfile(text string) (dockerfile, error) {
	parsed, err := parser.Parse(strings.NewReader(text))
	if err != nil {
		return dockerfile{}, err
	}
	var d dockerfile
	stages, _, err := instructions.Parse(parsed.AST, linter.New(&linter.Config{
		Warn: func(rule, _, _, message string, _ []parser.Range) {
			d.warnings = append(d.warnings, rule+": "+message)
		},
	}))
	if err != nil {
		return dockerfile{}, err
	}
	if len(stages) != 2 {
		return dockerfile{}, fmt.Errorf("%d stages, want one that builds and the final one", len(stages))
	}
	d.build, d.final = stages[0], stages[1]
	return d, nil
}

// commandsOf returns the instructions of one kind.
func commandsOf[C instructions.Command](stage instructions.Stage) (found []C) {
	for _, command := range stage.Commands {
		if c, ok := command.(C); ok {
			found = append(found, c)
		}
	}
	return found
}

// user returns the numbers of USER.
func (d dockerfile) user() (uid, gid int, err error) {
	users := commandsOf[*instructions.UserCommand](d.final)
	if len(users) != 1 {
		return 0, 0, fmt.Errorf("%d USER instructions, want one", len(users))
	}
	user, group, _ := strings.Cut(users[0].User, ":")
	uid, noUser := strconv.Atoi(user)
	gid, noGroup := strconv.Atoi(group)
	if err := errors.Join(noUser, noGroup); err != nil {
		return 0, 0, fmt.Errorf("USER %s: want two numbers: %w", users[0].User, err)
	}
	return uid, gid, nil
}

// command returns what the image runs: the words of ENTRYPOINT and of CMD.
func (d dockerfile) command() (entrypoint, arguments []string, err error) {
	entry := commandsOf[*instructions.EntrypointCommand](d.final)
	cmd := commandsOf[*instructions.CmdCommand](d.final)
	if len(entry) != 1 || len(cmd) != 1 || entry[0].PrependShell || cmd[0].PrependShell {
		return nil, nil, errors.New("want one ENTRYPOINT and one CMD, both as lists, since the image has no shell")
	}
	return entry[0].CmdLine, cmd[0].CmdLine, nil
}

// faults returns what is wrong with the image, without building it.
func (d dockerfile) faults() (found []string) {
	found = append(found, d.warnings...)
	if tag := tagOf(d.build.BaseName); tag == "" || tag == "latest" {
		found = append(found, d.build.BaseName+" has no version")
	}
	if d.final.BaseName != "scratch" {
		found = append(found, "the image begins with "+d.final.BaseName+", which has more than the program")
	}
	if uid, gid, err := d.user(); err != nil {
		found = append(found, err.Error())
	} else if uid == 0 || gid == 0 {
		found = append(found, "the process runs as root")
	}
	if _, _, err := d.command(); err != nil {
		found = append(found, err.Error())
	}
	if !slices.ContainsFunc(commandsOf[*instructions.ArgCommand](d.build), func(c *instructions.ArgCommand) bool {
		return slices.ContainsFunc(c.Args, func(a instructions.KeyValuePairOptional) bool { return a.Key == "VERSION" })
	}) {
		found = append(found, "the version is not a build argument")
	}
	for _, run := range commandsOf[*instructions.RunCommand](d.build) {
		if len(instructions.GetMounts(run)) == 0 {
			found = append(found, "a build without caches: "+strings.Join(run.CmdLine, " "))
		}
	}
	return found
}

// tagOf returns the tag of an image's name.
func tagOf(image string) string {
	_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return tag
}

func TestDockerfile_MakesAnImageOfTheProgramAlone(t *testing.T) {
	t.Parallel()
	text := read(t, "deploy/Dockerfile")
	d, err := parseDockerfile(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range d.faults() {
		t.Error(fault)
	}
	for _, broken := range []struct{ from, to, want string }{
		{"USER 65532:65532", "USER commerce", "want two numbers"},
		{"USER 65532:65532", "USER 0:0", "root"},
		{"FROM scratch", "FROM debian:12", "more than the program"},
		{"golang:1.26-bookworm", "golang:latest", "no version"},
		{"golang:1.26-bookworm", "golang", "no version"},
		{`ENTRYPOINT ["/commerce"]`, `ENTRYPOINT /commerce`, "as lists"},
		{"ARG VERSION=dev", "ARG OTHER=dev", "not a build argument"},
		{"--mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build", "", "without caches"},
	} {
		d, err := parseDockerfile(replaced(t, text, broken.from, broken.to))
		if err != nil {
			t.Errorf("with %q: %v", broken.to, err)
		} else if got := strings.Join(d.faults(), "\n"); !strings.Contains(got, broken.want) {
			t.Errorf("with %q: faults %q, want %q", broken.to, got, broken.want)
		}
	}
	if _, err := parseDockerfile(replaced(t, text, "USER 65532", "USR 65532")); err == nil {
		t.Error("accepted an unknown instruction")
	}
}

// read returns a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// replaced returns text with a part of it replaced, and fails if the part is not there.
func replaced(t *testing.T, text, from, to string) string {
	t.Helper()
	if !strings.Contains(text, from) {
		t.Fatalf("%q is not in the file: this test would prove nothing", from)
	}
	return strings.ReplaceAll(text, from, to)
}
