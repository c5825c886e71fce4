package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"commerce/cmd/bench/results"
)

// stage starts the processes and databases of a benchmark, and removes them at the end.
type stage struct {
	options
	dir     string
	samples *samples
	ends    []func() error // clean-up, in reverse order
}

// samples are databases with sample data, by their contents. All benchmarks share them, because filling one takes minutes.
type samples struct {
	stage
	urls map[string]string
}

func newSamples(o options) *samples { return &samples{stage{options: o}, map[string]string{}} }

// onStage runs a benchmark on a new stage.
func onStage(
	ctx context.Context, o options, all *samples, run func(context.Context, *stage) (results.Benchmark, error),
) (results.Benchmark, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return results.Benchmark{}, err
	}
	s := &stage{options: o, dir: dir, samples: all, ends: []func() error{func() error { return os.RemoveAll(dir) }}}
	defer s.close()
	return run(ctx, s)
}

func (s *stage) close() {
	for _, end := range slices.Backward(s.ends) {
		if err := end(); err != nil {
			fmt.Fprintln(os.Stderr, "bench: clean up:", err)
		}
	}
}

// process is a running server.
type process struct {
	url string
	cmd *exec.Cmd
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) stop() error {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	return nil
}

// startLimit is how long a process may take to start. The service needs less than a second,
// some peers need many.
const startLimit = time.Minute

// start starts a process, which ends with the stage, and waits until ready returns nil. It
// discards what the process prints.
func (s *stage) start(p *process, ready func() error) (*process, error) {
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	s.ends = append(s.ends, p.stop)
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		err := ready()
		if err == nil {
			return p, nil
		}
		if time.Since(began) > startLimit {
			return nil, fmt.Errorf("%s does not respond: %w", filepath.Base(p.cmd.Path), err)
		}
	}
}

// http starts a server that reads its address from ADDR, and waits until path has any response.
func (s *stage) http(ctx context.Context, settings []string, path, name string, args ...string) (*process, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	p := &process{url: "http://" + addr, cmd: exec.CommandContext(ctx, name, args...)}
	p.cmd.Env = append(append(os.Environ(), "ADDR="+addr, "ADMIN_ADDR=127.0.0.1:0"), settings...)
	return s.start(p, func() error {
		response, err := http.Get(p.url + path)
		if err != nil {
			return err
		}
		return discard(response.Body)
	})
}

// redis starts a Redis server, or another program that serves as one. It does not persist its data.
func (s *stage) redis(ctx context.Context, program string) (*process, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(addr)
	cmd := exec.CommandContext(ctx, program, "--bind", host, "--port", port, "--dir", s.dir, "--save", "", "--appendonly", "no")
	p := &process{url: "redis://" + addr, cmd: cmd}
	return s.start(p, func() error {
		rdb := p.client()
		defer rdb.Close()
		info, err := rdb.Info(ctx, "server").Result()
		if err == nil && !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", p.pid())) {
			err = errors.New("another server uses its port")
		}
		return err
	})
}

// proxy starts a proxy to an address.
func (s *stage) proxy(name, to string) (*toxiproxy.Proxy, error) {
	line := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), name, "127.0.0.1:0", to)
	if err := line.Start(); err != nil {
		return nil, err
	}
	s.ends = append(s.ends, func() error { line.Stop(); return nil })
	return line, nil
}

// filled returns the URL of a database with the schema and the sample data of a program, and the products of a benchmark.
func (all *samples) filled(ctx context.Context, program string, subscriptions int) (string, error) {
	seed := []string{"seed", "--subscriptions", strconv.Itoa(subscriptions)}
	contents := program + " " + strings.Join(seed, " ")
	if all.urls[contents] != "" {
		return all.urls[contents], nil
	}
	database, err := all.database(ctx)
	if err != nil {
		return "", err
	}
	for _, command := range [][]string{{"migrate", "up"}, seed} {
		if _, err := call(ctx, program, []string{"DATABASE_URL=" + database}, command...); err != nil {
			return "", err
		}
	}
	if err := addProducts(ctx, database); err != nil {
		return "", err
	}
	all.urls[contents] = database
	return database, nil
}

// database creates a database and returns its URL.
func (s *stage) database(ctx context.Context) (string, error) {
	if s.postgres == "" {
		return "", errors.New("TEST_POSTGRES_URL is not set: run `make bench`, or let deploy/ephemeral/run start this")
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

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// build compiles the service into dir as `make build` does, and returns the path of the
// program. The service's module is two directories up, where `go -C cmd/bench run .` starts.
func build(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "commerce")
	_, err := call(ctx, "go", nil, "-C", "../..", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "./cmd/commerce")
	return binary, err
}

// call runs a program to its end and returns the last line of its output.
func call(ctx context.Context, name string, settings []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), settings...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, said.Bytes())
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1], nil
}

// discard reads a body to its end, so that the connection can be reused.
func discard(body io.ReadCloser) error {
	_, err := io.Copy(io.Discard, body)
	return errors.Join(err, body.Close())
}
