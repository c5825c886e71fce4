// Package torture tests the promises of docs/guarantees.md on real processes. Under load, it
// kills, freezes, slows down and cuts off the service, Redis and Postgres. TestSchedules of
// cart/redisstore tries far more orders of the same steps, on carts in memory.
//
// Each promise has a test. `go test` runs the short form of all tests. `make torture` runs the
// long form, which prints a table of the figures.
package torture
