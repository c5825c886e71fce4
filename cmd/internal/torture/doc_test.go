// Package torture tests the promises of docs/guarantees.md on real processes. Under load, it
// kills, freezes, slows down and cuts off the service, Redis and Postgres.
//
// Each promise has a test. `go test` runs the short form of all tests. `make torture` runs the
// long form, which prints a table of the figures.
package torture
