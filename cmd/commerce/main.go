// Command commerce is the Merchant Commerce Service: carts and subscriptions of a
// digital-products platform.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"commerce/cmd/internal/cli"
	"commerce/deploy/connect"
)

// version is set by the Makefile.
var version = "dev"

// allCommands returns the commands of the program.
func allCommands() cli.Command {
	serve := &serveCommand{}
	return cli.Command{
		Name: "commerce",
		Help: "Carts and subscriptions for a digital-products platform. Each setting is an environment variable and a flag. To read a secret from a file, set NAME_FILE to its path.",
		Details: settingsHelp(serve.Settings()) + `
Exit status: 0 for success, 1 for a failure, and 2 for wrong arguments or settings, such as an address that is in use.`,
		Commands: []cli.Command{
			{Name: "demo", Help: "Run the service in one process, with sample data and without Redis or Postgres.", Run: &demoCommand{}},
			{Name: "serve", Help: "Run the service.", Run: serve},
			{Name: "check", Help: "Check the Redis and Postgres servers for settings that could lose carts or break promises.", Details: checkDetails, Run: &checkCommand{}},
			{Name: "migrate", Help: "Migrate the database schema.", Commands: []cli.Command{
				{Name: "up", Help: "Apply all pending migrations. Also run it after you restore a dump or upgrade Postgres.", Run: &migrateUpCommand{}},
				{Name: "down", Help: "Roll back the latest migration and delete the data in the tables and columns that it added.", Run: &migrateDownCommand{}},
				{Name: "status", Help: "List all migrations, applied or pending.", Run: &migrateStatusCommand{}},
			}},
			{Name: "seed", Help: "Write the sample data to the database. Safe to repeat.", Run: &seedCommand{}},
			{Name: "prune", Help: "Delete the records of subscriptions that were deleted long ago. Run it daily.", Run: &pruneCommand{}},
			{Name: "token", Help: "Create and manage tokens.", Commands: []cli.Command{
				{Name: "customer", Help: "Sign a customer's token (JWT) and print it.", Run: &customerTokenCommand{}},
				{Name: "store", Help: "Create an API token for a store and print it. It cannot be printed again.", Run: &storeTokenCommand{}},
				{Name: "list", Help: "List the API tokens of all stores, including revoked ones.", Run: &listTokensCommand{}},
				{Name: "revoke", Help: "Revoke an API token. This cannot be undone.", Run: &revokeTokenCommand{}},
			}},
			{Name: "cart", Help: "Show or erase the data stored about a shopper.", Commands: []cli.Command{
				{Name: "show", Help: "Show what is stored about a customer or a cart token.", Usage: shopperUsage, Run: &cartShowCommand{}},
				{Name: "erase", Help: "Delete everything that is stored about a customer or a cart token.", Usage: shopperUsage, Run: &cartEraseCommand{}},
			}},
			{Name: "version", Help: "Print the version.", Run: versionCommand{}},
		},
	}
}

func main() {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	context.AfterFunc(ctx, func() {
		signal.Ignore(syscall.SIGHUP) // often follows another signal: systemd's SendSIGHUP, or a terminal that closes
		stop()                        // any other second signal kills the process
	})
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run executes one command and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	// go-redis has one logger for the whole process. Commands with a log replace it.
	redis.SetLogger(connect.RedisLog{Log: slog.New(slog.DiscardHandler)})
	cobra.EnableCommandSorting = false // help lists the commands in the order of allCommands
	return allCommands().Execute(ctx, args, stdout, stderr)
}

type versionCommand struct{}

// Settings implements cli.Runnable.
func (versionCommand) Settings() []cli.Setting { return nil }

// Run prints the version.
func (versionCommand) Run(_ context.Context, out cli.Output) error {
	_, err := fmt.Fprintln(out, version)
	return err
}
