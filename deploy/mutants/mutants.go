// Command mutants changes the program's Go, Lua and SQL, one small mistake at a time, and reports
// which of these mistakes the tests find. It reads and writes a list of mutants, killed.txt, with
// one mutant a line: its file, its place, the change, and the test that fails.
//
//	go run ./deploy/mutants -new 100   # choose 100 mutants and find the test that kills each
//	go run ./deploy/mutants            # fail if a mutant that was killed now survives
//
// It changes no file of the tree: the compiler reads the mutant through -overlay.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

const listName = "deploy/mutants/killed.txt"

func main() {
	log.SetFlags(0)
	count := flag.Int("new", 0, "choose this many mutants anew instead of reading the list")
	workers := flag.Int("workers", 2, "mutants tested at the same time")
	flag.Parse()
	var list []mutant
	var err error
	if *count > 0 {
		list, err = choose(*count)
	} else {
		list, err = readList()
	}
	if err != nil {
		log.Fatal(err)
	}
	before := slices.Clone(list)
	run(list, *workers)
	if err := writeList(list); err != nil {
		log.Fatal(err)
	}
	lost := 0
	for i := range list {
		if before[i].killer != "" && before[i].killer != survivor && list[i].killer == survivor {
			lost++
			fmt.Println("LOST", before[i])
		}
	}
	killed := len(list) - len(slices.DeleteFunc(slices.Clone(list), func(m mutant) bool { return m.killer != survivor }))
	fmt.Printf("%d of %d mutants are killed, %d that were killed survive\n", killed, len(list), lost)
	if lost > 0 {
		os.Exit(1)
	}
}

// survivor stands in the list for a mutant that no test kills.
const survivor = "survives"

// mutant is one small mistake.
type mutant struct {
	file   string
	line   string // the text of the line, without the space around it
	nth    int    // which of the file's lines with this text, from 0
	from   string
	at     int // which of the line's occurrences of from, from 0
	to     string
	killer string // "package Test", or survivor
}

func (m mutant) String() string {
	return strings.Join([]string{m.file, m.line, fmt.Sprint(m.nth), m.from, fmt.Sprint(m.at), m.to, m.killer}, "\t")
}

func parse(line string) (m mutant, err error) {
	f := strings.Split(line, "\t")
	if len(f) != 7 {
		return m, fmt.Errorf("%s: %q has %d columns, want 7", listName, line, len(f))
	}
	m = mutant{file: f[0], line: f[1], from: f[3], to: f[5], killer: f[6]}
	_, err = fmt.Sscan(f[2]+" "+f[4], &m.nth, &m.at)
	return m, err
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
		if m.from == wholeLine {
			lines[i] = m.to + "\n"
			return strings.Join(lines, ""), nil
		}
		start := 0
		for range m.at {
			start += strings.Index(line[start:], m.from) + len(m.from)
		}
		start += strings.Index(line[start:], m.from)
		lines[i] = line[:start] + m.to + line[start+len(m.from):]
		return strings.Join(lines, ""), nil
	}
	return "", fmt.Errorf("%s no longer has the line %q", m.file, m.line)
}

// choose returns count mutants, spread by a hash: a half in Go, a third in Lua, the rest in SQL.
func choose(count int) ([]mutant, error) {
	var list []mutant
	for _, kind := range kinds {
		var all []mutant
		for _, pattern := range kind.files {
			files, err := filepath.Glob(pattern)
			if err != nil {
				return nil, err
			}
			for _, file := range files {
				if strings.HasSuffix(file, "_test.go") {
					continue
				}
				found, err := sites(file, kind)
				if err != nil {
					return nil, err
				}
				all = append(all, found...)
			}
		}
		slices.SortFunc(all, func(a, b mutant) int { return strings.Compare(a.hash(), b.hash()) })
		list = append(list, viable(all, count*kind.percent/100)...)
	}
	return list, nil
}

func (m mutant) hash() string {
	sum := sha256.Sum256([]byte(m.String()))
	return hex.EncodeToString(sum[:])
}

func readList() ([]mutant, error) {
	text, err := os.ReadFile(listName)
	if err != nil {
		return nil, err
	}
	var list []mutant
	for line := range strings.Lines(string(text)) {
		m, err := parse(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

func writeList(list []mutant) error {
	var b strings.Builder
	for _, m := range list {
		fmt.Fprintln(&b, m)
	}
	return os.WriteFile(listName, []byte(b.String()), 0o644)
}

// run finds the killer of each mutant.
func run(list []mutant, workers int) {
	var all sync.WaitGroup
	var mu sync.Mutex
	next := 0
	for range workers {
		all.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= len(list) {
					return
				}
				killer, err := list[i].test()
				if err != nil {
					log.Fatal(err)
				}
				list[i].killer = killer
				fmt.Println(i, list[i])
			}
		})
	}
	all.Wait()
}
