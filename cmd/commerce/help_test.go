package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"commerce/deploy/assert"
)

// everyCommand lists all commands of the program.
var everyCommand = []string{
	"", "demo", "serve", "check", "migrate", "migrate up", "migrate down", "migrate status", "seed",
	"subscriptions", "subscriptions prune", "token", "token customer", "token store", "token list", "token revoke", "cart", "cart show", "cart erase", "completion", "version",
}

func TestHelp_FitsEightyColumnsAndSucceeds(t *testing.T) {
	t.Parallel()
	for _, command := range everyCommand {
		flag := append(strings.Fields(command), "--help")
		word := append([]string{"help"}, strings.Fields(command)...)
		for _, args := range [][]string{flag, word} {
			got := ended(t, program(t, []string{"COLUMNS=200"}, args...))
			assert.That(t, got.status == 0 && got.errors == "" && strings.HasPrefix(got.out, "Usage: commerce "+command),
				"commerce %v: %+v", args, got)
			for line := range strings.Lines(got.out) {
				n := utf8.RuneCountInString(strings.TrimRight(line, "\n"))
				assert.That(t, n <= 80, "commerce %v prints a line of %d columns: %q", args, n, line)
			}
		}
	}
	alone := ended(t, program(t, nil))
	assert.That(t, alone.status == 0 && strings.HasPrefix(alone.out, "Usage: commerce") &&
		strings.Count(alone.out, "\n") <= 24, "commerce alone: %+v", alone)
	for _, before := range []string{"--help demo", "--help token store"} {
		want := "Usage: commerce" + strings.TrimPrefix(before, "--help")
		got := ended(t, program(t, nil, strings.Fields(before)...))
		assert.That(t, got.status == 0 && strings.HasPrefix(got.out, want), "commerce %s: %+v, want %q", before, got, want)
	}
	got := ended(t, program(t, nil, "help", "nothing"))
	assert.That(t, got.status == 2 && got.out == "", "commerce help nothing: %+v, want a failure", got)
}

func TestHelp_ShowsCustomerAndTokenAsAlternatives(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"show", "erase"} {
		got := ended(t, program(t, nil, "cart", command, "--help"))
		want := "Usage: commerce cart " + command + " (--customer=ID | --token=TOKEN) [flags]\n"
		assert.That(t, strings.HasPrefix(got.out, want), "help begins %.90q, want %q", got.out, want)
	}
}

// The scripts that the shells load ask the program.
func TestCompletion_KnowsCommandsAndFlags(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"token\x00":     "customer store list revoke",
		"seed\x00--sub": "--subscriptions",
	} {
		got := ended(t, program(t, nil, append([]string{"__complete"}, strings.Split(line, "\x00")...)...))
		for word := range strings.SplitSeq(want, " ") {
			assert.That(t, strings.Contains(got.out, word+"\t"), "%q: completes %q, want %s", line, got.out, word)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		got := ended(t, program(t, nil, "completion", shell))
		assert.That(t, got.status == 0 && strings.Contains(got.out, "commerce"), "%s: ended with %d", shell, got.status)
	}
}
