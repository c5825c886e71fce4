package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// maxSize is the size in bytes that the stripped program may have, without debug information.
const maxSize = 32_000_000

// If one function that is reachable finds methods by name, the linker keeps all exported methods
// of all packages, which is a third of the program. Libraries do so without need: they import
// text/template, or call methods of the values that they are given.
func TestProgram_IsSmallBecauseNothingFindsMethodsByName(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	file := filepath.Join(t.TempDir(), "commerce")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags=nomsgpack", "-trimpath", "-ldflags=-s -w -dumpdep", "-o", file, ".")
	var edges bytes.Buffer // which function needs which, on standard error
	build.Stderr = &edges
	err := build.Run()
	assert.Require(t, err == nil, "go build: %v\n%.1000s", err, edges.String())
	assert.Require(t, strings.Contains(edges.String(), "main.main"),
		"the linker does not say what it keeps: %.1000s", edges.String())
	for edge := range strings.Lines(edges.String()) {
		assert.That(t, !strings.Contains(edge, "<ReflectMethod>"), "finds methods by name: %s", edge)
	}
	size := assert.Must(os.Stat(file))(t).Size()
	assert.That(t, size <= maxSize, "the program has %d bytes, more than %d", size, maxSize)
}
