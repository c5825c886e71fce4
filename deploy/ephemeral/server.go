//go:build unix

package ephemeral

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	startLimit = 20 * time.Second
	stopLimit  = 10 * time.Second
)

// errGone means that a server ended while it started: another process may have its port.
var errGone = errors.New("ended while starting")

// Server is one server process. If a method fails, it fails the test that the server was
// started for. Methods may be called from any goroutine, and return when they are done.
type Server struct {
	// URL stays the same when the server restarts.
	URL string

	dir       string        // data and log
	admin     redis.Options // how this package connects to a Redis server; URL may have fewer rights
	arguments []string
	as        *syscall.Credential                                  // nil: the current user
	answers   func(ctx context.Context, s *Server) error           // checks that this process serves URL
	ready     func(ctx context.Context, admin *redis.Client) error // what its group needs in addition; can be nil
	shutdown  syscall.Signal                                       // asks for an orderly shutdown
	crash     syscall.Signal                                       // ends the process like a crash
	env       []string                                             // in addition to that of this process
	tb        testing.TB                                           // nil for a shared server

	mu      sync.Mutex
	process *os.Process // nil when stopped
}

// Stop shuts the server down. Restart uses the same port again.
func (s *Server) Stop() { s.tb.Helper(); must(s.tb, "stop", s.stop()) }

// Kill ends the server like a crash.
func (s *Server) Kill() { s.tb.Helper(); must(s.tb, "kill", s.kill()) }

// Freeze suspends the server: connections stay open, but nothing responds. On Linux
// that includes the sessions of a Postgres server.
func (s *Server) Freeze() { s.tb.Helper(); must(s.tb, "freeze", s.signal(syscall.SIGSTOP)) }

func (s *Server) Thaw() { s.tb.Helper(); must(s.tb, "thaw", s.signal(syscall.SIGCONT)) }

// Restart restarts the server on the same port. What it did not persist is lost.
func (s *Server) Restart() {
	s.tb.Helper()
	must(s.tb, "stop", s.stop())
	must(s.tb, "start", s.start())
}

func (s *Server) start() error {
	log := filepath.Join(s.dir, "log")
	err := s.launch(log)
	if err == nil {
		return nil
	}
	end := s.kill()
	text, _ := os.ReadFile(log)
	return errors.Join(fmt.Errorf("%s: %w; the end of its log:\n%s", s.arguments[0], err, text[max(0, len(text)-1000):]), end)
}

func (s *Server) launch(log string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(s.arguments[0], s.arguments[1:]...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), s.env...)
	cmd.Stdout, cmd.Stderr = out, out // files need no goroutine, which leak checks would report
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:    true, // ^C ends the tests, and they end the server
		Credential: s.as,
	}
	dieWithParent(cmd.SysProcAttr, s.crash)
	if err := cmd.Start(); err != nil {
		return err
	}
	s.process = cmd.Process
	defer removeClockFiles(cmd.Process.Pid)
	return until(func(ctx context.Context) error {
		err := s.answers(ctx, s)
		if err != nil && s.reap() {
			return errGone
		}
		return err
	})
}

func (s *Server) stop() error { return s.end(s.shutdown) }
func (s *Server) kill() error { return s.end(s.crash) }

// end sends signal and waits. After stopLimit of Patience it kills the process and returns an error.
func (s *Server) end(signal syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	s.send(signal)
	s.send(syscall.SIGCONT) // a frozen process would not handle the signal
	var late error
	for start := time.Now(); !s.reap(); time.Sleep(2 * time.Millisecond) {
		if late == nil && time.Since(start) > Patience(stopLimit) {
			late = errors.Join(fmt.Errorf("%s did not end within %v", s.arguments[0], Patience(stopLimit)), s.process.Kill())
		}
	}
	return late
}

// reap reports whether the process has ended. It does not use os.Process.Wait, which
// would block a goroutine for as long as the server runs.
func (s *Server) reap() bool {
	if s.process == nil {
		return true
	}
	pid, err := syscall.Wait4(s.process.Pid, nil, syscall.WNOHANG, nil)
	if pid == 0 || errors.Is(err, syscall.EINTR) {
		return false
	}
	// A child of a killed Redis would go on writing a file for a replica.
	_ = syscall.Kill(-s.process.Pid, syscall.SIGKILL)
	_ = s.process.Release()
	s.process = nil
	return true
}

func (s *Server) signal(signal syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return errors.New("not running")
	}
	return s.send(signal)
}

// send signals the process. SIGSTOP and SIGCONT are sent to its children too: a stopped parent
// has no new ones, and none that is stopped has ended.
func (s *Server) send(signal syscall.Signal) error {
	if err := s.process.Signal(signal); err != nil || signal != syscall.SIGSTOP && signal != syscall.SIGCONT {
		return err
	}
	pid := strconv.Itoa(s.process.Pid)
	children, _ := os.ReadFile(filepath.Join("/proc", pid, "task", pid, "children")) // on Linux
	for child := range strings.FieldsSeq(string(children)) {
		if n, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(n, signal)
		}
	}
	return nil
}
