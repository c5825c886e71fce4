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
		_, err := exec.LookPath(program)
		require(t, err == nil, "%s is not installed (sh deploy/ephemeral/install.sh)", program)
	}
	dir := t.TempDir()
	noError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", folder))))
	npm := command(t, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	npm.Dir = dir
	if said, err := npm.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, said)
	}
	return dir
}
