package main

import (
	"os/exec"
	"strings"
	"testing"
)

// runTarget runs a target of the Makefile with another program instead of go, and echo instead
// of the service, and returns the output.
func runTarget(t *testing.T, target, goProgram string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-C", "../..", target, "GO="+goProgram, "PROGRAM=echo").CombinedOutput()
	if err != nil {
		t.Fatalf("make %s: %v\n%s", target, err, out)
	}
	return string(out)
}

func TestMake_BuildsAStrippedProgramThatKnowsItsCommit(t *testing.T) {
	t.Parallel()
	commit, err := exec.CommandContext(t.Context(), "git", "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		t.Skip("not a clone: ", err)
	}
	built := runTarget(t, "build", "echo")
	for _, flag := range []string{"-s -w", "-X main.version=" + strings.TrimSpace(string(commit))} {
		if !strings.Contains(built, flag) {
			t.Errorf("make build runs %q, want %q in it", built, flag)
		}
	}
}

func TestMake_CompilesWithoutTheCodecThatGinDoesNotNeed(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"run", "build", "go-test"} {
		if said := runTarget(t, target, "printenv GOFLAGS; :"); !strings.Contains(said, "-tags=nomsgpack") {
			t.Errorf("make %s: GOFLAGS without nomsgpack: %q", target, said)
		}
	}
}

func TestMake_RunAnnouncesThatItDownloadsAndCompiles(t *testing.T) {
	t.Parallel()
	if said := runTarget(t, "run", "echo GO:"); !strings.HasPrefix(said, "Downloading modules and compiling") || !strings.Contains(said, "GO: build") || !strings.HasSuffix(said, "\ndemo\n") {
		t.Errorf("make run prints %q, want an announcement before it starts", said)
	}
}
