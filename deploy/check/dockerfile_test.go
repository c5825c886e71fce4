package check_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// tagOf returns the tag of an image's name.
func tagOf(image string) string {
	_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return tag
}

// What the rehearsal does not show: the image has nothing but what is copied into it, and its
// user is not root.
func TestDockerfile_MakesAnImageOfTheProgramAlone(t *testing.T) {
	t.Parallel()
	d, err := parseDockerfile(read(t, "deploy/Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, warning := range d.warnings {
		t.Error(warning)
	}
	uid, gid, err := d.user()
	if err != nil || uid == 0 || gid == 0 || d.final.BaseName != "scratch" || tagOf(d.build.BaseName) == "" {
		t.Errorf("from %s, built by %s, for user %d of group %d: %v", d.final.BaseName, d.build.BaseName, uid, gid, err)
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
