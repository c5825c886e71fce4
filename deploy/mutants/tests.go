package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"strings"
	"syscall"
)

// stages returns the arguments of go test for a mutant of a file, the quickest first. Tests in a
// browser and of pages are left out: they take long, and do not prove a rule.
func stages(file string) (stages [][]string) {
	dir := strings.TrimSuffix(path.Dir(file), "/lua")
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
	add("./cmd/internal/server", "-skip",
		"Playground|Guide|Readme|Reference|Npm|Trip|Manual|Resend|Examples|Document|Pages|Shelf|Snippets|Mermaid")
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
		if killer, err := firstFailure(overlay, arguments); killer != "" || err != nil {
			return killer, err
		}
	}
	return survives, nil
}

// firstFailure runs tests until one fails, and returns its package and name, or "" if all pass.
func firstFailure(overlay string, arguments []string) (string, error) {
	cmd := exec.Command("go", append([]string{"test", "-vet=off", "-json", "-failfast", "-timeout", "10m", "-overlay", overlay}, arguments...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	failed, test := false, "" // the test that fails, otherwise the last that began
	events := json.NewDecoder(out)
	for !failed {
		var event struct{ Action, Test string }
		if err = events.Decode(&event); err != nil {
			break
		}
		failed = event.Action == "fail"
		if event.Test != "" && (failed || event.Action == "run") {
			test, _, _ = strings.Cut(event.Test, "/")
		}
	}
	if failed {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	exit := cmd.Wait()
	switch {
	case failed || errors.Is(err, io.EOF) && exit != nil:
		return arguments[0] + " " + cmp.Or(test, "TestMain"), nil
	case errors.Is(err, io.EOF):
		return "", nil
	}
	return "", err
}
