// Command bench measures the service side by side with floors: programs that do as
// little as the task allows, small on purpose and never tuned against us.
//
//	go run ./cmd/bench list
//
// Numbers of different machines, or of one machine an hour apart, say nothing about
// each other; the ratios within one run do. It finds Redis and Postgres as the
// tests do (see deploy/ephemeral).
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
)

// program is one benchmark, or a floor that a benchmark starts as a process of its
// own.
type program struct {
	name  string
	run   func(ctx context.Context, args []string) error
	floor bool
}

func programs() []program {
	return []program{
		{name: "list", run: benchList},
		{name: "floor-list", run: floorList, floor: true},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run runs the program that the first argument names; without one, every benchmark.
func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		for _, p := range programs() {
			if p.floor {
				continue
			}
			if err := p.run(ctx, nil); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
		return nil
	}
	all := programs()
	i := slices.IndexFunc(all, func(p program) bool { return p.name == args[0] })
	if i < 0 {
		var names []string
		for _, p := range all {
			if !p.floor {
				names = append(names, p.name)
			}
		}
		return fmt.Errorf("no benchmark %q; there are: %s", args[0], strings.Join(names, ", "))
	}
	return all[i].run(ctx, args[1:])
}
