//go:build unix

package ephemeral

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// home is the temporary directory of the servers. It is removed when this process ends,
// even if it is killed: a shell script waits for a pipe that the kernel then closes.
type home struct {
	dir     string
	alive   *os.File // this process's end of the pipe
	janitor *exec.Cmd
}

// The script tries again, because the servers end with this process and may still be writing.
const janitor = `trap '' HUP INT TERM
read -r _
for _ in 1 2 3 4 5; do rm -rf "$1" && exit; sleep 1; done`

// theHome creates the directory at its first use.
var theHome = sync.OnceValues(newHome)

func newHome() (home, error) {
	dir, err := os.MkdirTemp("", "commerce-test-")
	if err != nil {
		return home{}, err
	}
	// If we are root, Postgres runs as another user and needs to enter the directory.
	if err := os.Chmod(dir, 0o711); err != nil {
		return home{}, err
	}
	wait, alive, err := os.Pipe()
	if err != nil {
		return home{}, err
	}
	defer wait.Close()
	cmd := exec.Command("sh", "-c", janitor, "janitor", dir)
	cmd.Stdin = wait
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // ^C must not end it
	return home{dir, alive, cmd}, cmd.Start()
}

func serverDir(kind string) (string, error) {
	home, err := theHome()
	if err != nil {
		return "", fmt.Errorf("create home: %w", err)
	}
	return os.MkdirTemp(home.dir, kind+"-")
}
