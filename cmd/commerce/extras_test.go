package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"commerce/deploy/assert"
)

// Each extra can be left out: without its line and its file, the program builds, and does not have its package.
func TestExtras_CanEachBeLeftOut(t *testing.T) {
	t.Parallel()
	list := source(t, "cmd/commerce/extras.go")
	for line, extra := range map[string]struct{ file, pkg string }{
		"withReplicas(),": {"replicas.go", "subscriptions/replicas"},
		"withFeed(),":     {"feed.go", "subscriptions/feed"},
		"withHistory(),":  {"history.go", ""}, // figures need the package
		"withFigures(),":  {"figures.go", "subscriptions/figures"},
	} {
		t.Run(extra.file, func(t *testing.T) {
			t.Parallel()
			shorter := strings.Replace(list, "\t\t"+line+"\n", "", 1)
			assert.Require(t, shorter != list, "extras.go has no line %s", line)
			deps := dependenciesWith(t, map[string]string{"extras.go": shorter, extra.file: ""})
			assert.That(t, !strings.Contains(deps, module+"/"+extra.pkg+"\n"), "without %s, the program still has %s", extra.file, extra.pkg)
			assert.That(t, strings.Contains(deps, module+"/subscriptions/postgres\n"), "the program lacks the list: %s", deps)
		})
	}
}

// dependenciesWith compiles the program with other texts of its files, or without files that have none. It returns
// the packages of the program.
func dependenciesWith(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, replace := t.TempDir(), map[string]string{}
	for name, text := range files {
		at := assert.Must(filepath.Abs(name))(t)
		if replace[at] = ""; text != "" {
			replace[at] = filepath.Join(dir, name)
			assert.NoError(t, os.WriteFile(replace[at], []byte(text), 0o644))
		}
	}
	overlay := filepath.Join(dir, "overlay.json")
	assert.NoError(t, os.WriteFile(overlay, assert.Must(json.Marshal(map[string]any{"Replace": replace}))(t), 0o644))
	out, err := exec.CommandContext(t.Context(), "go", "list", "-tags=nomsgpack", "-overlay="+overlay, "-export", "-deps", ".").CombinedOutput()
	assert.Require(t, err == nil, "%v\n%s", err, out)
	return string(out)
}
