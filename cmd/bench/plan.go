package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// largeTable is the number of subscriptions from which to consider hash partitions: VACUUM, and
// every build of an index, then work on a part of the table at a time. It is a rule of thumb.
const largeTable = 200e6

// planFor calculates what a load needs.
func planFor(d demand, m machines, c costs) plan {
	const micro = 1e-6
	grown := demand{
		carts: d.carts * d.growth, reads: d.reads * d.growth, changes: d.changes * d.growth,
		lists: d.lists * d.growth, subscriptions: d.subscriptions * d.growth,
	}
	cores := micro * (grown.reads*c.read + grown.changes*c.change + grown.lists*c.list)
	redisCores := micro * (grown.reads*c.redisRead + grown.changes*c.redisChange)
	redisGiB := grown.carts * c.cart / gib
	postgresCores := micro * grown.lists * c.postgresList
	postgresGiB := grown.subscriptions * c.subscription / gib

	instances := max(2, math.Ceil(cores/m.busy/m.cores))
	masters := math.Ceil(max(redisCores/m.busy, redisGiB/m.full/m.redisGiB, 1))
	if masters > 1 {
		masters = max(masters, 3)
	}
	shards := math.Ceil(max(postgresGiB/m.full/m.postgresGiB, 1))
	readers := math.Ceil(postgresCores / m.busy / m.postgresCores / shards)

	p := plan{needs: []need{
		{"instances", instances, fmt.Sprintf("of %v cores", m.cores), fmt.Sprintf(
			"%s cores / %v busy / %v cores, at least 2", short(cores), m.busy, m.cores)},
		{"Redis masters", masters, fmt.Sprintf("of %s GiB, each with a replica", short(m.redisGiB)), fmt.Sprintf(
			"the larger of %s cores / %v busy and %s GiB / %v full / %v GiB; a cluster needs at least 3", short(redisCores), m.busy, short(redisGiB), m.full, m.redisGiB)},
		{"Redis memory", redisGiB, "GiB of carts in total", fmt.Sprintf("%s carts × %s bytes", large(grown.carts), short(c.cart))},
		{"Postgres shards", shards, fmt.Sprintf("of %s GiB disk", short(m.postgresGiB)), fmt.Sprintf(
			"%s GiB / %v full / %v GiB", short(postgresGiB), m.full, m.postgresGiB)},
		{"Postgres disk", postgresGiB, "GiB of subscriptions in total", fmt.Sprintf("%s subscriptions × %s bytes", large(grown.subscriptions), short(c.subscription))},
		{"Postgres replicas", max(readers, 1), "of each shard, of which one can take over", fmt.Sprintf(
			"%s cores of lists / %v busy / %v cores / shards, at least 1", short(postgresCores), m.busy, m.postgresCores)},
	}}
	p.limits = []limit{
		{"CPU of an instance", cores / m.cores, "process_cpu_seconds_total grows by nearly 1 per core and second; commerce_limiter_refusals_total{limit=\"in_flight\"} rises"},
		{"CPU of a Redis master", redisCores, "commerce_redis_command_duration_seconds and commerce_redis_pool_connections{state=\"used\"} rise"},
		{"memory of a Redis master", redisGiB / m.redisGiB, "used_memory is near maxmemory; then commerce_redis_errors_total{kind=\"out_of_memory\"} rises"},
		{"CPU of a Postgres", postgresCores / m.postgresCores, "commerce_postgres_pool_waits_total{pool=\"subscriptions\"} rises"},
		{"disk of a Postgres, for one store of average size", postgresGiB / d.stores / m.postgresGiB, "the same, on the worker of that store, because a store cannot be split"},
		{"disk of a Postgres", postgresGiB / m.postgresGiB, "free disk of the server; commerce_postgres_errors_total{kind=\"resources\"} rises"},
	}
	slices.SortStableFunc(p.limits, func(a, b limit) int { return cmp.Compare(b.used, a.used) })
	p.steps = stepsOf(masters, shards, readers, grown.subscriptions)
	return p
}

// stepsOf names the sections of docs/scale.md that a deployment of this size needs.
func stepsOf(masters, shards, readers, subscriptions float64) []string {
	var steps []string
	if masters > 1 {
		steps = append(steps, "One Redis to a Redis Cluster")
	}
	if masters > 3 {
		steps = append(steps, "More masters")
	}
	if readers > 1 {
		steps = append(steps, "Replicas of Postgres")
	}
	switch {
	case shards > 1:
		steps = append(steps, "Citus")
	case subscriptions >= largeTable:
		steps = append(steps, "Partitions")
	}
	return steps
}

// print writes the plan as tables: what is needed, the figures if they are wanted, and what breaks
// first.
func (p plan) print(out io.Writer, c costs, figures bool) error {
	needs := [][]string{{"need", "", "", "because"}}
	for _, n := range p.needs {
		needs = append(needs, []string{n.what, short(n.amount), n.unit, n.why})
	}
	limits := [][]string{{"first to break with one of each", "used", "sign"}}
	for _, l := range p.limits {
		limits = append(limits, []string{l.what, percent(l.used), l.sign})
	}
	tables := [][][]string{needs, limits}
	if figures {
		tables = slices.Insert(tables, 1, c.table())
	}
	for _, rows := range tables {
		t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, row := range rows {
			fmt.Fprintln(t, strings.Join(row, "\t"))
		}
		fmt.Fprintln(t)
		if err := t.Flush(); err != nil {
			return err
		}
	}
	for _, s := range p.steps {
		fmt.Fprintf(out, "step in docs/scale.md: %s\n", s)
	}
	return nil
}

// table lists the costs and the benchmarks that measured them.
func (c costs) table() [][]string {
	const micro, bytes = "µs of CPU", "bytes"
	return [][]string{
		{"figure of " + c.measured, "", "", "benchmark"},
		{"read of a cart, instance", short(c.read), micro, c.readName},
		{"read of a cart, Redis", short(c.redisRead), micro, c.readName},
		{"change of a cart, instance", short(c.change), micro, c.changeName},
		{"change of a cart, Redis", short(c.redisChange), micro, c.changeName},
		{"page of subscriptions, instance", short(c.list), micro, c.listName},
		{"page of subscriptions, Postgres", short(c.postgresList), micro, c.listName},
		{"cart", short(c.cart), bytes, c.cartName},
		{"subscription", short(c.subscription), bytes, c.subscriptionName},
	}
}

// short writes a number with three digits, or all digits before the point.
func short(x float64) string {
	switch {
	case x == math.Trunc(x) || x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	case x >= 1:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.2g", x)
}

func percent(share float64) string {
	if share < 0.0001 {
		return "< 0.01 %"
	}
	return short(100*share) + " %"
}

// large writes a count in thousands, millions or billions.
func large(x float64) string {
	switch {
	case x >= 1e9:
		return short(x/1e9) + " billion"
	case x >= 1e6:
		return short(x/1e6) + " million"
	case x >= 1e3:
		return short(x/1e3) + " thousand"
	}
	return short(x)
}
