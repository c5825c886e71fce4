package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// commerceIn returns a directory with the program as "commerce", for a shell's PATH.
func commerceIn(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "commerce")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestCompletion_CompletesInEveryShell(t *testing.T) {
	t.Parallel()
	shells := map[string]string{
		"bash": `source <(commerce completion bash)
			COMP_WORDS=($LINE "$WORD"); COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )); _commerce; printf '%s\n' "${COMPREPLY[@]}"`,
		"zsh": `autoload -Uz compinit; compinit -u -D; source <(commerce completion zsh)
			_describe() { print -l -- "${(@P)2}" }; _files() { : }
			words=(${=LINE} "$WORD"); CURRENT=$#words; _commerce | sed 's/:.*//'`,
		"fish": `commerce completion fish | source; complete -C "$LINE $WORD" | cut -f 1`,
	}
	for _, tc := range []struct {
		line, word string
		want       []string
	}{
		{"commerce", "to", []string{"token"}},
		{"commerce token", "", []string{"customer", "store", "list", "revoke"}},
		{"commerce subscriptions export --store 1", "--la", []string{"--language"}},
		{"commerce seed", "--sub", []string{"--subscriptions"}},
		{"commerce completion", "z", []string{"zsh"}},
		{"commerce", "complete", nil}, // hidden
	} {
		for shell, script := range shells {
			t.Run(shell+" "+tc.line+" "+tc.word, func(t *testing.T) {
				t.Parallel()
				cmd := exec.CommandContext(t.Context(), shell, "-c", script)
				cmd.Dir = t.TempDir()
				cmd.Env = []string{asProgram + "=1", "PATH=" + commerceIn(t) + ":" + os.Getenv("PATH"), "HOME=" + cmd.Dir, "LINE=" + tc.line, "WORD=" + tc.word, "TERM=dumb"}
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				got := strings.Fields(string(out))
				slices.Sort(got)
				want := slices.Sorted(slices.Values(tc.want))
				if !slices.Equal(got, want) {
					t.Errorf("completes %q, want %q", got, want)
				}
			})
		}
	}
}

// Bash does not expand the command's ~ for a completion.
func TestCompletion_FindsAProgramInTheHomeDirectory(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", `source <("$HOME/commerce" completion bash)
		COMP_WORDS=('~/commerce' mig); COMP_CWORD=1; _commerce; printf '%s\n' "${COMPREPLY[@]}"`)
	cmd.Env = []string{asProgram + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + commerceIn(t)}
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "migrate\n" {
		t.Errorf("completes %q, %v", out, err)
	}
}

func TestCompletion_LeavesTheValueOfAFlagToTheShell(t *testing.T) {
	t.Parallel()
	got := ended(t, program(t, nil, "complete", "--", "import", "--products", ""))
	if got.status != 0 || got.out != "" || got.errors != "" {
		t.Errorf("%+v, want nothing, so that the shell completes files", got)
	}
}

func TestCompletion_KnowsOnlySomeShells(t *testing.T) {
	t.Parallel()
	if got := ended(t, program(t, nil, "completion", "tcsh")); got.status != 2 || !strings.Contains(got.errors, "<shell>") {
		t.Errorf("%+v, want a failure", got)
	}
}
