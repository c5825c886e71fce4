// Command bench compares the service with floors: small programs that do the minimum
// that a task requires.
//
//	go -C cmd/bench run .                        # all benchmarks
//	go -C cmd/bench run . get add -rounds 7      # some of them
//	go -C cmd/bench run . get -against /tmp/old  # with another build in the same rounds
//	go -C cmd/bench run . peers                  # the service next to other carts, which npm downloads
//
// Compare only ratios within one run. It needs redis-server and TEST_POSTGRES_URL (see deploy/ephemeral).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"commerce/cmd/bench/plots"
	"commerce/cmd/bench/results"
)

// options are the command's flags.
type options struct {
	rounds      int
	turn        time.Duration
	connections int    // clients at a time, each on its own connection
	out         string // directory for results and plots, "" for none
	binary      string // the service, "" to build it from this tree
	against     string // a second service, "" for none
	rows        int
	postgres    string // URL of the server for new databases
	peers       string // directory for the programs of peers, "" for a temporary one
}

// benchmark is one benchmark. Its run starts what it needs on a stage of its own.
type benchmark struct {
	name string
	run  func(context.Context, *stage) (results.Benchmark, error)
}

func benchmarks() []benchmark {
	return []benchmark{
		{"get", benchCarts("get")},
		{"count", benchCarts("count")},
		{"add", benchCarts("add")},
		{"latency", benchLatency},
		{"outage", benchOutage},
		{"overload", benchOverload},
		{"memory", benchMemory},
		{"list", benchList},
		{"export", benchExport},
		{"peers", benchPeers},
	}
}

// onDemand is the benchmark that runs only by name, because it downloads hundreds of packages.
const onDemand = "peers"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "bench: interrupted")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && floors()[args[0]] != nil {
		return runFloor(ctx, floors()[args[0]])
	}
	if len(args) == 2 && args[0] == "draw" {
		return draw(args[1])
	}
	chosen, o, err := parse(args)
	if err != nil {
		return err
	}
	return runAll(ctx, chosen, o, os.Stdout)
}

// parse reads flags and names of benchmarks, in any order. No name means all benchmarks.
func parse(args []string) ([]benchmark, options, error) {
	o := options{postgres: os.Getenv("TEST_POSTGRES_URL")}
	var names []string
	for _, b := range benchmarks() {
		names = append(names, b.name)
	}
	all := strings.Join(names, ", ")
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "usage: bench [flags] [benchmark …]   run benchmarks, by default all except %s: %s\n"+
			"       bench draw DIRECTORY          write tables and plots again from results.json\n", onDemand, all)
		flags.PrintDefaults()
	}
	flags.IntVar(&o.rounds, "rounds", 5, "number of rounds; each case takes one turn per round")
	flags.DurationVar(&o.turn, "turn", time.Second, "duration of a turn")
	flags.IntVar(&o.connections, "connections", 64, "number of concurrent clients, each with its own connection")
	flags.StringVar(&o.out, "out", "", "write results and plots to this directory")
	flags.StringVar(&o.binary, "binary", "", "path of the service's executable (default: built from this tree)")
	flags.StringVar(&o.against, "against", "", "path of a second executable of the service, measured in the same rounds")
	flags.IntVar(&o.rows, "rows", 1_000_000, "number of subscriptions, of which one store has a tenth")
	flags.StringVar(&o.peers, "peers", "", "keep the programs of peers in this directory for the next run (default: a temporary one)")
	var chosen []benchmark
	for {
		if err := flags.Parse(args); err != nil {
			return nil, o, err
		}
		if args = flags.Args(); len(args) == 0 {
			break
		}
		i := slices.Index(names, args[0])
		if i < 0 {
			return nil, o, fmt.Errorf("no benchmark %q; choose from: %s", args[0], all)
		}
		chosen, args = append(chosen, benchmarks()[i]), args[1:]
	}
	if o.rounds < 1 || o.turn <= 0 || o.connections < 1 {
		return nil, o, errors.New("-rounds, -turn and -connections must be more than 0")
	}
	if chosen == nil {
		chosen = slices.DeleteFunc(benchmarks(), func(b benchmark) bool { return b.name == onDemand })
	}
	return chosen, o, nil
}

// runAll runs the chosen benchmarks, prints the tables of each when it is done, and writes the
// results of all.
func runAll(ctx context.Context, chosen []benchmark, o options, out io.Writer) error {
	report := newReport(ctx, o)
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
		measured, err := onStage(ctx, o, b.run)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err) // without saving: earlier results may be complete
		}
		measured.Name = b.name
		if err := measured.Write(out); err != nil {
			return err
		}
		report.Benchmarks = append(report.Benchmarks, measured)
	}
	if o.out == "" {
		return nil
	}
	report.Took = time.Since(report.Began).Round(time.Second).String()
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	if err := report.Write(filepath.Join(o.out, resultsFile)); err != nil {
		return err
	}
	fmt.Fprintln(out, "Tables and plots are in", o.out)
	return draw(o.out)
}

// resultsFile is what a run writes, and what its tables and plots are drawn from.
const resultsFile = "results.json"

// draw reads the results in a directory, and writes their tables and plots next to them.
func draw(dir string) error {
	report, err := results.Read(filepath.Join(dir, resultsFile))
	if err != nil {
		return err
	}
	tables, err := os.Create(filepath.Join(dir, "results.md"))
	if err != nil {
		return err
	}
	if err := errors.Join(report.Markdown(tables), tables.Close()); err != nil {
		return err
	}
	return plots.Draw(report, dir)
}

// newReport describes the run and the machine.
func newReport(ctx context.Context, o options) results.Report {
	// Each is "" if it is not known, such as the commit outside of a repository.
	commit, _ := exec.CommandContext(ctx, "git", "describe", "--always", "--exclude", "*", "--dirty").Output()
	info, _ := os.ReadFile("/proc/cpuinfo")
	load, _ := os.ReadFile("/proc/loadavg")
	_, after, _ := strings.Cut(string(info), "model name\t: ")
	cpu, _, _ := strings.Cut(after, "\n")
	return results.Report{
		Began: time.Now().UTC().Truncate(time.Second), Commit: strings.TrimSpace(string(commit)), Go: runtime.Version(), Against: o.against,
		Connections: o.connections, Rounds: o.rounds, Turn: o.turn.String(),
		Machine: results.Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPU: cpu, CPUs: runtime.NumCPU(), Load: strings.Join(strings.Fields(string(load))[:3], " ")},
	}
}
