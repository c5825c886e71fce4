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
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9"

	"commerce/deploy/connect"
)

// version is set by the build.
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
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// badSetting is a setting that is missing or cannot be used. The process ends with
// status 2 before it listens.
type badSetting struct {
	name string
	err  error
}

func (b *badSetting) Error() string {
	if b.name == "" { // the error names it
		return b.err.Error()
	}
	return b.name + ": " + b.err.Error()
}
func (b *badSetting) Unwrap() error { return b.err }

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
	parser, err := kong.New(&commands{},
		kong.Name("commerce"),
		kong.Description("Carts and subscriptions for a digital-products platform. Every setting is an environment variable and a flag; NAME_FILE reads a secret from a file."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(status int) { exited = status }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Help(helpWithSettings),
		kong.Resolvers(secretFiles()),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(output{stdout, stderr}),
	)
	if err != nil {
		return fail(stderr, err)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	switch {
	case exited >= 0: // --help has been printed
		return exited
	case err != nil:
		fmt.Fprintln(stderr, "commerce: "+oneLine(err))
		return 2
	}
	return fail(stderr, command.Run())
}

// helpWithSettings prints kong's help, and for the program as a whole every setting
// of serve as well.
func helpWithSettings(options kong.HelpOptions, c *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, c); err != nil || c.Selected() != nil {
		return err
	}
	fmt.Fprint(c.Stdout, "\nSettings of serve, and of demo as far as they apply:\n")
	for _, command := range c.Model.Children {
		if command.Name != "serve" {
			continue
		}
		for _, flag := range command.Flags {
			if len(flag.Envs) > 0 {
				fmt.Fprintf(c.Stdout, "  %-20s %-14s %s\n", flag.Envs[0], cmp.Or(flag.Default, "–"), flag.Help)
			}
		}
	}
	return nil
}

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
