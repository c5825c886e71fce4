package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// usage is what a server and its store have used since they started.
type usage struct {
	server, store time.Duration // CPU time
	allocations   float64       // of the server
	allocated     float64       // bytes
}

// usedBy reads the usage of a server and of the processes of its store.
func usedBy(ctx context.Context, server *process, store []int) (u usage, err error) {
	var err2, err3 error
	u.allocations, u.allocated, err = allocations(ctx, server.admin)
	u.server, err2 = cpu(server.pid())
	u.store, err3 = cpu(store...)
	return u, errors.Join(err, err2, err3)
}

// since returns what was used after u0.
func (u usage) since(u0 usage) usage {
	return usage{u.server - u0.server, u.store - u0.store, u.allocations - u0.allocations, u.allocated - u0.allocated}
}

// cpu returns the CPU time of all threads of processes. A process that has ended counts
// as 0. schedstat counts nanoseconds; /proc/<pid>/stat counts in steps of 10 ms, which is
// more than Redis uses in a short turn.
func cpu(pids ...int) (time.Duration, error) {
	var used time.Duration
	for _, pid := range pids {
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
	}
	return used, nil
}

// resident returns the resident memory of a process in bytes.
func resident(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	value, _, _ := strings.Cut(after, "kB")
	n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	return n << 10, err
}

// allocations reads from a server's metrics how many objects and bytes it has allocated.
// An empty address means that the server has no metrics; both are 0 then.
func allocations(ctx context.Context, admin string) (objects, size float64, err error) {
	if admin == "" {
		return 0, 0, nil
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, admin+"/metrics", nil)
	if err != nil {
		return 0, 0, err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, 0, err
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return 0, 0, fmt.Errorf("metrics of %s: %w", admin, err)
	}
	counter := func(name string) float64 {
		return families[name].GetMetric()[0].GetCounter().GetValue()
	}
	for _, name := range []string{"go_memstats_mallocs_total", "go_memstats_alloc_bytes_total"} {
		if len(families[name].GetMetric()) == 0 {
			return 0, 0, fmt.Errorf("metrics of %s: no %s", admin, name)
		}
	}
	return counter("go_memstats_mallocs_total"), counter("go_memstats_alloc_bytes_total"), nil
}
