// Command mutants plants mistakes in the program's Go, Lua and SQL, one at a time, and reports which
// of them the tests find. A list of mistakes, killed.txt or found.txt, has on each line a file, a line of it, which of the
// lines with this text, what is replaced, which occurrence in the line, by what, and the test that
// fails, separated by tabs.
//
// Programs such as gremlins and go-mutesting choose their own mistakes, in Go alone. They cannot plant
// a fault that the service once had, nor one in a script of Redis or a migration.
//
//	make mutants                  # fail if a test found a mistake before, and none does now
//	bin/mutants -list deploy/check/mutants/found.txt   # faults that the service once had, or nearly had
//
// It changes no file except the list: the compiler reads the mistake through -overlay.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
)

func main() {
	log.SetFlags(0)
	list := flag.String("list", "deploy/check/mutants/killed.txt", "the mistakes")
	flag.Parse()
	mutants, err := readList(*list)
	if err != nil {
		log.Fatal(err)
	}
	killers, err := run(mutants)
	if err != nil {
		log.Fatal(err)
	}
	var text strings.Builder
	killed, lost := 0, 0
	for i, m := range mutants {
		if killers[i] != survives {
			killed++
		} else if m.killer != "" && m.killer != survives {
			lost++
			fmt.Println("LOST", m)
		}
		m.killer = killers[i]
		fmt.Fprintln(&text, m)
	}
	fmt.Printf("tests find %d of %d mistakes; %d that they found before are lost\n", killed, len(mutants), lost)
	if lost > 0 {
		os.Exit(1) // and leave the list as it is
	}
	if err := os.WriteFile(*list, []byte(text.String()), 0o644); err != nil {
		log.Fatal(err)
	}
}

// run tests the mutants, two at the same time, and returns their killers.
func run(mutants []mutant) ([]string, error) {
	killers, errs := make([]string, len(mutants)), make([]error, len(mutants))
	var all sync.WaitGroup
	running := make(chan struct{}, 2)
	for i, m := range mutants {
		running <- struct{}{}
		all.Go(func() {
			killers[i], errs[i] = m.test()
			m.killer = killers[i]
			fmt.Println(m)
			<-running
		})
	}
	all.Wait()
	return killers, errors.Join(errs...)
}

// mutant is one mistake.
type mutant struct {
	file     string
	line     string // without the space around it
	nth      int    // which of the lines with this text, from 0
	from, to string
	at       int    // which occurrence of from in the line, from 0
	killer   string // the package and the test that fails, or survives
}

const survives = "survives"

func (m mutant) String() string {
	return strings.Join([]string{m.file, m.line, fmt.Sprint(m.nth), m.from, fmt.Sprint(m.at), m.to, m.killer}, "\t")
}

func readList(list string) (mutants []mutant, err error) {
	text, err := os.ReadFile(list)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 7 {
			return nil, fmt.Errorf("%s: %q has %d columns, want 7", list, line, len(f))
		}
		m := mutant{file: f[0], line: f[1], from: f[3], to: f[5], killer: f[6]}
		if _, err := fmt.Sscan(f[2]+" "+f[4], &m.nth, &m.at); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", list, line, err)
		}
		mutants = append(mutants, m)
	}
	return mutants, nil
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
	return "", fmt.Errorf("%s no longer has the line %q: plant the mistake elsewhere, or take it from the list", m.file, m.line)
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
	changed, name := filepath.Join(dir, path.Base(m.file)), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	return name, func() { _ = os.RemoveAll(dir) },
		errors.Join(err, os.WriteFile(changed, []byte(text), 0o644), os.WriteFile(name, replace, 0o644))
}
