// Package clients_test generates clients from docs/openapi.yaml, and compiles them. It is a
// module of its own, so that the service does not depend on the generators.
package clients_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// document is the OpenAPI document, from here.
const document = "../../docs/openapi.yaml"

// absolute returns the absolute path of a file.
func absolute(t *testing.T, file string) string {
	t.Helper()
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs a program in a folder. It must exit with 0.
func run(t *testing.T, dir, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", filepath.Base(program), args, err, said)
	}
}

// packages is the folder in which the pinned npm packages of testdata/npm are installed.
// The first test that needs them installs them for all.
var packages struct {
	install sync.Once
	dir     string
}

func TestMain(m *testing.M) {
	status := m.Run()
	if packages.dir != "" {
		_ = os.RemoveAll(packages.dir)
	}
	os.Exit(status)
}

// npm returns the path of a program of the npm packages, and a new folder beside them, in
// which TypeScript finds its libraries.
func npm(t *testing.T, program string) (path, dir string) {
	t.Helper()
	packages.install.Do(func() {
		if _, err := exec.LookPath("npm"); err != nil {
			t.Fatal("npm is not installed (sh deploy/ephemeral/install.sh)")
		}
		var err error
		if packages.dir, err = os.MkdirTemp("", "commerce-clients-"); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(packages.dir, os.DirFS("testdata/npm")); err != nil {
			t.Fatal(err)
		}
		run(t, packages.dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	})
	dir = filepath.Join(packages.dir, t.Name())
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(packages.dir, "node_modules/.bin", program), dir
}
