// Command commerce is the Merchant Commerce Service: carts and subscriptions of a
// digital-products platform.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9"

	"commerce/deploy/connect"
)

// version is set by the Makefile.
var version = "dev"

type commands struct {
	Demo    demoCommand    `cmd:"" help:"Run everything in one process, with sample data and no services behind it."`
	Serve   serveCommand   `cmd:"" help:"Run the service."`
	Migrate migrateCommand `cmd:"" help:"Change the schema of the database."`
	Seed    seedCommand    `cmd:"" help:"Write the sample data into the database; safe to repeat."`
	Token   tokenCommand   `cmd:"" help:"Make the tokens that callers send."`
	Cart    cartCommand    `cmd:"" help:"What is held about a shopper, and its erasure."`
	Version versionCommand `cmd:"" help:"Print the version."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// output is where commands print what a person or a script asked for.
type output struct {
	io.Writer
	errors io.Writer
}

// run executes one command and returns the status to exit with: 0 done, 1 failed,
// 2 used or set up wrongly.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	// go-redis has one log for the process: silent, but for commands with a log.
	redis.SetLogger(connect.RedisLog{Log: slog.New(slog.DiscardHandler)})
	exited := -1
	var unreadable faults
	parser, err := kong.New(&commands{}, append(unreadable.options(),
		kong.Name("commerce"),
		kong.Description("Carts and subscriptions for a digital-products platform. Every setting is an environment variable and a flag; NAME_FILE reads a secret from a file."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(status int) { exited = status }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: helpWidth}),
		kong.Help(printHelp),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(output{stdout, stderr}),
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
	return fail(stderr, command.Run())
}

// checked is a command that finds out what is wrong with its settings before it runs.
type checked interface{ faults() faults }

func fail(stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "commerce: "+oneLine(err))
	var setting *badSetting
	if errors.As(err, &setting) {
		return 2
	}
	return 1
}

func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(out output) error {
	_, err := fmt.Fprintln(out, version)
	return err
}
