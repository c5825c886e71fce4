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

// stage is a command of the tests.
type stage struct {
	pkg  string
	args []string
}

// stages returns what to run for a mutant of a file, the quickest first. Tests in a browser and
// of pages take long, and are not what proves a rule.
func stages(file string) []stage {
	var list []stage
	dir := path.Dir(file)
	if strings.HasSuffix(dir, "/lua") {
		dir = path.Dir(dir)
	}
	quick := func(pkg string, args ...string) { list = append(list, stage{pkg, args}) }
	if dir != "cart/redisstore" && dir != "cmd/internal/server" {
		quick("./"+dir, "-skip", "Million|Promotion|Failover")
	}
	switch {
	case strings.HasPrefix(file, "deploy/migrations"):
		quick("./subscriptions", "-skip", "Million|Promotion|Failover")
		quick("./cart/catalog")
		quick("./auth")
	case strings.HasPrefix(file, "cart"), strings.HasPrefix(file, "auth/quota"):
		quick("./cart/carthttp")
		quick("./cart/redisstore", "-skip", "TestSchedules$|TestSmall")
	}
	quick("./cmd/internal/server", "-skip",
		"Playground|Guide|Readme|Reference|Npm|Trip|Manual|Resend|Examples|Document|Pages|Shelf|Snippets|Mermaid")
	if dir == "cart/redisstore" {
		quick("./cart/redisstore", "-run", "TestSchedules$|TestSmall")
	}
	return list
}

// test returns the mutant's killer. A test that killed it before runs first.
func (m mutant) test() (string, error) {
	overlay, remove, err := m.overlay()
	if err != nil {
		return "", err
	}
	defer remove()
	if pkg, name, known := strings.Cut(m.killer, " "); known {
		if failed, err := fails(overlay, stage{pkg, []string{"-run", "^" + name + "$"}}); failed != "" || err != nil {
			return failed, err
		}
	}
	for _, s := range stages(m.file) {
		if failed, err := fails(overlay, s); failed != "" || err != nil {
			return failed, err
		}
	}
	return survivor, nil
}

var failure = regexp.MustCompile(`^\s*--- FAIL: ([^/\s]+)|^(panic: )|^FAIL\s+(\S+ \[build failed\])`)

// fails runs a stage until its first failure, which it returns, or "" if all tests pass.
func fails(overlay string, s stage) (string, error) {
	args := append([]string{"test", "-vet=off", "-v", "-failfast", "-timeout", "10m", "-overlay", overlay}, s.args...)
	cmd := exec.Command("go", append(args, s.pkg)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	failed, test := "", "panic"
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "=== RUN   "); ok {
			test, _, _ = strings.Cut(name, "/")
		}
		if found := failure.FindStringSubmatch(lines.Text()); found != nil {
			if found[1] != "" {
				test = found[1]
			}
			failed = s.pkg + " " + test
			break
		}
	}
	if failed != "" {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return "", err
	} else if err != nil && failed == "" {
		return s.pkg + " " + test, nil
	}
	return failed, nil
}

// viable returns the first count mutants that compile.
func viable(all []mutant, count int) []mutant {
	var list []mutant
	for _, m := range all {
		if len(list) == count {
			break
		}
		overlay, remove, err := m.overlay()
		if err != nil {
			continue
		}
		if !strings.HasSuffix(m.file, ".go") || exec.Command("go", "build", "-overlay", overlay, "./"+path.Dir(m.file)).Run() == nil {
			list = append(list, m)
		}
		remove()
	}
	return list
}

// overlay writes the mutant to a temporary directory, and returns the file for -overlay.
func (m mutant) overlay() (name string, remove func(), err error) {
	text, err := m.apply()
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", nil, err
	}
	here, err := os.Getwd()
	if err != nil {
		return "", nil, err
	}
	mutated := filepath.Join(dir, path.Base(m.file))
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(here, m.file): mutated}})
	if err != nil {
		return "", nil, err
	}
	name = filepath.Join(dir, "overlay.json")
	err = errors.Join(os.WriteFile(mutated, []byte(text), 0o644), os.WriteFile(name, list, 0o644))
	if err != nil {
		return "", nil, fmt.Errorf("overlay of %s: %w", m.file, err)
	}
	return name, func() { _ = os.RemoveAll(dir) }, nil
}
