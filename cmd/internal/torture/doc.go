// Package torture tests the promises of docs/guarantees.md on real processes: the service,
// Redis and Postgres are killed, frozen, slowed and cut off under load.
//
// Each promise is a test. `go test` runs a short form of all of them, and `make torture`
// the long form, which prints a table of what it tried and found.
package torture
