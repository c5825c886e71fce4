// Package cli is the command line of the program: commands, their flags, the environment
// variables that are the flags' defaults, and their help.
//
// Cobra finds the command, parses its flags and completes both in four shells, which the standard
// library's flag does not. This package adds one table of settings, with their variables, files for
// secrets and bounds. Libraries that also read variables, such as urfave/cli and kong, stop at the
// first wrong one, and print its value, which may be a secret.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Command is a command of the program, or a group of commands.
type Command struct {
	Name    string
	Help    string // one or two sentences
	Details string // further paragraphs; "": none
	Usage   string // what follows the name in help. Default: arguments, required flags and [flags]

	Settings []Setting
	// Faults checks what no setting can check alone, and may change settings, when all have their
	// values. nil: nothing to check
	Faults func() Faults

	// OpenLog returns what replaces the standard error of Run; nil: nothing. Execute also writes the
	// error of Run to it, and then closes it.
	OpenLog func(stderr io.Writer) io.WriteCloser
	// Fail writes a line about why the command has failed, which may be that some settings have no value; nil: as text.
	Fail func(stderr io.Writer, why string)

	Run      func(ctx context.Context, out Output) error // nil for a group
	Commands []Command                                   // of a group
}

// ErrPrinted means that a command has failed and that its output already explains why.
var ErrPrinted = errors.New("failed, as printed")

// Output is a command's standard output, and its standard error as Errors.
type Output struct {
	io.Writer
	Errors io.Writer
	failed *error // of the first write to standard output that failed
}

func NewOutput(stdout, stderr io.Writer) Output { return Output{stdout, stderr, new(error)} }

// Write writes to standard output.
func (o Output) Write(text []byte) (int, error) {
	n, err := o.Writer.Write(text)
	if err != nil && *o.failed == nil {
		*o.failed = err
	}
	return n, err
}

// Execute runs the command that args name, and returns the exit status: 0 for success, 1 for a
// failure, 2 for wrong arguments or settings.
func (c Command) Execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	p := program{out: NewOutput(stdout, stderr), closeLog: func() error { return nil }}
	p.fail = func(to io.Writer, why string) { fmt.Fprintln(to, c.Name+": "+why) }
	defer func() { _ = p.closeLog() }()
	root := p.build(c)
	root.SetHelpCommand(&cobra.Command{Hidden: true}) // see asksForHelp
	root.SetHelpFunc(p.help)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return withoutValue(err) })
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetArgs(asksForHelp(args))
	err := cmp.Or(root.ExecuteContext(ctx), p.err, *p.out.failed)
	if err == nil {
		return 0
	}
	if errors.Is(err, ErrPrinted) {
		return 1
	}
	lines := []error{err}
	if faults, ok := err.(interface{ Unwrap() []error }); ok && !p.running {
		lines = faults.Unwrap()
	}
	for _, line := range lines {
		p.fail(p.out.Errors, oneLine(line))
	}
	if _, bad := errors.AsType[*BadSetting](err); bad || !p.running && *p.out.failed == nil {
		return 2
	}
	return 1
}

// asksForHelp turns "help COMMAND" into "COMMAND --help".
func asksForHelp(args []string) []string {
	if len(args) > 0 && args[0] == "help" {
		return append(slices.Clone(args[1:]), "--help")
	}
	return slices.Clone(args) // not nil, which would mean those of the process
}

// oneLine joins the lines of an error. Of equal ones, such as two tries to connect, it has one.
func oneLine(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.Join(strings.Fields(line), " "); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}

type program struct {
	out     Output
	running bool  // a command runs, so that its error is no wrong argument
	err     error // of a request for help

	closeLog func() error
	fail     func(stderr io.Writer, why string)
}

func (p *program) build(c Command) *cobra.Command {
	built := &cobra.Command{
		Use: strings.TrimSpace(c.Name + " " + c.usage()), Short: c.Help, Long: c.Details,
		Args: cobra.ArbitraryArgs, SilenceErrors: true, SilenceUsage: true, DisableFlagsInUseLine: true,
	}
	built.Flags().SortFlags = false
	for _, child := range c.Commands {
		built.AddCommand(p.build(child))
	}
	if c.Run == nil {
		built.RunE = p.group
		return built
	}
	for _, s := range c.Settings {
		if s.isArgument() {
			continue
		}
		flag := built.Flags().VarPF(&flagText{s, s.Default}, s.flag(), "", s.usage())
		if s.Value.kind == switchKind {
			flag.NoOptDefVal = "true"
		}
	}
	built.Flags().BoolP("help", "h", false, "Show this help")
	built.RunE = func(command *cobra.Command, args []string) error { return p.run(command, c, args) }
	if c.Fail != nil {
		built.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
			p.fail = c.Fail
			_ = c.Read(func(Setting) *string { return nil }) // the environment has the form of the log
			return withoutValue(err)
		})
	}
	return built
}

// group handles a command that needs another word.
func (p *program) group(command *cobra.Command, args []string) error {
	switch {
	case len(args) > 0:
		return unexpected(command, args[0])
	case !command.HasParent():
		p.overview(command)
		return nil
	}
	var names []string
	for _, child := range command.Commands() {
		names = append(names, child.Name())
	}
	return fmt.Errorf("expected one of %s after %s", strings.Join(names, ", "), command.Name())
}

// unexpected does not quote what follows an equals sign, which may be a secret.
func unexpected(command *cobra.Command, argument string) error {
	name, _, assigned := strings.Cut(argument, "=")
	err := fmt.Errorf("unexpected argument %q", name)
	if assigned || name == "" || !command.HasAvailableSubCommands() {
		return err
	}
	command.SuggestionsMinimumDistance = 2
	if near := command.SuggestionsFor(name); len(near) > 0 && near[0] != name {
		err = fmt.Errorf("%w, did you mean %q?", err, near[0])
	}
	return err
}

// withoutValue names the flag of an error of pflag, but not its value, which may be a secret.
func withoutValue(err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		hyphens := "--"
		if unknown.GetSpecifiedShortnames() != "" {
			hyphens = "-"
		}
		return errors.New("unknown flag: " + hyphens + unknown.GetSpecifiedName())
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return errors.New("--" + wrong.GetFlag().Name + ": has a wrong value")
	}
	if _, ok := errors.AsType[*pflag.InvalidSyntaxError](err); ok {
		return errors.New("a flag must have the form --name or --name=value")
	}
	return err
}

func (p *program) run(command *cobra.Command, c Command, args []string) error {
	if c.Fail != nil {
		p.fail = c.Fail
	}
	err := c.Read(func(s Setting) *string {
		if s.isArgument() && len(args) > 0 {
			first := args[0]
			args = args[1:]
			return &first
		}
		if flag := command.Flags().Lookup(s.flag()); flag != nil && flag.Changed {
			return new(flag.Value.String())
		}
		return nil
	})
	if len(args) > 0 {
		return unexpected(command, args[0])
	}
	if err != nil {
		return err
	}
	p.running = true
	if c.OpenLog != nil {
		log := c.OpenLog(p.out.Errors)
		p.out.Errors, p.closeLog = log, log.Close
	}
	return c.Run(command.Context(), p.out)
}

// Read sets the values of the settings and checks them. given returns the text that the command
// line has for a setting, nil for none. The error has a line for each bad setting.
func (c Command) Read(given func(Setting) *string) error {
	var faults Faults
	for _, s := range c.Settings {
		s.read(given(s), &faults)
	}
	if c.Faults != nil {
		faults = append(faults, c.Faults()...)
	}
	return faults.Err()
}
