package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProgress_IsShownOnATerminalOnly(t *testing.T) {
	t.Parallel()
	var terminal strings.Builder // anything but a file counts as one
	bar := startProgress(&terminal, "rows", 3)
	_ = bar.Add(3)
	bar.end()
	if got := terminal.String(); !strings.Contains(got, "rows 100%") || !strings.Contains(got, "3/3") || !strings.HasSuffix(got, "\n") {
		t.Errorf("%q", got)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	bar = startProgress(log, "rows", 3)
	_ = bar.Add(3)
	bar.end()
	if info, err := log.Stat(); err != nil || info.Size() != 0 {
		t.Errorf("a file has %d bytes, %v", info.Size(), err)
	}
}
