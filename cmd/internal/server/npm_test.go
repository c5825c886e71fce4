package server_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// installPackages copies a folder of testdata to a temporary directory, installs its pinned
// npm packages there, and returns that directory.
func installPackages(t *testing.T, folder string) string {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is not installed (sh deploy/ephemeral/install.sh)", program)
		}
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", folder))); err != nil {
		t.Fatal(err)
	}
	npm := command(t, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	npm.Dir = dir
	if said, err := npm.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, said)
	}
	return dir
}
