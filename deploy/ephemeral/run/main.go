//go:build unix

// Command run starts temporary Redis and Postgres servers, runs a command with their
// URLs in its environment, stops the servers, and exits with the command's status:
//
//	go run ./deploy/ephemeral/run -- go test ./...
//
// It does not start servers that the environment already names.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"commerce/deploy/ephemeral"
)

func main() {
	arguments := os.Args[1:]
	if len(arguments) > 0 && arguments[0] == "--" {
		arguments = arguments[1:]
	}
	if len(arguments) == 0 {
		fmt.Fprintln(os.Stderr, "usage: run -- command [argument…]")
		os.Exit(2)
	}
	code, err := run(arguments)
	if err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
	}
	os.Exit(code)
}

// run returns the command's exit code, or 1 if something else failed.
func run(arguments []string) (code int, err error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer func() {
		if stop := ephemeral.StopShared(); stop != nil {
			code, err = max(code, 1), errors.Join(err, stop)
		}
	}()
	entries, err := ephemeral.StartShared()
	if err != nil {
		return 1, err
	}
	cmd := exec.Command(arguments[0], arguments[1:]...)
	cmd.Env = append(os.Environ(), entries...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	go func() {
		for s := range signals { // the command decides how it ends
			_ = cmd.Process.Signal(s)
		}
	}()
	err = cmd.Wait()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil // the exit code is -1 if a signal ended the command
	}
	return cmd.ProcessState.ExitCode(), err
}
