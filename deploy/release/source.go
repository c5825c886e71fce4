package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// source is the files of a commit, without anything that is not committed.
type source struct {
	dir       string
	commit    string
	committed time.Time // the time of all files of the release
}

// checkOut writes the files of a commit to a new folder.
func checkOut(ctx context.Context, repository, commit, dir string) (source, error) {
	root, err := output(ctx, repository, nil, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return source{}, err
	}
	repository = strings.TrimSpace(root)
	about, err := output(ctx, repository, nil, "git", "log", "-1", "--format=%H %ct", "--end-of-options", commit, "--") // a tag, too
	if err != nil {
		return source{}, err
	}
	id, stamp, _ := strings.Cut(strings.TrimSpace(about), " ")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return source{}, fmt.Errorf("time of commit %s: %w", id, err)
	}
	index := []string{"GIT_INDEX_FILE=" + dir + ".index"} // the repository's own stays as it is
	if _, err := output(ctx, repository, index, "git", "read-tree", id); err != nil {
		return source{}, err
	}
	if _, err := output(ctx, repository, index, "git", "checkout-index", "--all", "--prefix="+dir+"/"); err != nil {
		return source{}, err
	}
	return source{dir, id, time.Unix(seconds, 0).UTC()}, nil
}

var (
	released = regexp.MustCompile(`^\d+\.\d+\.\d+$`)
	fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`)
)

// mayBecome returns why these files may not be released as a version, or nil. A version such
// as 1.2.0 needs an entry in the changelog, and the same version in the OpenAPI document.
func (s source) mayBecome(version string) error {
	if !fileName.MatchString(version) {
		return fmt.Errorf("version %q: want 1 to 64 of A-Za-z0-9._+- that begin with a letter or digit", version)
	}
	if !released.MatchString(version) {
		return nil
	}
	for _, needed := range []struct{ file, pattern string }{
		{"docs/changelog.md", `(?m)^## ` + regexp.QuoteMeta(version) + ` \(\d{4}-\d\d-\d\d\)$`},
		{"docs/openapi.yaml", `(?m)^  version: ` + regexp.QuoteMeta(version) + `$`},
	} {
		text, err := os.ReadFile(filepath.Join(s.dir, needed.file))
		if err != nil {
			return err
		}
		if !regexp.MustCompile(needed.pattern).Match(text) {
			return fmt.Errorf("version %s: no line in %s matches %s", version, needed.file, needed.pattern)
		}
	}
	return nil
}

// compile builds the service with the Makefile's own command, and returns the program.
func (s source) compile(ctx context.Context, version string, p platform) ([]byte, error) {
	if _, err := output(ctx, s.dir, p.environment(), "make", "--no-print-directory", "build", "VERSION="+version); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(s.dir, "bin/commerce"))
}

// environment is what go commands need to build for the platform, and to build the same
// program everywhere. A C compiler, and settings of the machine's owner, would change it.
func (p platform) environment() []string {
	return []string{
		"GOOS=" + p.system, "GOARCH=" + p.architecture, "GOAMD64=v1", "GOARM64=v8.0",
		"CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off",
		"MAKEFLAGS=", "MAKEOVERRIDES=", // of the make that runs this program
	}
}

// output runs a program in a folder, with additions to the environment, and returns what it
// prints. What a failing program prints is in the error.
func output(ctx context.Context, dir string, environment []string, program string, args ...string) (string, error) {
	var out, failure bytes.Buffer
	c := exec.CommandContext(ctx, program, args...)
	c.Dir, c.Stdout, c.Stderr = dir, &out, &failure
	c.Env = append(os.Environ(), environment...)
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, bytes.TrimSpace(failure.Bytes()))
	}
	return out.String(), nil
}
