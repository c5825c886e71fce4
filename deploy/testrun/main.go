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
	lines := make(chan string)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(events)
		scanner.Buffer(nil, 64<<20)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
	}()
	var tick <-chan time.Time
	if info, err := os.Stdout.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 { // a terminal
		tick = time.Tick(time.Second)
	}
	for {
		select {
		case line, more := <-lines:
			if !more {
				return p.result(cmd.Wait())
			}
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				p.line(line) // not an event, such as a wrong flag
				continue
			}
			p.add(e)
		case <-tick:
			p.show()
		}
	}
}

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
