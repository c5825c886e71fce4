// Command bench compares the service with floors: small programs that do the minimum
// that a task requires.
//
//	go run ./cmd/bench                        # all benchmarks
//	go run ./cmd/bench get add -rounds 7      # some of them
//	go run ./cmd/bench get -against /tmp/old  # with another build in the same rounds
//	go run ./cmd/bench -out results           # write tables and plots to a directory
//	go run ./cmd/bench peers                  # the service next to other carts, which npm downloads
//	go run ./cmd/bench draw results           # write them again from the run's data
//
// Compare only ratios within one run. Absolute numbers depend on the machine and on its
// load.
//
// It needs redis-server, and a Postgres server that TEST_POSTGRES_URL names (see
// deploy/ephemeral).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"commerce/cmd/bench/results"
)

// options are the command's flags.
type options struct {
	rounds      int
	turn        time.Duration
	soak        time.Duration
	connections int    // clients at a time, each on its own connection
	out         string // directory for results and plots, "" for none
	binary      string // the service, "" to build it from this tree
	against     string // a second service, "" for none
	rows        int
	database    string
	postgres    string // URL of the server for new databases
	peers       string // directory for the programs of peers, "" for a temporary one
}

// benchmark is one benchmark. Its run starts what it needs on a stage of its own.
type benchmark struct {
	name string
	run  func(context.Context, *stage) (results.Benchmark, error)
}

// measure runs a benchmark and stops what it has started.
func (b benchmark) measure(ctx context.Context, o options) (results.Benchmark, error) {
	s, err := newStage(o)
	if err != nil {
		return results.Benchmark{}, err
	}
	defer s.close()
	return b.run(ctx, s)
}

func benchmarks() []benchmark {
	return []benchmark{
		{"get", benchGet},
		{"count", benchCount},
		{"add", benchAdd},
		{"allocations", benchAllocations},
		{"latency", benchLatency},
		{"readers", benchReaders},
		{"memory", benchMemory},
		{"writes", benchWrites},
		{"start", benchStart},
		{"outage", benchOutage},
		{"overload", benchOverload},
		{"soak", benchSoak},
		{"sizes", benchSizes},
		{"list", benchList},
		{"export", benchExport},
	}
}

// onDemand are benchmarks that run only by name, because they download hundreds of packages.
func onDemand() []benchmark { return []benchmark{{"peers", benchPeers}} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		if ctx.Err() != nil {
			fmt.Fprintln(os.Stderr, "bench: interrupted")
			os.Exit(130)
		}
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		if floor, ok := floors()[args[0]]; ok {
			return runFloor(ctx, floor, args[1:])
		}
		if args[0] == "draw" {
			return drawFrom(args[1:])
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

// runAll runs the chosen benchmarks and prints the tables of each when it is done.
func runAll(ctx context.Context, chosen []benchmark, o options, out io.Writer) error {
	report := newReport(ctx, o)
	began := time.Now()
	if o.binary == "" {
		dir, err := os.MkdirTemp("", "bench")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if o.binary, err = build(ctx, dir); err != nil {
			return err
		}
	}
	for _, b := range chosen {
		measured, err := b.measure(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err) // without saving: earlier results may be complete
		}
		if err := measured.Print(out); err != nil {
			return err
		}
		report.Benchmarks = append(report.Benchmarks, measured)
		report.Took = time.Since(began).Round(time.Second).String()
	}
	return save(report, o.out, out)
}

// save writes the results and their plots to a directory, unless it is "".
func save(report results.Report, dir string, out io.Writer) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := report.Write(filepath.Join(dir, resultsFile)); err != nil {
		return err
	}
	fmt.Fprintln(out, "Tables and plots are in", dir)
	return draw(dir)
}

// parse reads flags and names of benchmarks, in any order. No name means all benchmarks.
func parse(args []string) ([]benchmark, options, error) {
	o := options{postgres: os.Getenv("TEST_POSTGRES_URL")}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "usage: bench [flags] [benchmark …]   run benchmarks, by default all except peers: %s\n"+
			"       bench draw DIRECTORY          write tables and plots again from results.json\n", strings.Join(names(), ", "))
		flags.PrintDefaults()
	}
	flags.IntVar(&o.rounds, "rounds", 5, "number of rounds; each case takes one turn per round")
	flags.DurationVar(&o.turn, "turn", time.Second, "duration of a turn")
	flags.DurationVar(&o.soak, "soak", 20*time.Second, "duration of soak")
	flags.IntVar(&o.connections, "connections", 64, "number of concurrent clients, each with its own connection")
	flags.StringVar(&o.out, "out", "", "write results and plots to this directory")
	flags.StringVar(&o.binary, "binary", "", "path of the service's executable (default: built from this tree)")
	flags.StringVar(&o.against, "against", "", "path of a second executable of the service, measured in the same rounds")
	flags.IntVar(&o.rows, "rows", 1_000_000, "number of subscriptions for list and export")
	flags.StringVar(&o.peers, "peers", "", "keep the programs of peers in this directory for the next run (default: a temporary one)")
	flags.StringVar(&o.database, "database", "", "URL of an existing database for list and export, which only read it (default: new ones)")
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
	if o.rounds < 1 || o.turn <= 0 || o.soak <= 0 || o.connections < 1 {
		return nil, o, errors.New("-rounds, -turn, -soak and -connections must be more than 0")
	}
	if chosen == nil {
		chosen = benchmarks()
	}
	return chosen, o, nil
}

func find(name string) (benchmark, error) {
	all := append(benchmarks(), onDemand()...)
	i := slices.IndexFunc(all, func(b benchmark) bool { return b.name == name })
	if i < 0 {
		return benchmark{}, fmt.Errorf("no benchmark %q; choose from: %s", name, strings.Join(names(), ", "))
	}
	return all[i], nil
}

// names are the names of all benchmarks.
func names() []string {
	var all []string
	for _, b := range append(benchmarks(), onDemand()...) {
		all = append(all, b.name)
	}
	return all
}
