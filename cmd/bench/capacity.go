package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"commerce/cmd/bench/results"
)

// demand is what a platform expects at its busiest time.
type demand struct {
	carts         float64 // that exist at the same time, including unused ones
	reads         float64 // of carts, per second
	changes       float64 // of carts, per second
	lists         float64 // pages of subscriptions, per second
	subscriptions float64
	stores        float64
	growth        float64 // factor by which everything grows before the next plan
}

// machines are the sizes of the machines to plan for.
type machines struct {
	cores         float64 // of an instance
	redisGiB      float64 // of a Redis master
	postgresCores float64 // of a Postgres server
	postgresGiB   float64 // disk of a Postgres server
	busy          float64 // share of CPU time to plan for, so that a peak or a lost machine fits
	full          float64 // share of memory and disk to plan for
}

// costs are what a run of the benchmarks has measured.
type costs struct {
	read, change, list         float64 // CPU microseconds of an instance
	redisRead, redisChange     float64 // CPU microseconds of Redis
	postgresList               float64 // CPU microseconds of Postgres
	cart                       float64 // bytes of Redis
	subscription               float64 // bytes of Postgres
	readName, changeName       string  // benchmark and case
	listName                   string
	cartName, subscriptionName string
	measured                   string // date of the run
}

// need is a line of the plan.
type need struct {
	what   string
	amount float64
	unit   string
	why    string // the calculation
}

// limit is how much of the demand one part of the smallest deployment can take: an instance, a
// Redis and a Postgres.
type limit struct {
	what string
	used float64 // share of what it can take; above 1 it is overloaded
	sign string  // that shows it in production
}

// plan is what a load needs.
type plan struct {
	needs  []need
	limits []limit // the first to break comes first
	steps  []string
}

const gib = 1 << 30

// smallest and largest bound all numbers of a demand and of machines. Beyond, what follows from
// them has more digits than meaning, or is infinite.
const smallest, largest = 1e-6, 1e15

// runCapacity prints what a load needs.
func runCapacity(args []string, out io.Writer) error {
	d, m, o, err := parseCapacity(args, out)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	report, err := results.Read(filepath.Join(o.from, resultsFile))
	if err != nil {
		return err
	}
	c, err := costsOf(report)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(o.from, resultsFile), err)
	}
	return planFor(d, m, c).print(out, c, o.figures)
}

// capacityOptions are what to read and to print.
type capacityOptions struct {
	from    string // directory with the results
	figures bool   // print the costs
}

func parseCapacity(args []string, out io.Writer) (d demand, m machines, o capacityOptions, err error) {
	flags := flag.NewFlagSet("capacity", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() {
		fmt.Fprintln(out, "usage: bench capacity [flags]   print what a load needs, calculated from the results of a run")
		flags.PrintDefaults()
	}
	number := func(to *float64, name string, value float64, what string) {
		*to = value
		flags.Func(name, fmt.Sprintf("%s (default %v)", what, value), func(text string) (err error) {
			if *to, err = strconv.ParseFloat(text, 64); err != nil || !(*to >= smallest && *to <= largest) {
				return fmt.Errorf("must be a number from %g to %g, such as 1e6", smallest, largest)
			}
			return nil
		})
	}
	number(&d.carts, "carts", 100_000, "carts that exist at the same time, including unused ones until their TTL ends")
	number(&d.reads, "reads", 500, "reads of carts per second, at the busiest time")
	number(&d.changes, "changes", 100, "changes of carts per second, at the busiest time")
	number(&d.lists, "lists", 20, "pages of subscriptions per second, at the busiest time")
	number(&d.subscriptions, "subscriptions", 100_000, "subscriptions of all stores")
	number(&d.stores, "stores", 100, "stores")
	number(&d.growth, "growth", 2, "factor by which everything grows before you plan again")
	number(&m.cores, "cores", 2, "CPU cores of an instance")
	number(&m.redisGiB, "redis-gib", 16, "memory of a Redis master, in GiB")
	number(&m.postgresCores, "postgres-cores", 16, "CPU cores of a Postgres server")
	number(&m.postgresGiB, "postgres-gib", 2048, "disk of a Postgres server, in GiB")
	number(&m.busy, "busy", 0.5, "share of the CPU time to plan for")
	number(&m.full, "full", 0.6, "share of memory and disk to plan for; forks of Redis and VACUUM need the rest")
	flags.StringVar(&o.from, "from", "docs/performance", "`directory` with the results.json of a run of the benchmarks")
	flags.BoolVar(&o.figures, "figures", true, "print the figures that the calculations use")
	if err := flags.Parse(args); err != nil {
		return d, m, o, err
	}
	if flags.NArg() > 0 {
		return d, m, o, fmt.Errorf("capacity has no argument %q; see bench capacity -h", flags.Arg(0))
	}
	if m.busy > 1 || m.full > 1 {
		return d, m, o, errors.New("-busy and -full are shares of at most 1")
	}
	return d, m, o, nil
}

// costsOf reads the costs from a report.
func costsOf(r results.Report) (c costs, err error) {
	find := func(benchmark, name string) results.Case {
		b, _ := r.Benchmark(benchmark)
		found, ok := b.Case(name)
		if !ok {
			err = errors.Join(err, fmt.Errorf("no %q of benchmark %s", name, benchmark))
		}
		return found
	}
	size := func(name string) float64 {
		b, _ := r.Benchmark("sizes")
		for _, v := range b.Values {
			if v.Name == name {
				return v.Median
			}
		}
		err = errors.Join(err, fmt.Errorf("no %q of benchmark sizes", name))
		return 0
	}
	read, change, list := find("get", "guest, 5 lines"), find("add", "add, X-Timestamp"), find("list", firstPage)
	c = costs{
		read: read.Server.Median, redisRead: read.Store.Median, readName: "get: guest, 5 lines",
		change: change.Server.Median, redisChange: change.Store.Median, changeName: "add: add, X-Timestamp",
		list: list.Server.Median, postgresList: list.Store.Median, listName: "list: " + firstPage,
		cart: size(cartBytes), cartName: "sizes: " + cartBytes,
		subscription: size(subscriptionBytes), subscriptionName: "sizes: " + subscriptionBytes,
		measured: r.Began.Format("2006-01-02"),
	}
	if err != nil {
		return c, fmt.Errorf("%w; run: bench get add list sizes -out DIRECTORY", err)
	}
	return c, nil
}
