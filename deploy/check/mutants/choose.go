package main

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// languages are the files to plant mistakes in: their share of all mistakes, what has none, and
// pairs of what is replaced and by what. Of two that fit, the first is taken.
var languages = []struct {
	percent int
	files   []string
	hidden  *regexp.Regexp // comments and texts
	pairs   []string
}{
	{
		75,
		[]string{
			"cart/*.go", "cart/transfer/*.go", "cart/service/*.go", "cart/carthttp/*.go", "cart/redisstore/*.go", "cart/money/*.go", "cart/catalog/*.go",
			"auth/*.go", "auth/limit/*.go", "subscriptions/*.go", "subscriptions/*/*.go", "cmd/internal/server/*.go", "deploy/connect/*.go",
		},
		regexp.MustCompile(`"(\\.|[^"\\])*"|//.*`),
		slices.Concat([]string{"==", "!=", "!=", "==", "&&", "||", "||", "&&", "+", "-", "-", "+"}, inAll, numbers, inSQL),
	},
	{
		10,
		[]string{"cart/redisstore/*.lua", "auth/limit/*.lua"},
		regexp.MustCompile(`--.*`),
		slices.Concat([]string{"==", "~=", "~=", "==", "and", "or", "or", "and", " + ", " - ", " - ", " + "}, inAll, numbers),
	},
	{
		15,
		[]string{"deploy/migrations/*.sql"},
		regexp.MustCompile(`--.*`),
		slices.Concat([]string{"<>", "=", " = ", " <> ", "NEW", "OLD", "OLD", "NEW"}, inAll, inSQL),
	},
}

var (
	inAll   = []string{"<=", "<", ">=", ">", " < ", " <= ", " > ", " >= ", "true", "false", "false", "true"}
	numbers = []string{"0", "1", "1", "2", "2", "3"}
	inSQL   = []string{
		"AND", "OR", "OR", "AND", "ASC", "DESC", "DESC", "ASC", "EXISTS", "NOT EXISTS",
		"IS NULL", "IS NOT NULL", "IS NOT NULL", "IS NULL", "NOT NULL", "",
	}
)

// choose returns count mutants that compile. The same files give the same mutants.
func choose(count int) (chosen []mutant, err error) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, l := range languages {
		var all []mutant
		for _, pattern := range l.files {
			files, _ := filepath.Glob(pattern)
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					return nil, err
				}
				if !strings.HasSuffix(file, "_test.go") {
					all = append(all, sites(file, string(text), l.hidden, l.pairs)...)
				}
			}
		}
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for n := count * l.percent / 100; n > 0 && len(all) > 0; all = all[1:] {
			if all[0].compiles() {
				chosen, n = append(chosen, all[0]), n-1
			}
		}
	}
	return chosen, nil
}

func (m mutant) compiles() bool {
	overlay, remove, err := m.overlay()
	if err != nil {
		return false
	}
	defer remove()
	return !strings.HasSuffix(m.file, ".go") || exec.Command("go", "build", "-overlay", overlay, "./"+path.Dir(m.file)).Run() == nil
}

// sites returns all mutants of a file.
func sites(file, text string, hidden *regexp.Regexp, pairs []string) (sites []mutant) {
	var patterns []string
	to := map[string]string{}
	for pair := range slices.Chunk(pairs, 2) {
		to[pair[0]] = pair[1]
		patterns = append(patterns, regexp.MustCompile(`^\w.*$`).ReplaceAllString(regexp.QuoteMeta(pair[0]), `\b$0\b`))
	}
	replaced := regexp.MustCompile(strings.Join(patterns, "|"))
	blank := func(found string) string { return strings.Repeat(" ", len(found)) }
	seen := map[string]int{} // how often a line was there
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		m := mutant{file: file, line: trimmed, nth: seen[trimmed]}
		seen[trimmed]++
		if strings.Contains(trimmed, "\t") { // tabs separate the columns of the list
			continue
		}
		for _, found := range replaced.FindAllStringIndex(hidden.ReplaceAllStringFunc(line, blank), -1) {
			m.from = line[found[0]:found[1]]
			m.to, m.at = to[m.from], strings.Count(line[:found[0]], m.from)
			sites = append(sites, m)
		}
	}
	return sites
}
