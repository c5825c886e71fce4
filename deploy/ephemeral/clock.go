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

// clockAhead returns the environment of a program whose clock is ahead of this machine's.
// It preloads libfaketime, and libc so that Redis does not use jemalloc: the two call each
// other at the start without an end.
func clockAhead(by time.Duration) ([]string, error) {
	found, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil {
		return nil, err
	}
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

// removeClockFiles removes what libfaketime would share with child processes. A program that
// is killed would leave it behind.
func removeClockFiles(pid int) {
	_ = os.Remove("/dev/shm/faketime_shm_" + strconv.Itoa(pid))
	_ = os.Remove("/dev/shm/sem.faketime_sem_" + strconv.Itoa(pid))
}
