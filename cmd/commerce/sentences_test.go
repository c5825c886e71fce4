package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/locale"
	"commerce/deploy/assert"
)

// literals calls each for the literals of a type of locale in the service, with their places.
func literals(t *testing.T, name string, each func(place string, lit *ast.CompositeLit)) {
	t.Helper()
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		parsed := assert.Must(parser.ParseFile(fset, filepath.Join(root, file), nil, 0))(t)
		for _, lit := range literalsOf(parsed, name) {
			each(file+":"+strconv.Itoa(fset.Position(lit.Pos()).Line), lit)
		}
	}
}

// A language that is added to locale.All makes this test list every text without it.
func TestTexts_ExistInEveryLanguage(t *testing.T) {
	t.Parallel()
	texts := 0
	literals(t, "Text", func(place string, text *ast.CompositeLit) {
		texts++
		wantEveryLanguage(t, place, languagesOf(text))
		wantOwnQuotes(t, place, languagesOf(text))
	})
	assert.That(t, texts >= 100, "found %d texts: this test does not read all", texts)
}

// wantEveryLanguage checks that a text is there in every language, with the same verbs.
func wantEveryLanguage(t *testing.T, place string, text map[string]string) {
	t.Helper()
	isArabic := strings.ContainsFunc(text["Ar"], func(r rune) bool { return unicode.Is(unicode.Arabic, r) })
	assert.That(t, isArabic || strings.HasPrefix(place, "deploy/sample/"), "%s: not Arabic: %q", place, text["Ar"])
	for _, l := range locale.All() {
		name := strings.ToUpper(string(l[:1])) + string(l[1:]) // En for "en"
		if text[name] == "" {
			t.Errorf("%s: no text in %s", place, l)
		} else if diff := cmp.Diff(verbsOf(text["En"]), verbsOf(text[name])); diff != "" {
			t.Errorf("%s: verbs of en and %s differ:\n%s", place, l, diff)
		}
	}
}

// wantOwnQuotes checks that a text has the quotation marks of its language, in pairs.
func wantOwnQuotes(t *testing.T, place string, text map[string]string) {
	t.Helper()
	for language, marks := range map[string]struct{ opening, closing, foreign string }{
		"En": {"“", "”", "\"«»„"},
		"Ar": {"«", "»", "\"'“”„‘’"},
	} {
		s := text[language]
		paired := strings.Count(s, marks.opening) == strings.Count(s, marks.closing)
		assert.That(t, paired && !strings.ContainsAny(s, marks.foreign), "%s: quotation marks: %q", place, s)
	}
	ar := text["Ar"]
	assert.That(t, !strings.Contains(ar, "Bearer") || strings.Contains(ar, "«\u2066"),
		"%s: a header without isolates, which a browser shows scrambled: %q", place, ar)
}

// Arabic has the categories zero, one, two, few, many, other. English sentences avoid plurals.
func TestNouns_HaveAFormForEveryArabicNumber(t *testing.T) {
	t.Parallel()
	nouns := 0
	literals(t, "Noun", func(place string, noun *ast.CompositeLit) {
		nouns++
		forms := formsOf(noun)
		for _, category := range []string{"Zero", "One", "Two", "Few", "Many", "Other"} {
			assert.That(t, forms["Ar"][category] != "", "%s: no form for %s in Arabic", place, category)
		}
	})
	assert.That(t, nouns >= 3, "found %d nouns: this test does not read all", nouns)
}

// formsOf maps the languages of a literal of locale.Noun to its forms by category.
func formsOf(noun *ast.CompositeLit) map[string]map[string]string {
	forms := map[string]map[string]string{}
	for _, e := range noun.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			if inner, ok := pair.Value.(*ast.CompositeLit); ok {
				forms[pair.Key.(*ast.SelectorExpr).Sel.Name] = languagesOf(inner)
			}
		}
	}
	return forms
}

// literalsOf finds the literals of a type of locale, also as elements of a map or list of them.
func literalsOf(file *ast.File, name string) []*ast.CompositeLit {
	var found []*ast.CompositeLit
	ast.Inspect(file, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		if isOf(lit.Type, name) {
			found = append(found, lit)
		}
		var element ast.Expr
		switch typ := lit.Type.(type) {
		case *ast.MapType:
			element = typ.Value
		case *ast.ArrayType:
			element = typ.Elt
		}
		if isOf(element, name) {
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

// isOf reports whether typ is the type of locale with this name.
func isOf(typ ast.Expr, name string) bool {
	selector, ok := typ.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := selector.X.(*ast.Ident)
	return ok && pkg.Name == "locale" && selector.Sel.Name == name
}

// languagesOf maps the names of constants, such as locale's, to the texts of a literal.
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
// a word of each language, since what it holds is decided elsewhere.
func literalText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, _ := strconv.Unquote(e.Value)
		return s
	case *ast.BinaryExpr:
		return literalText(e.X) + literalText(e.Y)
	}
	return "expression, عبارة"
}

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
	parsed := assert.Must(parser.ParseFile(token.NewFileSet(), "", `package p
		var a = locale.Text{locale.En: "one %d", locale.Ar: "x %d"}
		var b = map[int]locale.Text{1: {locale.En: "two"}}
		var c = []locale.Text{{locale.En: "three" + "four"}}
		func f() { g(locale.Text{locale.En: "five"}, other.Text{locale.En: "no"}) }`, 0))(t)
	got := map[string]bool{}
	for _, text := range literalsOf(parsed, "Text") {
		got[languagesOf(text)["En"]] = true
	}
	assert.Equal(t, got, map[string]bool{"one %d": true, "two": true, "threefour": true, "five": true}, "found")
}
