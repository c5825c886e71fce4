package main

import (
	"crypto/sha256"
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// language has the mistakes that one makes in it.
type language struct {
	percent int // of all mutants
	files   []string
	swaps   *regexp.Regexp
	to      map[string]string
	remove  *regexp.Regexp // statements of one line to leave out; nil: none
	comment string
	wanted  func(tok token.Token, literal string) bool // the parts of a Go file
}

var languages = []language{
	{
		percent: 50,
		files: []string{
			"cart/*.go", "cart/service/*.go", "cart/carthttp/*.go", "cart/redisstore/*.go", "cart/money/*.go", "cart/catalog/*.go",
			"auth/*.go", "auth/limit/*.go", "subscriptions/*.go", "cmd/internal/server/*.go", "deploy/connect/*.go",
		},
		swaps: regexp.MustCompile(`==|!=|<=|>=|&&|\|\||[<>+-]|\b(?:true|false|0|1|2)\b`),
		to: map[string]string{
			"==": "!=", "!=": "==", "<=": "<", ">=": ">", "<": "<=", ">": ">=", "&&": "||", "||": "&&",
			"+": "-", "-": "+", "true": "false", "false": "true", "0": "1", "1": "2", "2": "3",
		},
		comment: "//", wanted: isCode,
	},
	{
		percent: 30,
		files:   []string{"cart/redisstore/lua/*.lua", "auth/limit/*.lua"},
		swaps:   regexp.MustCompile(`==|~=|<=|>=|[<>]| [+-] |\b(?:and|or|true|false|0|1|2)\b`),
		to: map[string]string{
			"==": "~=", "~=": "==", "<=": "<", ">=": ">", "<": "<=", ">": ">=", "and": "or", "or": "and",
			" + ": " - ", " - ": " + ", "true": "false", "false": "true", "0": "1", "1": "2", "2": "3",
		},
		remove: regexp.MustCompile(`^redis\.p?call\(.*\)$`), comment: "--",
	},
	{
		percent: 20,
		files:   []string{"deploy/migrations/*.sql", "subscriptions/*.go", "cart/catalog/*.go", "auth/*.go"},
		swaps:   regexp.MustCompile(`<>|<=|>=| [=<>] |\b(?:AND|OR|ASC|DESC|EXISTS|IS NULL|IS NOT NULL|NOT NULL|NEW|OLD|true|false)\b`),
		to: map[string]string{
			"<>": "=", "<=": "<", ">=": ">", " = ": " <> ", " < ": " <= ", " > ": " >= ", "AND": "OR", "OR": "AND", "ASC": "DESC",
			"DESC": "ASC", "EXISTS": "NOT EXISTS", "IS NULL": "IS NOT NULL", "IS NOT NULL": "IS NULL", "NOT NULL": "",
			"NEW": "OLD", "OLD": "NEW", "true": "false", "false": "true",
		},
		comment: "--", wanted: isQuery,
	},
}

// choose returns count mutants that compile. The same files give the same mutants.
func choose(count int) (chosen []mutant, err error) {
	for _, l := range languages {
		var sites []mutant
		for _, pattern := range l.files {
			files, err := filepath.Glob(pattern)
			if err != nil {
				return nil, err
			}
			for _, file := range files {
				if !strings.HasSuffix(file, "_test.go") {
					text, err := os.ReadFile(file)
					if err != nil {
						return nil, err
					}
					sites = append(sites, l.sites(file, string(text))...)
				}
			}
		}
		hash := func(m mutant) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(m.String()))) }
		slices.SortFunc(sites, func(a, b mutant) int { return strings.Compare(hash(a), hash(b)) })
		for n := count * l.percent / 100; n > 0 && len(sites) > 0; sites = sites[1:] {
			if sites[0].compiles() {
				chosen, n = append(chosen, sites[0]), n-1
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
func (l language) sites(file, text string) (sites []mutant) {
	seen := map[string]int{} // how often a line was there
	code := text
	if strings.HasSuffix(file, ".go") {
		code = parts(text, l.wanted)
	}
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		m := mutant{file: file, line: trimmed, nth: seen[trimmed]}
		seen[trimmed]++
		if l.remove != nil && l.remove.MatchString(trimmed) {
			m.from, m.to = trimmed, l.comment
			sites = append(sites, m)
		}
		before, _, _ := strings.Cut(code[:len(line)], l.comment)
		code = code[len(line):]
		for _, found := range l.swaps.FindAllStringIndex(before, -1) {
			m.from = before[found[0]:found[1]]
			m.to, m.at = l.to[m.from], strings.Count(line[:found[0]], m.from)
			if !strings.Contains(trimmed, "\t") { // tabs separate the columns of the list
				sites = append(sites, m)
			}
		}
	}
	return sites
}

func isCode(tok token.Token, _ string) bool {
	return tok != token.COMMENT && tok != token.STRING && tok != token.CHAR
}

var query = regexp.MustCompile("^`[^`]*\\b(SELECT|WHERE|FROM)\\b")

func isQuery(tok token.Token, literal string) bool {
	return tok == token.STRING && query.MatchString(literal)
}

// parts returns a Go file with spaces in place of all tokens but the wanted ones.
func parts(text string, wanted func(tok token.Token, literal string) bool) string {
	kept := []byte(text)
	for i, b := range kept {
		if b != '\n' {
			kept[i] = ' '
		}
	}
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, scanner.ScanComments)
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return string(kept)
		}
		if start := file.Offset(pos); wanted(tok, literal) {
			end := min(start+max(len(literal), len(tok.String())), len(text))
			copy(kept[start:end], text[start:end])
		}
	}
}
