//go:build unix

package ephemeral

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// home is the temporary directory in which servers live. It is removed when
// this process ends in whatever way: a small shell waits at a pipe that the
// kernel closes with the process.
type home struct {
	dir     string
	alive   *os.File // the pipe's end that this process holds
	janitor *exec.Cmd
}

// The servers die at the same moment as we do and may still be writing, hence
// the repetition.
const janitor = `trap '' HUP INT TERM
read -r _
for _ in 1 2 3 4 5; do rm -rf "$1" && exit; sleep 1; done`

func newHome() (*home, error) {
	dir, err := os.MkdirTemp("", "commerce-test-")
	if err != nil {
		return nil, fmt.Errorf("make home: %w", err)
	}
	// Postgres runs as another user when we are root, and passes through.
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, fmt.Errorf("make home: %w", err)
	}
	wait, alive, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make home: %w", err)
	}
	defer wait.Close()
	cmd := exec.Command("sh", "-c", janitor, "janitor", dir)
	cmd.Stdin = wait
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // ^C is not for it
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start janitor: %w", err)
	}
	return &home{dir: dir, alive: alive, janitor: cmd}, nil
}

// room makes a directory of its own for one server.
func (h *home) room(kind string) (string, error) {
	dir, err := os.MkdirTemp(h.dir, kind+"-")
	if err != nil {
		return "", fmt.Errorf("make room: %w", err)
	}
	return dir, nil
}

// remove lets the janitor do its work and waits for it.
func (h *home) remove() error {
	_ = h.alive.Close()
	if err := h.janitor.Wait(); err != nil {
		return fmt.Errorf("remove %s: %w", h.dir, err)
	}
	return nil
}
