//go:build unix

package ephemeral

import (
	"bytes"
	"fmt"
	"testing"
)

// Dump returns a dump of the database at url, in pg_dump's custom format.
func Dump(tb testing.TB, url string) []byte {
	tb.Helper()
	dump, err := pipePostgres(nil, "pg_dump", "--format=custom", "--dbname="+url)
	if err != nil {
		tb.Fatalf("ephemeral: %v", err)
	}
	return dump
}

// Restore runs pg_restore on the database at url. Without options, the database must be
// empty. With "--clean" and "--if-exists", what the dump has replaces what is there.
func Restore(tb testing.TB, dump []byte, url string, options ...string) {
	tb.Helper()
	_, err := pipePostgres(dump, "pg_restore", append(options, "--exit-on-error", "--dbname="+url)...)
	if err != nil {
		tb.Fatalf("ephemeral: %v", err)
	}
}

// pipePostgres runs one of Postgres' programs. It returns what the program writes.
func pipePostgres(in []byte, name string, arguments ...string) ([]byte, error) {
	programs, err := findPostgres()
	if err != nil {
		return nil, err
	}
	cmd := programs.command(name, arguments...)
	var complaints bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w:\n%s", name, err, complaints.Bytes())
	}
	return out, nil
}
