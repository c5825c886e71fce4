package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/procfs"
)

// usage is what a server and its store use.
type usage struct {
	server, store time.Duration         // CPU time
	stores        map[int]time.Duration // by process, since it started
	resident      uint64                // bytes at the end
}

// using returns what the server and its store use while do runs.
func (s *server) using(ctx context.Context, do func() error) (usage, error) {
	store, err := s.store(ctx)
	if err != nil {
		return usage{}, err
	}
	before, err := s.used(store)
	if err != nil {
		return before, err
	}
	if err := do(); err != nil {
		return before, err
	}
	after, err := s.used(store)
	used := usage{server: after.server - before.server, resident: after.resident}
	for pid, took := range after.stores {
		used.store += max(0, took-before.stores[pid]) // a session of Postgres may have ended
	}
	return used, err
}

// used returns what the server and the processes of its store have used since they started.
func (s *server) used(store []int) (u usage, err error) {
	if u.resident, _, err = resident(s.pid()); err != nil {
		return u, err
	}
	u.server, err = cpuTime(s.pid())
	u.stores = map[int]time.Duration{}
	for _, pid := range store {
		if err == nil {
			u.stores[pid], err = cpuTime(pid)
		}
	}
	return u, err
}

// cpuTime returns the CPU time of all threads of a process, 0 if it has ended. /proc/<pid>/stat counts
// in steps of 10 ms, which is more than Redis uses in a short turn.
func cpuTime(pid int) (used time.Duration, err error) {
	threads, err := procfs.AllThreads(pid)
	for _, thread := range threads {
		stat, failed := thread.Schedstat()
		used += time.Duration(stat.RunningNanoseconds)
		if !errors.Is(failed, os.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	return used, err
}

// resident returns the resident memory of a process in bytes: that of now, and the highest since
// resetPeak.
func resident(pid int) (now, peak uint64, err error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0, err
	}
	status, err := process.NewStatus()
	return status.VmRSS, status.VmHWM, err
}

// resetPeak sets the highest resident memory of a process to that of now.
func resetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}
