package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// stage starts the processes and databases of a benchmark, and removes them at the end.
type stage struct {
	options
	dir  string
	ends []func() error // clean-up, in reverse order
}

func newStage(o options) (*stage, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	return &stage{options: o, dir: dir, ends: []func() error{func() error { return os.RemoveAll(dir) }}}, nil
}

func (s *stage) close() {
	for _, end := range slices.Backward(s.ends) {
		if err := end(); err != nil {
			fmt.Fprintln(os.Stderr, "bench: clean up:", err)
		}
	}
}

// keep stops a started process at the end of the benchmark.
func (s *stage) keep(p *process, err error) (*process, error) {
	if err != nil {
		return nil, err
	}
	s.ends = append(s.ends, func() error { p.stop(); return nil })
	return p, nil
}

func (s *stage) redis(ctx context.Context, settings ...string) (*process, error) {
	return s.keep(startRedis(ctx, s.dir, settings...))
}

func (s *stage) http(ctx context.Context, settings []string, ready probe, name string, args ...string) (*process, error) {
	return s.keep(startHTTP(ctx, settings, ready, name, args...))
}

// floor starts this program as one of its floors.
func (s *stage) floor(ctx context.Context, settings []string, name string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{name}
	if base, usual := strings.CutSuffix(name, withDefaultGC); usual {
		args = []string{base, defaultGC}
	}
	return s.http(ctx, settings, responds("/"), self, args...)
}

// database creates a database with the schema and the sample data of binary, and returns
// its URL.
func (s *stage) database(ctx context.Context, binary string, subscriptions int) (string, error) {
	u, err := s.emptyDatabase(ctx)
	if err != nil {
		return "", err
	}
	settings := []string{"DATABASE_URL=" + u}
	if _, err := call(ctx, binary, settings, "migrate", "up"); err != nil {
		return "", err
	}
	_, err = call(ctx, binary, settings, "seed", "--subscriptions", strconv.Itoa(subscriptions))
	return u, err
}

// emptyDatabase creates a database and returns its URL.
func (s *stage) emptyDatabase(ctx context.Context) (string, error) {
	if s.postgres == "" {
		return "", errors.New("TEST_POSTGRES_URL is not set: run `make bench` or `go run ./deploy/ephemeral/run -- go run ./cmd/bench`")
	}
	name := "bench_" + strings.ToLower(rand.Text())
	if err := s.administer(ctx, "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	s.ends = append(s.ends, func() error {
		return s.administer(context.WithoutCancel(ctx), "DROP DATABASE "+name+" WITH (FORCE)")
	})
	u, err := url.Parse(s.postgres)
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}

func (s *stage) administer(ctx context.Context, sql string) error {
	admin, err := pgx.Connect(ctx, s.postgres)
	if err != nil {
		return err
	}
	defer admin.Close(ctx)
	_, err = admin.Exec(ctx, sql)
	return err
}
