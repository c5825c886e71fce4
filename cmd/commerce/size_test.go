package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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
	if err := build.Run(); err != nil {
		t.Fatalf("go build: %v\n%.1000s", err, edges.String())
	}
	if !strings.Contains(edges.String(), "main.main") {
		t.Fatalf("the linker does not say what it keeps: %.1000s", edges.String())
	}
	for edge := range strings.Lines(edges.String()) {
		if strings.Contains(edge, "<ReflectMethod>") {
			t.Errorf("finds methods by name: %s", edge)
		}
	}
	built, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if built.Size() > maxSize {
		t.Errorf("the program has %d bytes, more than %d", built.Size(), maxSize)
	}
}
