package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
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

var failure = regexp.MustCompile(`^\s*--- FAIL: ([^/\s]+)|^panic: `)

// firstFailure runs tests until one fails, and returns its package and name, or "" if all pass.
func firstFailure(overlay string, arguments []string) (string, error) {
	cmd := exec.Command("go", append([]string{"test", "-vet=off", "-v", "-failfast", "-timeout", "10m", "-overlay", overlay}, arguments...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	failed, test := false, "TestMain"
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<24)
	for !failed && lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "=== RUN   "); ok {
			test, _, _ = strings.Cut(name, "/")
		}
		if found := failure.FindStringSubmatch(lines.Text()); found != nil {
			failed = true
			if found[1] != "" {
				test = found[1]
			}
		}
	}
	if failed {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	err = cmd.Wait()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		return "", err
	}
	if failed || err != nil {
		return arguments[0] + " " + test, nil
	}
	return "", nil
}

// apply returns the file with the mistake.
func (m mutant) apply() (string, error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	lines, nth := strings.SplitAfter(string(text), "\n"), 0
	for i, line := range lines {
		if strings.TrimSpace(line) != m.line {
			continue
		}
		if nth++; nth <= m.nth {
			continue
		}
		parts := strings.SplitN(line, m.from, m.at+2)
		last := len(parts) - 1
		lines[i] = strings.Join(parts[:last], m.from) + m.to + parts[last]
		return strings.Join(lines, ""), nil
	}
	return "", fmt.Errorf("%s no longer has the line %q: take it from %s, or choose anew", m.file, m.line, list)
}

// overlay writes the file with the mistake to a temporary directory, and returns the file for
// -overlay.
func (m mutant) overlay() (name string, remove func(), err error) {
	text, err := m.apply()
	if err != nil {
		return "", nil, err
	}
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", nil, err
	}
	changed := filepath.Join(dir, path.Base(m.file))
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return "", nil, err
	}
	name = filepath.Join(dir, "overlay.json")
	err = errors.Join(os.WriteFile(changed, []byte(text), 0o644), os.WriteFile(name, replace, 0o644))
	return name, func() { _ = os.RemoveAll(dir) }, err
}
