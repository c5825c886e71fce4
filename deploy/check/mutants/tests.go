package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"path"
	"strings"
)

// stages returns the arguments of go test for a mutant of a file, the quickest first. Tests of the
// documentation are left out: they take long, and do not prove a rule.
func stages(file string) (stages [][]string) {
	dir := path.Dir(file)
	add := func(arguments ...string) { stages = append(stages, arguments) }
	if dir != "cart/redisstore" && dir != "cmd/internal/server" {
		add("./"+dir, "-skip", "Million|Promotion|Failover")
	}
	switch {
	case dir == "deploy/migrations":
		add("./subscriptions", "-skip", "Million|Promotion|Failover")
		add("./cart/catalog")
		add("./auth")
	case strings.HasPrefix(dir, "subscriptions/"):
		add("./subscriptions", "-skip", "Million|Promotion|Failover")
	case strings.HasPrefix(dir, "cart"), dir == "auth/limit":
		add("./cart/carthttp")
		add("./cart/redisstore", "-skip", "TestSchedules")
	}
	add("./cmd/internal/server", "-skip", "Examples|Document")
	if dir == "cart/redisstore" {
		add("./cart/redisstore", "-run", "TestSchedules")
	}
	return stages
}

// test returns the mutant's killer. The test that found it before runs first.
func (m mutant) test() (killer string, err error) {
	overlay, remove, err := m.overlay()
	if err != nil {
		return "", err
	}
	defer remove()
	all := stages(m.file)
	if pkg, name, known := strings.Cut(m.killer, " "); known {
		all = append([][]string{{pkg, "-run", "^" + name + "$"}}, all...)
	}
	for _, arguments := range all {
		if test, err := firstFailure(overlay, arguments); test != "" || err != nil {
			return arguments[0] + " " + test, err
		}
	}
	return survives, nil
}

// firstFailure runs tests until one fails, and returns its name, or "" if all pass. If none fails
// before the package does, such as in a panic, it returns the one that began last.
func firstFailure(overlay string, arguments []string) (test string, err error) {
	cmd := exec.Command("go", append([]string{"test", "-vet=off", "-json", "-failfast", "-timeout", "10m", "-overlay", overlay}, arguments...)...)
	out, err := cmd.Output()
	if exit := new(exec.ExitError); err == nil || !errors.As(err, &exit) {
		return "", err
	}
	test = "TestMain"
	for events := json.NewDecoder(bytes.NewReader(out)); ; {
		var event struct{ Action, Test string }
		if events.Decode(&event) != nil {
			return test, nil
		}
		failed := event.Action == "fail"
		if event.Test != "" && (failed || event.Action == "run") {
			test, _, _ = strings.Cut(event.Test, "/")
		}
		if failed {
			return test, nil
		}
	}
}
