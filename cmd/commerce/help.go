package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// helpWidth is the maximum number of columns of help texts.
const helpWidth = 80

// asksForHelp turns "help COMMAND" into "COMMAND --help", and no arguments into --help.
func asksForHelp(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	}
	return args
}

// printHelp prints kong's help below our own usage line. The help of the whole program
// also lists the settings of serve.
func printHelp(options kong.HelpOptions, c *kong.Context) error {
	options.NoAppSummary = true
	selected := c.Selected()
	if selected == nil {
		fmt.Fprintf(c.Stdout, "Usage: %s <command> [flags]\n", c.Model.Name)
	} else {
		fmt.Fprintf(c.Stdout, "Usage: %s %s\n", c.Model.Name, usage(selected))
	}
	if err := kong.DefaultHelpPrinter(options, c); err != nil || selected != nil {
		return err
	}
	fmt.Fprint(c.Stdout, "\nSettings of serve. Those of demo are the same, without DATABASE_URL,\nDATABASE_REPLICA_URL, REPLICA_MAX_LAG, REDIS_URL and DRAIN_DELAY:\n\n")
	for _, command := range c.Model.Children {
		if command.Name == "serve" {
			printSettings(c.Stdout, command.Flags)
		}
	}
	fmt.Fprint(c.Stdout, "\nExit status: 0 for success, 1 for a failure, and 2 for wrong arguments or\nsettings, such as an address that is in use.\n")
	return nil
}

// usage is kong's summary of a command, with mutually exclusive required flags shown as
// alternatives.
func usage(command *kong.Node) string {
	alternatives := map[string][]string{}
	for _, flag := range command.Flags {
		if flag.Required && len(flag.Xor) == 1 {
			alternatives[flag.Xor[0]] = append(alternatives[flag.Xor[0]], flag.Summary())
		}
	}
	summary := command.Summary()
	for _, flags := range alternatives {
		summary = strings.Replace(summary, strings.Join(flags, " "), "("+strings.Join(flags, " | ")+")", 1)
	}
	return summary
}

func printSettings(w io.Writer, flags []*kong.Flag) {
	for _, flag := range flags {
		if len(flag.Envs) > 0 {
			printWrapped(w, fmt.Sprintf("  %-20s  %-14s  ", flag.Envs[0], cmp.Or(flag.Default, "–")), flag.Help, helpWidth)
		}
	}
}

// printWrapped prints text in lines of at most width columns. The lines after the first
// are indented by the width of label.
func printWrapped(w io.Writer, label, text string, width int) {
	indent := strings.Repeat(" ", len([]rune(label)))
	line := label
	for _, word := range strings.Fields(text) {
		if len([]rune(line))+len([]rune(word)) > width {
			fmt.Fprintln(w, strings.TrimRight(line, " "))
			line = indent
		}
		line += word + " "
	}
	fmt.Fprintln(w, strings.TrimRight(line, " "))
}
