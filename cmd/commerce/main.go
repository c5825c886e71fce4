// Command commerce is the Merchant Commerce Service: carts and subscriptions of a platform.
package main

import (
	"context"
	"fmt"
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

func allCommands() cli.Command {
	serve := newServe()
	return cli.Command{
		Name: "commerce",
		Help: "Carts and subscriptions for a digital-products platform. Each setting is an environment variable and a flag. To read a secret from a file, set NAME_FILE to its path.",
		Details: settingsHelp(serve.Settings) + `
Exit status: 0 for success, 1 for a failure, and 2 for wrong arguments or settings, such as an address that is in use.`,
		Commands: []cli.Command{
			newDemo(),
			serve,
			newCheck(),
			newMigrate(),
			newSeed(),
			newSubscriptions(),
			newToken(),
			newCart(),
			{Name: "version", Help: "Print the version.", Run: func(_ context.Context, out cli.Output) error {
				fmt.Fprintln(out, version)
				return nil
			}},
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
	// go-redis has one logger for the whole process. Commands with a log replace it.
	redis.SetLogger(connect.RedisLog{Log: slog.New(slog.DiscardHandler)})
	cobra.EnableCommandSorting = false // help lists the commands in the order of allCommands
	os.Exit(allCommands().Execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
