package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/locale"
)

// A language that is added to locale.All makes this test list every text without it.
func TestTexts_ExistInEveryLanguage(t *testing.T) {
	t.Parallel()
	texts := 0
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, filepath.Join(root, file), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range textsOf(parsed) {
			texts++
			place := file + ":" + strconv.Itoa(fset.Position(text.Pos()).Line)
			wantEveryLanguage(t, place, languagesOf(text))
		}
	}
	if texts < 100 {
		t.Errorf("found %d texts: this test does not read all", texts)
	}
}

// wantEveryLanguage checks that a text is there in every language, with the same verbs.
func wantEveryLanguage(t *testing.T, place string, text map[string]string) {
	t.Helper()
	for _, l := range locale.All() {
		name := strings.ToUpper(string(l[:1])) + string(l[1:]) // En for "en"
		if text[name] == "" {
			t.Errorf("%s: no text in %s", place, l)
		} else if diff := cmp.Diff(verbsOf(text["En"]), verbsOf(text[name])); diff != "" {
			t.Errorf("%s: verbs of en and %s differ:\n%s", place, l, diff)
		}
	}
}

// textsOf finds the literals of locale.Text, also as elements of a map or list of them.
func textsOf(file *ast.File) []*ast.CompositeLit {
	var found []*ast.CompositeLit
	ast.Inspect(file, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		if isText(lit.Type) {
			found = append(found, lit)
		}
		var element ast.Expr
		switch typ := lit.Type.(type) {
		case *ast.MapType:
			element = typ.Value
		case *ast.ArrayType:
			element = typ.Elt
		}
		if isText(element) {
			for _, e := range lit.Elts {
				if pair, ok := e.(*ast.KeyValueExpr); ok {
					e = pair.Value
				}
				if inner, ok := e.(*ast.CompositeLit); ok && inner.Type == nil {
					found = append(found, inner)
				}
			}
		}
		return true
	})
	return found
}

func isText(typ ast.Expr) bool {
	selector, ok := typ.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := selector.X.(*ast.Ident)
	return ok && pkg.Name == "locale" && selector.Sel.Name == "Text"
}

// languagesOf maps the names of locale's constants to the texts of a literal.
func languagesOf(text *ast.CompositeLit) map[string]string {
	languages := map[string]string{}
	for _, e := range text.Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		if key, ok := pair.Key.(*ast.SelectorExpr); ok {
			languages[key.Sel.Name] = literalText(pair.Value)
		}
	}
	return languages
}

// literalText is the text of a literal or of a sum of them; of any other expression it is
// a word, since what it holds is decided elsewhere.
func literalText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, _ := strconv.Unquote(e.Value)
		return s
	case *ast.BinaryExpr:
		return literalText(e.X) + literalText(e.Y)
	}
	return "expression"
}

// verbsOf counts the verbs of a format, whatever their order.
func verbsOf(format string) map[byte]int {
	verbs := map[byte]int{}
	for _, part := range strings.Split(strings.ReplaceAll(format, "%%", ""), "%")[1:] {
		if verb := strings.TrimLeft(part, "[]0123456789"); verb != "" {
			verbs[verb[0]]++
		}
	}
	return verbs
}

func TestTexts_AreFoundWhereverTheyAre(t *testing.T) {
	t.Parallel()
	parsed, err := parser.ParseFile(token.NewFileSet(), "", `package p
		var a = locale.Text{locale.En: "one %d", locale.Ar: "x %d"}
		var b = map[int]locale.Text{1: {locale.En: "two"}}
		var c = []locale.Text{{locale.En: "three" + "four"}}
		func f() { g(locale.Text{locale.En: "five"}, other.Text{locale.En: "no"}) }`, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, text := range textsOf(parsed) {
		got[languagesOf(text)["En"]] = true
	}
	want := map[string]bool{"one %d": true, "two": true, "threefour": true, "five": true}
	if !maps.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}
