package check_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// rehearsedVersion is the VERSION of the image that the tests build.
const rehearsedVersion = "v1.2.3-rehearsal"

// image is what `docker build` would make of deploy/Dockerfile, made without Docker: the
// same files, compiled by the same command, and put where the Dockerfile puts them.
type image struct {
	dockerfile
	files map[string]string // where each file is on this machine, by its path in the image
}

// buildImage builds the image once for all tests of this process.
var buildImage = sync.OnceValues(func() (image, error) {
	text, err := os.ReadFile(filepath.Join(root, "deploy/Dockerfile"))
	if err != nil {
		return image{}, err
	}
	d, err := parseDockerfile(string(text))
	if err != nil {
		return image{}, err
	}
	ignored, err := os.ReadFile(filepath.Join(root, "deploy/Dockerfile.dockerignore"))
	if err != nil {
		return image{}, err
	}
	source := filepath.Join(scratch, "source")
	if err := copyContext(source, string(ignored)); err != nil {
		return image{}, fmt.Errorf("copy the build's context: %w", err)
	}
	workdir, err := build(d.build, source)
	if err != nil {
		return image{}, err
	}
	files, err := copied(d.final, workdir, source)
	return image{d, files}, err
})

// copyContext copies what Docker would send to the builder: the files that .dockerignore
// does not name.
func copyContext(to, ignored string) error {
	patterns, err := ignorefile.ReadAll(strings.NewReader(ignored))
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
		target := filepath.Join(to, relative)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o644)
	})
}

// build runs the commands of a stage whose working directory is source, and returns the path
// that this directory has in the stage.
func build(stage instructions.Stage, source string) (workdir string, err error) {
	arguments := []string{"GOFLAGS="} // those of this process are not the builder's
	given := map[string]string{"VERSION": rehearsedVersion, "TARGETOS": "linux", "TARGETARCH": runtime.GOARCH}
	for _, command := range stage.Commands {
		switch command := command.(type) {
		case *instructions.WorkdirCommand:
			workdir = command.Path
		case *instructions.CopyCommand:
			if command.From != "" || command.DestPath != "." || !slices.Equal(command.SourcePaths, []string{"."}) {
				return "", fmt.Errorf("this test cannot rehearse %s", command)
			}
		case *instructions.ArgCommand:
			for _, argument := range command.Args {
				value, ok := given[argument.Key]
				if !ok {
					return "", fmt.Errorf("no value for the build argument %s", argument.Key)
				}
				arguments = append(arguments, argument.Key+"="+value)
			}
		case *instructions.RunCommand:
			cmd := exec.Command("/bin/sh", "-c", strings.Join(command.CmdLine, " "))
			cmd.Dir, cmd.Env = source, append(os.Environ(), arguments...)
			if out, err := cmd.CombinedOutput(); err != nil {
				return "", fmt.Errorf("%s: %w\n%s", command, err, out)
			}
		default:
			return "", fmt.Errorf("this test cannot rehearse %s", command)
		}
	}
	return workdir, nil
}

// copied returns where the files are that a stage copies from the one before, by their paths
// in the image. Those outside of the working directory come from Debian, as they do in the
// builder.
func copied(stage instructions.Stage, workdir, source string) (map[string]string, error) {
	files := map[string]string{}
	for _, c := range commandsOf[*instructions.CopyCommand](stage) {
		for _, from := range c.SourcePaths {
			to := c.DestPath
			if strings.HasSuffix(to, "/") {
				to = path.Join(to, path.Base(from))
			}
			if inside, ok := strings.CutPrefix(from, workdir+"/"); ok {
				from = filepath.Join(source, inside)
			}
			if _, err := os.Stat(from); err != nil {
				return nil, fmt.Errorf("%s: %w (sh deploy/ephemeral/install.sh)", c, err)
			}
			files[to] = from
		}
	}
	return files, nil
}

// builtImage returns the image.
func builtImage(t *testing.T) image {
	t.Helper()
	built, err := buildImage()
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// program returns the path of the program on this machine.
func (i image) program(t *testing.T) string {
	t.Helper()
	entrypoint, _, err := i.command()
	if err != nil {
		t.Fatal(err)
	}
	return i.files[entrypoint[0]]
}
