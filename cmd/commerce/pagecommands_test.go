package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"commerce/deploy/ephemeral"
)

// The commands of .github/CONTRIBUTING.md run as the page shows them. The demo listens on other
// ports, and stops when it answers.
func TestContributing_CommandsRun(t *testing.T) {
	t.Parallel()
	for _, script := range commandsRunBy(t, ".github/CONTRIBUTING.md") {
		if strings.Contains(script, "make run") {
			if said := buildAndRun(t, script); !strings.Contains(said, "  make torture ") {
				t.Errorf("%s lists no targets:\n%s", script, said)
			}
		} else if said := runInRepository(t, script); !strings.Contains(said, "ok  ") || strings.Contains(said, "no tests to run") {
			t.Errorf("%s runs no test:\n%s", script, said)
		}
	}
}

// The first command of README.md compiles and starts the demo.
func TestReadme_MakesTheDemo(t *testing.T) {
	t.Parallel()
	for _, script := range commandsRunBy(t, "README.md") {
		// The page says so, for the case that the ports are taken.
		buildAndRun(t, "export ADDR=:8081 ADMIN_ADDR=127.0.0.1:9091; "+script)
	}
}

// The pages name only targets of make that exist, also in their tables and in commands that take too
// long for a test.
func TestMake_HasTheTargetsOfThePages(t *testing.T) {
	t.Parallel()
	makefile := source(t, "Makefile")
	for _, page := range []string{".github/CONTRIBUTING.md", "README.md", "docs/guarantees.md", "docs/performance.md", "docs/deploy.md"} {
		targets := regexp.MustCompile("(?m)(?:^|`|[A-Z0-9] )make ([a-z]+)").FindAllStringSubmatch(source(t, page), -1)
		for _, target := range targets {
			if !regexp.MustCompile(`(?m)^` + target[1] + `:`).MatchString(makefile) {
				t.Errorf("%s: make has no target %s", page, target[1])
			}
		}
		if len(targets) == 0 {
			t.Errorf("%s names no target", page)
		}
	}
}

// The short form of a promise runs as docs/guarantees.md shows it. Its table goes to another
// directory, so that it does not replace the table of a long run.
func TestGuaranteesPage_ShortFormRuns(t *testing.T) {
	t.Parallel()
	for _, script := range commandsRunBy(t, "docs/guarantees.md") {
		if said := runInRepository(t, script, "MAKEFLAGS=OUT="+t.TempDir()); !strings.Contains(said, "PASS") {
			t.Errorf("%s:\n%s", script, said)
		}
	}
}

// commandsRunBy returns the shell blocks of a page that name this test, at least one.
func commandsRunBy(t *testing.T, page string) (scripts []string) {
	t.Helper()
	for _, block := range regexp.MustCompile("(?ms)^<!-- run-by: "+t.Name()+" -->\n```sh\n(.*?)^```$").FindAllStringSubmatch(source(t, page), -1) {
		scripts = append(scripts, block[1])
	}
	if len(scripts) == 0 {
		t.Fatalf("no block of %s names this test", page)
	}
	return scripts
}

// runInRepository runs a script at the root of the repository, and returns what it printed.
func runInRepository(t *testing.T, script string, env ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	sh := exec.CommandContext(ctx, "sh", "-euc", script)
	// Without vet, like make test: make lint runs it.
	sh.Dir, sh.Env = root, append(append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -vet=off"), env...)
	printed, err := sh.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", script, err, printed)
	}
	return string(printed)
}

// buildAndRun runs a script that ends with the demo on the ports 8081 and 9091, for which it takes
// free ones, and stops the demo as soon as it answers. The demo must print its tokens. It returns
// what the script printed.
func buildAndRun(t *testing.T, script string) string {
	t.Helper()
	ports := ephemeral.FreePorts(t, 2)
	public := fmt.Sprintf("127.0.0.1:%d", ports[0])
	script = strings.NewReplacer(":8081", public, "127.0.0.1:9091", fmt.Sprintf("127.0.0.1:%d", ports[1])).Replace(script)
	sh := exec.Command("sh", "-euc", script)
	// Its own program, because another test could be running the one in bin.
	sh.Dir, sh.Env = root, append(os.Environ(), "MAKEFLAGS=PROGRAM="+filepath.Join(t.TempDir(), "commerce"))
	sh.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var printed bytes.Buffer
	sh.Stdout, sh.Stderr = &printed, &printed
	if err := sh.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- sh.Wait() }()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		response, err := http.Get("http://" + public + "/openapi.yaml")
		if err == nil {
			response.Body.Close()
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("%s: %v\n%s", script, err, printed.Bytes())
		default:
		}
		if time.Since(began) > 5*time.Minute {
			t.Errorf("%s: the demo does not answer", script)
			break
		}
	}
	_ = syscall.Kill(-sh.Process.Pid, syscall.SIGINT) // Ctrl-C
	<-ended
	said := printed.String()
	if !strings.Contains(said, "Customer JWT") {
		t.Errorf("%s: no demo:\n%s", script, said)
	}
	return said
}

// source returns a file of the repository.
func source(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
