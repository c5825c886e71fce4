package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// usage is what a server and its store use.
type usage struct {
	server, store time.Duration         // CPU time
	stores        map[int]time.Duration // by process, since it started
	allocations   float64               // of the server
	allocated     float64               // bytes
	resident      int64                 // bytes at the end
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
	used := usage{
		server: after.server - before.server, resident: after.resident,
		allocations: after.allocations - before.allocations, allocated: after.allocated - before.allocated,
	}
	for pid, took := range after.stores {
		used.store += max(0, took-before.stores[pid]) // a session of Postgres may have ended
	}
	return used, err
}

// used returns what the server and the processes of its store have used since they started.
func (s *server) used(store []int) (u usage, err error) {
	var errs [3]error
	u.allocations, u.allocated, errs[0] = allocations(s.admin)
	u.server, errs[1] = cpuTime(s.pid())
	u.resident, errs[2] = resident(s.pid(), "VmRSS")
	u.stores = map[int]time.Duration{}
	for _, pid := range store {
		u.stores[pid], err = cpuTime(pid)
		errs[0] = errors.Join(errs[0], err)
	}
	return u, errors.Join(errs[:]...)
}

// cpuTime returns the CPU time of all threads of a process, 0 if it has ended. /proc/<pid>/stat counts
// in steps of 10 ms, which is more than Redis uses in a short turn.
func cpuTime(pid int) (used time.Duration, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		running, _, _ := strings.Cut(string(stat), " ")
		n, err := strconv.ParseInt(running, 10, 64)
		if err != nil {
			return 0, err
		}
		used += time.Duration(n)
	}
	return used, nil
}

// resident returns the resident memory of a process in bytes: that of now is VmRSS, and the
// highest since resetPeak is VmHWM.
func resident(pid int, field string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(status), field+":")
	value, _, _ := strings.Cut(after, "kB")
	n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	return n << 10, err
}

// resetPeak sets the highest resident memory of a process to that of now.
func resetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// allocations reads from a server's metrics how many objects and bytes it has allocated.
// An empty address means that the server has no metrics; both are 0 then.
func allocations(admin string) (objects, size float64, err error) {
	if admin == "" {
		return 0, 0, nil
	}
	response, err := http.Get(admin + "/metrics")
	if err != nil {
		return 0, 0, err
	}
	defer response.Body.Close()
	found := map[string]float64{}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), " "); ok {
			found[name], _ = strconv.ParseFloat(value, 64) // comments have no number
		}
	}
	objects, size = found["go_memstats_mallocs_total"], found["go_memstats_alloc_bytes_total"]
	if objects == 0 || size == 0 {
		return 0, 0, fmt.Errorf("metrics of %s: no allocations", admin)
	}
	return objects, size, nil
}
