// Command commerce is the Merchant Commerce Service: carts and subscriptions of a
// digital-products platform.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9"

	"commerce/deploy/connect"
)

// version is set by the Makefile.
var version = "dev"

type commands struct {
	Demo          demoCommand          `cmd:"" help:"Run the service in one process, with sample data and without Redis or Postgres."`
	Serve         serveCommand         `cmd:"" help:"Run the service."`
	Check         checkCommand         `cmd:"" help:"Check the Redis and Postgres servers for settings that could lose carts or break promises."`
	Migrate       migrateCommand       `cmd:"" help:"Migrate the database schema."`
	Seed          seedCommand          `cmd:"" help:"Write the sample data to the database. Safe to repeat."`
	Import        importCommand        `cmd:"" help:"Import products and subscriptions of a store from files. Safe to repeat."`
	Prune         pruneCommand         `cmd:"" help:"Delete the records of subscriptions that were deleted long ago. Run it daily."`
	Token         tokenCommand         `cmd:"" help:"Create and manage tokens."`
	Cart          cartCommand          `cmd:"" help:"Show or erase the data stored about a shopper."`
	Subscriptions subscriptionsCommand `cmd:"" help:"Export subscriptions."`
	Completion    completionCommand    `cmd:"" help:"Print a script that completes commands and flags in bash, zsh or fish."`
	Complete      completeCommand      `cmd:"" hidden:""`
	Version       versionCommand       `cmd:"" help:"Print the version."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills the process
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// output is a command's standard output, and its standard error as errors.
type output struct {
	io.Writer
	errors io.Writer
	failed *error // of the first write to standard output that failed
}

func (o output) Write(text []byte) (int, error) {
	n, err := o.Writer.Write(text)
	if err != nil && *o.failed == nil {
		*o.failed = err
	}
	return n, err
}

// run executes one command and returns the exit status: 0 for success, 1 for a
// failure, 2 for wrong arguments or settings.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	// go-redis has one logger for the whole process. Commands with a log replace it.
	redis.SetLogger(connect.RedisLog{Log: slog.New(slog.DiscardHandler)})
	exited := -1
	var unreadable faults
	var unwritten error
	parser, err := kong.New(&commands{}, append(unreadable.options(),
		kong.Name("commerce"),
		kong.Description("Carts and subscriptions for a digital-products platform. Each setting is an environment variable and a flag. To read a secret from a file, set NAME_FILE to its path."),
		helpNumbers(),
		kong.WithHyphenPrefixedParameters(true), // one in 64 cart tokens begins with one
		kong.Writers(stdout, stderr),
		kong.Exit(func(status int) { exited = status }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: helpWidth}),
		kong.Help(printHelp),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(output{stdout, stderr, &unwritten}),
	)...)
	if err != nil {
		return fail(stderr, err)
	}
	command, err := parser.Parse(asksForHelp(args))
	switch {
	case exited >= 0: // --help has been printed
		return exited
	case err != nil:
		fmt.Fprintln(stderr, "commerce: "+oneLine(err))
		return 2
	}
	if c, ok := command.Selected().Target.Addr().Interface().(checked); ok {
		unreadable = append(unreadable, c.faults()...)
	}
	if err := unreadable.first(); err != nil {
		return fail(stderr, err)
	}
	return fail(stderr, cmp.Or(command.Run(), unwritten))
}

// checked is a command that checks its settings before it runs.
type checked interface{ faults() faults }

// errPrinted means that a command has failed and that its output already explains why.
var errPrinted = errors.New("failed, as printed")

func fail(stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	if errors.Is(err, errPrinted) {
		return 1
	}
	fmt.Fprintln(stderr, "commerce: "+oneLine(err))
	var setting *badSetting
	if errors.As(err, &setting) {
		return 2
	}
	return 1
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

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(out output) error {
	_, err := fmt.Fprintln(out, version)
	return err
}
