//go:build unix

package ephemeral

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// clockAhead returns environment variables that set a program's clock ahead of this machine's.
// They preload libfaketime. They also preload libc, so that Redis does not use jemalloc:
// libfaketime and jemalloc would call each other endlessly at the start.
func clockAhead(by time.Duration) ([]string, error) {
	if by == 0 {
		return nil, nil
	}
	found, _ := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if len(found) == 0 {
		return nil, errors.New("faketime is not installed (sh deploy/ephemeral/install.sh)")
	}
	return []string{
		"LD_PRELOAD=" + found[0] + " libc.so.6",
		fmt.Sprintf("FAKETIME=%+.3fs", by.Seconds()),
		"DONT_FAKE_MONOTONIC=1",
		"NO_FAKE_STAT=1",
	}, nil
}

// removeClockFiles removes the files that libfaketime would share with child processes. A
// killed program would leave them behind.
func removeClockFiles(pid int) {
	_ = os.Remove("/dev/shm/faketime_shm_" + strconv.Itoa(pid))
	_ = os.Remove("/dev/shm/sem.faketime_sem_" + strconv.Itoa(pid))
}
