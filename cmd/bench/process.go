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
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a server under load.
type process struct {
	url string
	cmd *exec.Cmd
}

// start runs a server that takes its address from ADDR, and waits until probe
// answers. What it logs it writes, and nobody reads it.
func start(ctx context.Context, settings []string, probe, name string, args ...string) (*process, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	p := &process{url: "http://" + addr, cmd: exec.CommandContext(ctx, name, args...)}
	p.cmd.Env = append(append(os.Environ(), "ADDR="+addr, "ADMIN_ADDR=127.0.0.1:0"), settings...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		response, err := http.Get(p.url + probe)
		if err == nil {
			response.Body.Close()
			return p, nil
		}
		if time.Since(began) > 15*time.Second {
			p.stop()
			return nil, fmt.Errorf("%s does not answer: %w", filepath.Base(name), err)
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

func (p *process) stop() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// cpu is what processes have used so far, in user and system mode. One that is gone
// counts as 0.
func cpu(pids ...int) (time.Duration, error) {
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux
	var used time.Duration
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		// The name, in parentheses, may hold anything; the 14th and 15th fields do not.
		_, after, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(after)
		for _, f := range fields[11:13] {
			n, err := strconv.Atoi(f)
			if err != nil {
				return 0, err
			}
			used += time.Duration(n) * tick
		}
	}
	return used, nil
}

// build compiles the service into dir.
func build(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "commerce")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/commerce")
	cmd.Stderr = os.Stderr
	return binary, cmd.Run()
}

// call runs the service's program once and returns its last line.
func call(ctx context.Context, binary string, settings []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), settings...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("commerce %s: %w", strings.Join(args, " "), err)
	}
	last := ""
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		last = lines.Text()
	}
	return last, nil
}

// discard reads a body to its end, so that its connection is used again.
func discard(body io.ReadCloser) error {
	_, err := io.Copy(io.Discard, body)
	return errors.Join(err, body.Close())
}
