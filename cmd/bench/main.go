// Command bench compares the service with floors: small programs that do the minimum
// that a task requires. Load generators such as wrk and vegeta load one server; this program gives
// several their turns in the same rounds, and counts the CPU time of their Redis and Postgres too.
//
//	go -C cmd/bench run .                        # all benchmarks
//	go -C cmd/bench run . get add -rounds 7      # some of them
//	go -C cmd/bench run . get -against /tmp/old  # with another build in the same rounds
//	go -C cmd/bench run . peers                  # the service next to other carts, which npm downloads
//
// Compare only ratios within one run. It needs redis-server and TEST_POSTGRES_URL (see deploy/ephemeral).
package main

import (
	"bytes"
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

	"commerce/cmd/bench/results"
)

// options are the command's flags.
type options struct {
	rounds      int
	turn        time.Duration
	connections int    // clients at a time, each on its own connection
	out         string // directory for the results, "" for none
	binary      string // the service, "" to build it from this tree
	against     string // a second service, "" for none
	rows        int
	postgres    string // URL of the server for new databases
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
	chosen, o, err := parse(args)
	if err != nil {
		return err
	}
	_, err = runAll(ctx, chosen, o, os.Stdout)
	return err
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
		fmt.Fprintf(flags.Output(), "usage: bench [flags] [benchmark …]   by default all except %s: %s\n", onDemand, all)
		flags.PrintDefaults()
	}
	flags.IntVar(&o.rounds, "rounds", 5, "number of rounds; each case takes one turn per round")
	flags.DurationVar(&o.turn, "turn", time.Second, "duration of a turn")
	flags.IntVar(&o.connections, "connections", 64, "number of concurrent clients, each with its own connection")
	flags.StringVar(&o.out, "out", "", "write the tables to results.md in this directory")
	flags.StringVar(&o.binary, "binary", "", "path of the service's executable (default: built from this tree)")
	flags.StringVar(&o.against, "against", "", "path of a second executable of the service, measured in the same rounds")
	flags.IntVar(&o.rows, "rows", 1_000_000, "number of subscriptions, of which one store has a tenth")
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

// runAll runs the chosen benchmarks, prints the tables of each when it is done, and writes those of all.
func runAll(ctx context.Context, chosen []benchmark, o options, out io.Writer) (all []results.Benchmark, err error) {
	began, load := time.Now(), loadAverages()
	if o.binary == "" {
		dir, err := os.MkdirTemp("", "bench")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		if o.binary, err = build(ctx, dir); err != nil {
			return nil, err
		}
	}
	filled := newSamples(o)
	defer filled.close()
	for _, b := range chosen {
		measured, err := onStage(ctx, o, filled, b.run)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.name, err) // without saving: earlier results may be complete
		}
		measured.Name = b.name
		if err := results.Markdown(out, measured); err != nil {
			return nil, err
		}
		all = append(all, measured)
	}
	if o.out == "" {
		return all, nil
	}
	text := bytes.NewBufferString("# Results\n\n" + conditions(ctx, o, began, load) + "\n\n")
	if err := errors.Join(results.Markdown(text, all...), os.MkdirAll(o.out, 0o755)); err != nil {
		return nil, err
	}
	file := filepath.Join(o.out, "results.md")
	fmt.Fprintln(out, "All tables are in", file)
	return all, os.WriteFile(file, text.Bytes(), 0o644)
}

// conditions says in one paragraph where and how the results were measured.
func conditions(ctx context.Context, o options, began time.Time, load string) string {
	// Each is "" if it is not known, such as the commit outside of a repository.
	commit, _ := exec.CommandContext(ctx, "git", "describe", "--always", "--exclude", "*", "--dirty").Output()
	info, _ := os.ReadFile("/proc/cpuinfo")
	_, after, _ := strings.Cut(string(info), "model name\t: ")
	cpu, _, _ := strings.Cut(after, "\n")
	return fmt.Sprintf("Commit %s, %s, %s: %d CPUs (%s), %s/%s, load averages %s. %d connections, %d rounds, turns of %s; %s in all. "+
		"Values are medians; those compared with others or with a target have the range of the rounds. CPU times are per request.",
		strings.TrimSpace(string(commit)), began.UTC().Format("2006-01-02 15:04 MST"), runtime.Version(), runtime.NumCPU(), cpu,
		runtime.GOOS, runtime.GOARCH, load, o.connections, o.rounds, o.turn, time.Since(began).Round(time.Second))
}

// loadAverages returns those of the last 1, 5 and 15 minutes.
func loadAverages() string {
	load, _ := os.ReadFile("/proc/loadavg")
	return strings.Join(strings.Fields(string(load))[:3], " ")
}
