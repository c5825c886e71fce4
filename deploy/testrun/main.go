// Command testrun runs go test with the given arguments. It shows what runs and what is left, and
// prints the output of what failed at the end:
//
//	go run ./deploy/testrun -short ./...
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func run(args []string) error {
	packages, err := packagesOf(args)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p := newProgress(os.Stdout, packages)
	stop := p.everySecond(isTerminal(os.Stdout))
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			p.print(lines.Text()) // not an event, such as a wrong flag
			continue
		}
		p.add(e)
	}
	stop() // nothing is shown after the result
	return p.result(cmd.Wait())
}

// packagesOf returns how many packages with tests the arguments name.
func packagesOf(args []string) (int, error) {
	list := []string{"list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}"}
	for _, arg := range args {
		if strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "commerce") {
			list = append(list, arg)
		}
	}
	out, err := exec.Command("go", list...).Output()
	if err != nil {
		return 0, fmt.Errorf("go list: %w", err)
	}
	return len(strings.Fields(string(out))), nil
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// everySecond shows the progress on a terminal until the returned function is called.
func (p *progress) everySecond(terminal bool) (stop func()) {
	if !terminal {
		return func() {}
	}
	done := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.show()
			case <-done:
				return
			}
		}
	})
	return func() { close(done); shown.Wait() }
}
