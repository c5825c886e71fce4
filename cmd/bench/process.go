package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// process is a server process.
type process struct {
	url   string
	admin string // address of its metrics, "" for none
	cmd   *exec.Cmd
}

// startLimit is how long a process may take to start. The service needs less than a second,
// some peers need many.
const startLimit = time.Minute

// probe fails until the server at a URL is ready.
type probe func(ctx context.Context, url string) error

// responds is ready when path has any response.
func responds(path string) probe {
	return func(ctx context.Context, url string) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		return discard(response.Body)
	}
}

// startHTTP starts a server that reads its addresses from ADDR and ADMIN_ADDR, and waits
// until it is ready. The server's log is discarded.
func startHTTP(ctx context.Context, settings []string, ready probe, name string, args ...string) (*process, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	admin, err := freeAddr()
	if err != nil {
		return nil, err
	}
	p := &process{url: "http://" + addr, admin: "http://" + admin, cmd: exec.CommandContext(ctx, name, args...)}
	p.cmd.Env = append(append(os.Environ(), "ADDR="+addr, "ADMIN_ADDR="+admin), settings...)
	return p, p.start(func() error { return ready(ctx, p.url) })
}

// startRedis starts a Redis server that does not persist its data.
func startRedis(ctx context.Context, dir string, settings ...string) (*process, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(addr)
	arguments := []string{"--bind", host, "--port", port, "--dir", dir, "--save", "", "--appendonly", "no"}
	p := &process{url: "redis://" + addr, cmd: exec.CommandContext(ctx, "redis-server", append(arguments, settings...)...)}
	probe := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DisableIdentity: true})
	defer probe.Close()
	return p, p.start(func() error {
		info, err := probe.Info(ctx, "server").Result()
		if err == nil && !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", p.pid())) {
			err = errors.New("another server uses its port")
		}
		return err
	})
}

// start starts the process and waits until answers returns nil.
func (p *process) start(answers func() error) error {
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		err := answers()
		if err == nil {
			return nil
		}
		if time.Since(began) > startLimit {
			p.stop()
			return fmt.Errorf("%s does not respond: %w", filepath.Base(p.cmd.Path), err)
		}
	}
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) stop() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// build compiles the service into dir as `make build` does, and returns the path of the
// program.
func build(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "commerce")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "commerce/cmd/commerce")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return binary, nil
}

// call runs a command of the service's program and returns the last line of its output.
// It shows progress only on a terminal.
func call(ctx context.Context, binary string, settings []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), settings...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if onTerminal() {
		cmd.Stderr = os.Stderr
	}
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(binary), strings.Join(args, " "), err, said.Bytes())
	}
	last := ""
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		last = lines.Text()
	}
	return last, nil
}

// discard reads a body to its end, so that the connection can be reused.
func discard(body io.ReadCloser) error {
	_, err := io.Copy(io.Discard, body)
	return errors.Join(err, body.Close())
}
