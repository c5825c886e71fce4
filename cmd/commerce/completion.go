package main

import (
	"embed"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

//go:embed completion
var completionScripts embed.FS

type completionCommand struct {
	Shell string `arg:"" help:"bash, zsh or fish."`
}

// Help explains how to load the scripts.
func (completionCommand) Help() string {
	return "To load the script in every new shell, add a line to its start-up file: source <(commerce completion bash) to ~/.bashrc, source <(commerce completion zsh) to ~/.zshrc after compinit, or commerce completion fish | source to ~/.config/fish/config.fish."
}

func (c *completionCommand) faults() faults {
	var f faults
	f.add("<shell>", oneOf(c.Shell, "bash", "zsh", "fish"))
	return f
}

// Run prints the script of a shell. The script runs completeCommand.
func (c *completionCommand) Run(out output) error {
	script, err := completionScripts.ReadFile("completion/commerce." + c.Shell)
	if err != nil {
		return err
	}
	_, err = out.Write(script)
	return err
}

// completeCommand is for the scripts. The words come after --, with that at the cursor last.
type completeCommand struct {
	Words []string `arg:"" optional:""`
}

// Run prints what may replace the last word, one word on each line, with its help after a tab. It
// prints nothing if the shell should complete a file.
func (c *completeCommand) Run(app *kong.Kong, out output) error {
	words, last := c.Words, ""
	if len(words) > 0 {
		words, last = words[:len(words)-1], words[len(words)-1]
	}
	node, value := selectedBy(app.Model.Node, words)
	if value != nil {
		return nil
	}
	for word, help := range candidates(node) {
		if strings.HasPrefix(word, last) && (last != "" || !strings.HasPrefix(word, "-")) {
			fmt.Fprintf(out, "%s\t%s\n", word, help)
		}
	}
	return nil
}

// selectedBy returns the command that words select, and the flag that waits for its value, nil if
// the last word is not such a flag.
func selectedBy(node *kong.Node, words []string) (*kong.Node, *kong.Flag) {
	var waiting *kong.Flag
	for _, word := range words {
		if waiting != nil {
			waiting = nil
			continue
		}
		if name, ok := strings.CutPrefix(word, "--"); ok {
			waiting = valueFlag(node, name)
			continue
		}
		for _, child := range node.Children {
			if child.Name == word && !child.Hidden {
				node = child
			}
		}
	}
	return node, waiting
}

// valueFlag returns the flag of a command with this name, nil if it takes no value.
func valueFlag(node *kong.Node, name string) *kong.Flag {
	for _, flag := range node.Flags {
		if flag.Name == name && !flag.IsBool() {
			return flag
		}
	}
	return nil
}

// candidates yields the commands and flags of a command, with the first sentences of their help.
func candidates(node *kong.Node) func(yield func(word, help string) bool) {
	return func(yield func(word, help string) bool) {
		for _, child := range node.Children {
			if !child.Hidden && !yield(child.Name, firstSentence(child.Help)) {
				return
			}
		}
		for _, argument := range node.Positional {
			if argument.Name == "shell" {
				for _, shell := range []string{"bash", "zsh", "fish"} {
					if !yield(shell, "") {
						return
					}
				}
			}
		}
		for _, group := range node.AllFlags(true) {
			for _, flag := range group {
				if !yield("--"+flag.Name, firstSentence(flag.Help)) {
					return
				}
			}
		}
	}
}

func firstSentence(help string) string {
	first, _, _ := strings.Cut(help, ". ")
	return strings.TrimSuffix(first, ".")
}
