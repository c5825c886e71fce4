// Command mutants plants mistakes in the program's Go, Lua and SQL, one at a time, and reports which
// of them the tests find. The list of mistakes is killed.txt: a file, a line of it, which of the
// lines with this text, what is replaced, which occurrence in the line, by what, and the test that
// fails, separated by tabs.
//
//	go run ./deploy/mutants            # fail if a test found a mistake before, and none does now
//	go run ./deploy/mutants -new 100   # choose 100 mistakes anew
//
// It changes no file but the list: the compiler reads the mistake through -overlay.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"
)

const list = "deploy/mutants/killed.txt"

func main() {
	log.SetFlags(0)
	count := flag.Int("new", 0, "how many mistakes to choose anew, instead of those of the list")
	flag.Parse()
	mutants, err := choose(*count)
	if *count == 0 {
		mutants, err = readList()
	}
	if err != nil {
		log.Fatal(err)
	}
	killed, lost := run(mutants)
	if err := writeList(mutants); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("tests find %d of %d mistakes; %d that they found before are lost\n", killed, len(mutants), lost)
	if lost > 0 {
		os.Exit(1)
	}
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

func readList() (mutants []mutant, err error) {
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

func writeList(mutants []mutant) error {
	var b strings.Builder
	for _, m := range mutants {
		fmt.Fprintln(&b, m)
	}
	return os.WriteFile(list, []byte(b.String()), 0o644)
}

// run tests the mutants, two at the same time, and sets their killers.
func run(mutants []mutant) (killed, lost int) {
	var all sync.WaitGroup
	next := make(chan *mutant)
	for range 2 {
		all.Go(func() {
			for m := range next {
				before := m.killer
				var err error
				if m.killer, err = m.test(); err != nil {
					log.Fatal(err)
				}
				if before != "" && before != survives && m.killer == survives {
					fmt.Print("LOST ")
				}
				fmt.Println(m)
			}
		})
	}
	before := make([]string, len(mutants))
	for i := range mutants {
		before[i] = mutants[i].killer
		next <- &mutants[i]
	}
	close(next)
	all.Wait()
	for i, m := range mutants {
		if m.killer != survives {
			killed++
		} else if before[i] != "" && before[i] != survives {
			lost++
		}
	}
	return killed, lost
}
