package main

import (
	"go/scanner"
	"go/token"
	"os"
	"regexp"
	"strings"
)

// kind is a language with the mistakes that one makes in it.
type kind struct {
	percent  int
	files    []string // patterns
	swaps    *regexp.Regexp
	mistakes map[string]string
	remove   *regexp.Regexp // lines to leave out, nil for none
	comment  string         // how a comment begins
	tokens   func(text string) []span
}

// span is a part of a file's text that may be changed.
type span struct{ start, end int }

const wholeLine = "(line)"

var kinds = []kind{
	{
		percent: 50,
		files: []string{
			"cart/*.go", "cart/service/*.go", "cart/carthttp/*.go", "cart/redisstore/*.go", "cart/money/*.go", "cart/catalog/*.go",
			"auth/*.go", "auth/quota/*.go", "subscriptions/*.go", "cmd/internal/server/*.go", "deploy/connect/*.go",
		},
		swaps: regexp.MustCompile(`==|!=|<=|>=|&&|\|\||[<>+-]|\b(?:true|false|0|1|2)\b`),
		mistakes: map[string]string{
			"==": "!=", "!=": "==", "<=": "<", ">=": ">", "<": "<=", ">": ">=", "&&": "||", "||": "&&",
			"+": "-", "-": "+", "true": "false", "false": "true", "0": "1", "1": "2", "2": "3",
		},
		comment: "//", tokens: goTokens,
	},
	{
		percent: 30,
		files:   []string{"cart/redisstore/lua/*.lua", "auth/quota/*.lua"},
		swaps:   regexp.MustCompile(`==|~=|<=|>=|[<>]| [+-] |\b(?:and|or|true|false|0|1|2)\b`),
		mistakes: map[string]string{
			"==": "~=", "~=": "==", "<=": "<", ">=": ">", "<": "<=", ">": ">=", "and": "or", "or": "and",
			" + ": " - ", " - ": " + ", "true": "false", "false": "true", "0": "1", "1": "2", "2": "3",
		},
		remove: regexp.MustCompile(`^redis\.p?call\(.*\)$`), comment: "--", tokens: everything,
	},
	{
		percent: 20,
		files:   []string{"deploy/migrations/*.sql", "subscriptions/*.go", "cart/catalog/*.go", "auth/*.go"},
		swaps:   regexp.MustCompile(`<>|<=|>=| [=<>] |\b(?:AND|OR|ASC|DESC|EXISTS|IS NULL|IS NOT NULL|NOT NULL|INSERT|UPDATE|NEW|OLD|true|false)\b`),
		mistakes: map[string]string{
			"<>": "=", "<=": "<", ">=": ">", " = ": " <> ", " < ": " <= ", " > ": " >= ", "AND": "OR", "OR": "AND", "ASC": "DESC",
			"DESC": "ASC", "EXISTS": "NOT EXISTS", "IS NULL": "IS NOT NULL", "IS NOT NULL": "IS NULL", "NOT NULL": "",
			"NEW": "OLD", "OLD": "NEW", "true": "false", "false": "true",
		},
		comment: "--", tokens: sqlTexts,
	},
}

func everything(text string) []span { return []span{{0, len(text)}} }

// goTokens returns what is neither a comment nor a text.
func goTokens(text string) []span {
	var spans []span
	eachToken(text, func(start int, tok token.Token, literal string) {
		if tok != token.COMMENT && tok != token.STRING && tok != token.CHAR {
			spans = append(spans, span{start, start + max(len(literal), len(tok.String()))})
		}
	})
	return spans
}

// sqlTexts returns the whole of an SQL file, and of a Go file the texts with SQL.
func sqlTexts(text string) []span {
	if !strings.HasPrefix(text, "package ") && !strings.Contains(text, "\npackage ") {
		return everything(text)
	}
	var spans []span
	eachToken(text, func(start int, tok token.Token, literal string) {
		if tok == token.STRING && strings.HasPrefix(literal, "`") && regexp.MustCompile(`\b(SELECT|WHERE|FROM)\b`).MatchString(literal) {
			spans = append(spans, span{start, start + len(literal)})
		}
	})
	return spans
}

func eachToken(text string, each func(start int, tok token.Token, literal string)) {
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, scanner.ScanComments)
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return
		}
		each(file.Offset(pos), tok, literal)
	}
}

// sites returns all mutants of a file.
func sites(name string, k kind) ([]mutant, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	text, seen := string(b), map[string]int{}
	allowed := make([]bool, len(text))
	for _, s := range k.tokens(text) {
		for i := s.start; i < min(s.end, len(text)); i++ {
			allowed[i] = true
		}
	}
	var all []mutant
	start := 0
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		place := mutant{file: name, line: trimmed, nth: seen[trimmed]}
		seen[trimmed]++
		code, _, _ := strings.Cut(line, k.comment)
		if strings.Contains(trimmed, "\t") {
			code = "" // the list's columns are separated by tabs
		}
		if k.remove != nil && k.remove.MatchString(trimmed) {
			m := place
			m.from, m.to = wholeLine, k.comment
			all = append(all, m)
		}
		for _, found := range k.swaps.FindAllStringIndex(code, -1) {
			m := place
			m.from = code[found[0]:found[1]]
			m.at = strings.Count(code[:found[0]], m.from)
			m.to = k.mistakes[m.from]
			if _, known := k.mistakes[m.from]; known && allowed[start+found[0]] && allowed[start+found[1]-1] {
				all = append(all, m)
			}
		}
		start += len(line)
	}
	return all, nil
}
