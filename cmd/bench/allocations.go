package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"commerce/cmd/bench/results"
)

// benchAllocations counts every allocation of single requests, by the module that makes it.
func benchAllocations(ctx context.Context, s *stage) (results.Benchmark, error) {
	service, err := openShop(ctx, s, s.binary, "PPROF=on", "GODEBUG=memprofilerate=1")
	if err != nil {
		return results.Benchmark{}, err
	}
	b := results.Benchmark{Name: "allocations"}
	for _, c := range []struct {
		name    string
		clients clients
		atMost  *float64
	}{
		{"GET /cart", reading("/cart", fewLines, (*shop).newGuest)(service), new(40.0)},
		{"GET /cart/count", reading("/cart/count", fewLines, (*shop).newGuest)(service), nil},
		{"POST /cart/add", adding(plain)(service), nil},
		{"PATCH /cart/items", patching(plain)(service), nil},
	} {
		made, err := service.allocationsOf(ctx, c.clients)
		if err != nil {
			return b, fmt.Errorf("%s: %w", c.name, err)
		}
		for _, owner := range slices.Sorted(maps.Keys(made)) {
			v := results.Value{Name: c.name + ": " + owner, Figure: results.FigureOf(made[owner])}
			if owner == ownCode {
				v.AtMost = c.atMost
			}
			b.Values = append(b.Values, v)
		}
	}
	return b, nil
}

// Owners of allocations other than modules.
const (
	ownCode  = "the service's code"
	standard = "net/http and the rest of the standard library"
	profiler = "the profile itself"
)

// allocationsOf returns the allocations of a request by their owners, without rare ones.
func (s *shop) allocationsOf(ctx context.Context, clients clients) (map[string]float64, error) {
	all, err := newClients(ctx, 1, clients)
	if err != nil {
		return nil, err
	}
	transport := newTransport(1)
	defer transport.CloseIdleConnections()
	const warm, counted = 50, 300 // the profile makes requests slow
	if err := all[0].times(ctx, transport, warm); err != nil {
		return nil, err
	}
	before, err := s.allocated(ctx)
	if err != nil {
		return nil, err
	}
	if err := all[0].times(ctx, transport, counted); err != nil {
		return nil, err
	}
	made, err := s.allocated(ctx)
	for owner := range made {
		made[owner] = (made[owner] - before[owner]) / counted
	}
	maps.DeleteFunc(made, func(_ string, n float64) bool { return n < 0.5 })
	return made, err
}

// allocated reads how many objects the service has allocated since its start, by owners.
func (s *shop) allocated(ctx context.Context) (map[string]float64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.server.admin+"/debug/pprof/heap?gc=1", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	p, err := profile.Parse(response.Body)
	if err != nil {
		return nil, fmt.Errorf("heap profile: %w", err)
	}
	objects := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == "alloc_objects" })
	if objects < 0 {
		return nil, errors.New("heap profile: does not count allocations")
	}
	made := map[string]float64{}
	for _, sample := range p.Sample {
		if who := owner(sample.Location); who != profiler {
			made[who] += float64(sample.Value[objects])
		}
	}
	return made, nil
}

// owner returns the module that makes an allocation: that of the innermost function on the
// stack that is not of the standard library.
func owner(stack []*profile.Location) string {
	who := standard
	for _, location := range stack {
		for _, line := range location.Line { // inlined functions first
			name, _, _ := strings.Cut(line.Function.Name, "[") // without type arguments
			path := strings.SplitN(name, "/", 4)
			switch {
			case strings.HasPrefix(name, "net/http/pprof."):
				return profiler
			case who != standard:
			case path[0] == "commerce" || strings.HasPrefix(name, "main."):
				who = ownCode
			case len(path) > 2 && strings.Contains(path[0], "."):
				module, _, _ := strings.Cut(path[2], ".")
				who = path[0] + "/" + path[1] + "/" + module
			}
		}
	}
	return who
}
