package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Width is the maximum number of columns of help texts.
const Width = 80

// usage is what follows the name of a command in its usage line.
func (c Command) usage() string {
	if c.Usage != "" {
		return c.Usage
	}
	if c.Run == nil {
		return "<command>"
	}
	var words []string
	for _, s := range c.Settings {
		switch {
		case s.isArgument():
			words = append(words, s.Name)
		case s.Required && !s.isVariable():
			words = append(words, "--"+s.Name+"="+s.hint())
		}
	}
	return strings.Join(append(words, "[flags]"), " ")
}

func (p *program) help(command *cobra.Command, _ []string) {
	if words := command.Flags().Args(); len(words) > 0 && command.HasAvailableSubCommands() {
		if child, _, _ := command.Find(words); child != command { // the flag came before the command
			p.help(child, nil)
		} else {
			p.err = unexpected(command, words[0])
		}
		return
	}
	fmt.Fprintf(p.out, "Usage: %s\n\n", command.UseLine())
	printText(p.out, command.Short)
	if !command.HasAvailableSubCommands() {
		printText(p.out, command.Long)
		fmt.Fprint(p.out, "Flags:\n", command.Flags().FlagUsagesWrapped(Width))
		return
	}
	fmt.Fprintln(p.out, "Commands:")
	printCommands(p.out, command, "")
	fmt.Fprintln(p.out)
	printText(p.out, command.Long)
}

// printText prints text and an empty line. It wraps only the lines that are too long.
func printText(w io.Writer, text string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\n"); len([]rune(line)) > Width {
			PrintWrapped(w, Width, "", line)
		} else {
			fmt.Fprintln(w, line)
		}
	}
	if text != "" {
		fmt.Fprintln(w)
	}
}

// overview prints the help of the program when it is run without a command.
func (p *program) overview(root *cobra.Command) {
	fmt.Fprintf(p.out, "Usage: %s\n\n", root.UseLine())
	for _, command := range root.Commands() {
		if command.IsAvailableCommand() {
			first, _, _ := strings.Cut(command.Short, ". ")
			PrintWrapped(p.out, Width, fmt.Sprintf("  %-13s  ", command.Name()), strings.TrimSuffix(first, "."))
		}
	}
	fmt.Fprintf(p.out, "\nRun %[1]s --help for all settings, or %[1]s <command> --help.\n", root.Name())
}

func printCommands(w io.Writer, group *cobra.Command, prefix string) {
	for _, command := range group.Commands() {
		switch {
		case !command.IsAvailableCommand():
		case command.HasAvailableSubCommands():
			printCommands(w, command, prefix+command.Name()+" ")
		default:
			PrintWrapped(w, Width, fmt.Sprintf("  %-22s  ", prefix+command.Name()), command.Short)
		}
	}
}

// PrintWrapped prints text beside a label, in lines of at most width columns. The lines after the
// first are indented by the width of the label.
func PrintWrapped(w io.Writer, width int, label, text string) {
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
