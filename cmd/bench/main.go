// Command bench measures the service next to floors: programs that do the minimum
// that a task requires. They are small on purpose and never tuned against the
// service.
//
//	go run ./cmd/bench                        # every benchmark
//	go run ./cmd/bench get add -rounds 7      # some of them
//	go run ./cmd/bench get -against /tmp/old  # and another build in the same rounds
//
// Compare the ratios within one run. Absolute numbers of different machines, or of
// one machine an hour apart, are not comparable.
//
// It needs redis-server, and finds Postgres as the tests do (see deploy/ephemeral).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// options are the flags.
type options struct {
	rounds      int
	turn        time.Duration
	connections int    // clients at a time, each on its own connection
	json        string // file for the results; "" for none
	binary      string // the service; "": built from this tree
	against     string // a second service; "" for none
	rows        int
	database    string
	postgres    string // server on which databases are made
}

// benchmark is what one command measures. A run starts what it needs, and stops it.
type benchmark struct {
	name string
	run  func(ctx context.Context, o options) (results, error)
}

func benchmarks() []benchmark {
	return []benchmark{
		{"list", benchList},
		{"get", benchGet},
		{"count", benchCount},
		{"add", benchAdd},
	}
}

// floors are the programs that benchmarks start as their own processes.
func floors() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"floor-list": floorList,
		"floor-ping": floorPing,
		"floor-get":  floorGet,
		"floor-add":  floorAdd,
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

func run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		if floor, ok := floors()[args[0]]; ok {
			return floor(ctx)
		}
	}
	chosen, o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	return runAll(ctx, chosen, o, os.Stdout)
}

// runAll prints each benchmark's table as soon as it is done.
func runAll(ctx context.Context, chosen []benchmark, o options, out io.Writer) error {
	report := newReport(ctx, o)
	for _, b := range chosen {
		results, err := b.run(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		results.Name = b.name
		if err := results.print(out); err != nil {
			return err
		}
		report.Benchmarks = append(report.Benchmarks, results)
	}
	if o.json == "" {
		return nil
	}
	return report.write(o.json)
}

// parse reads the names of benchmarks, all of them where none is named, and the
// flags, in any order.
func parse(args []string) ([]benchmark, options, error) {
	o := options{postgres: os.Getenv("TEST_POSTGRES_URL")}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&o.rounds, "rounds", 5, "how often each case takes its turn")
	flags.DurationVar(&o.turn, "turn", 2*time.Second, "how long a turn is")
	flags.IntVar(&o.connections, "connections", 64, "clients at a time")
	flags.StringVar(&o.json, "json", "", "file for the results, as JSON")
	flags.StringVar(&o.binary, "binary", "", "service to measure (default: built from this tree)")
	flags.StringVar(&o.against, "against", "", "second service to measure in the same rounds (not in list)")
	flags.IntVar(&o.rows, "rows", 1_000_000, "subscriptions of list")
	flags.StringVar(&o.database, "database", "", "filled database for list, which leaves it unchanged")
	var chosen []benchmark
	for {
		if err := flags.Parse(args); err != nil {
			return nil, o, err
		}
		if args = flags.Args(); len(args) == 0 {
			break
		}
		b, err := find(args[0])
		if err != nil {
			return nil, o, err
		}
		chosen, args = append(chosen, b), args[1:]
	}
	if o.rounds < 1 || o.turn <= 0 || o.connections < 1 {
		return nil, o, errors.New("-rounds, -turn and -connections must be more than 0")
	}
	if chosen == nil {
		chosen = benchmarks()
	}
	return chosen, o, nil
}

func find(name string) (benchmark, error) {
	all := benchmarks()
	i := slices.IndexFunc(all, func(b benchmark) bool { return b.name == name })
	if i < 0 {
		var names []string
		for _, b := range all {
			names = append(names, b.name)
		}
		return benchmark{}, fmt.Errorf("no benchmark %q; there are: %s", name, strings.Join(names, ", "))
	}
	return all[i], nil
}
