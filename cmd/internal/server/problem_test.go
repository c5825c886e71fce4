package server

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/docs"
)

func openAPIDocument(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(docs.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestProblems_HaveTheCodesOfTheOpenAPIDocument(t *testing.T) {
	t.Parallel()
	schema := openAPIDocument(t).Components.Schemas["ErrorCode"].Value
	var documented []problem.Code
	for _, code := range schema.Enum {
		documented = append(documented, problem.Code(code.(string)))
	}
	slices.Sort(documented)
	if known := slices.Sorted(maps.Keys(statuses)); !slices.Equal(known, documented) {
		t.Errorf("codes of the server: %q,\nof the document: %q", known, documented)
	}
	described, status := map[problem.Code]int{}, 0
	for line := range strings.Lines(schema.Description) {
		if entry, codes, found := strings.Cut(line, ": "); found {
			status, _ = strconv.Atoi(strings.TrimPrefix(entry, "- "))
			line = codes
		}
		for _, code := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(line, -1) {
			described[problem.Code(code[1])] = status
		}
	}
	if diff := cmp.Diff(statuses, described); diff != "" {
		t.Errorf("(-server +description of ErrorCode):\n%s", diff)
	}
}

func TestProblems_AreExplainedInTheGuide(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/cart.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "\n## Error codes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	explained := map[problem.Code]int{}
	for _, row := range regexp.MustCompile("(?m)^- (\\d{3}) `(\\w+)`: \\w").FindAllStringSubmatch(section, -1) {
		explained[problem.Code(row[2])], _ = strconv.Atoi(row[1])
	}
	if diff := cmp.Diff(statuses, explained); diff != "" {
		t.Errorf("(-server +docs/cart.md):\n%s", diff)
	}
	for _, code := range openAPIDocument(t).Components.Schemas["IssueCode"].Value.Enum {
		if !strings.Contains(section, "`"+code.(string)+"`") {
			t.Errorf("docs/cart.md does not explain %s", code)
		}
	}
}

func TestProblems_HaveAStatusForEachConstantAndNoOther(t *testing.T) {
	t.Parallel()
	const file = "../../../auth/problem/codes.go"
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[problem.Code]bool{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for _, value := range spec.Values {
			text, err := strconv.Unquote(value.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			declared[problem.Code(text)] = true
			if statuses[problem.Code(text)] == 0 {
				t.Errorf("%s has no status", spec.Names[0].Name)
			}
		}
		return true
	})
	if len(declared) < 20 {
		t.Fatalf("found %d codes in %s", len(declared), file)
	}
	for code := range statuses {
		if !declared[code] {
			t.Errorf("%s has a status but no constant", code)
		}
	}
}

// codesOf collects the values that a response's schema allows for "code".
func codesOf(schema *openapi3.Schema, into map[problem.Code]bool) {
	for _, parts := range [][]*openapi3.SchemaRef{schema.AllOf, schema.OneOf, schema.AnyOf} {
		for _, part := range parts {
			codesOf(part.Value, into)
		}
	}
	code := schema.Properties["code"]
	if code == nil || code.Ref != "" { // a reference allows all codes
		return
	}
	if only, ok := code.Value.Const.(string); ok {
		into[problem.Code(only)] = true
	}
	for _, one := range code.Value.Enum {
		into[problem.Code(one.(string))] = true
	}
}

func TestProblems_AreDocumentedUnderTheirStatus(t *testing.T) {
	t.Parallel()
	doc := openAPIDocument(t)
	seen := map[problem.Code]bool{}
	check := func(where string, status int, response *openapi3.Response) {
		codes := map[problem.Code]bool{}
		codesOf(response.Content.Get("application/json").Schema.Value, codes)
		if len(codes) == 0 {
			t.Errorf("%s: %d names no code", where, status)
		}
		for code := range codes {
			seen[code] = true
			if statuses[code] != status {
				t.Errorf("%s: %s is documented as %d but sent as %d", where, code, status, statuses[code])
			}
		}
	}
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			for status, response := range operation.Responses.Map() {
				if n, _ := strconv.Atoi(status); n >= 400 {
					check(method+" "+path, n, response.Value)
				}
			}
		}
	}
	check("any path", http.StatusNotFound, doc.Components.Responses["NotFound"].Value)
	check("any method", http.StatusMethodNotAllowed, doc.Components.Responses["MethodNotAllowed"].Value)
	for code := range statuses {
		if !seen[code] {
			t.Errorf("no documented response has %s", code)
		}
	}
}

func TestProblems_OfTheServerAreInEveryLanguage(t *testing.T) {
	t.Parallel()
	for _, p := range []*problem.Error{errNotFound, errMethodNotAllowed, errRateLimited, errUnavailable, errInternal} {
		if statuses[p.Code] == 0 {
			t.Errorf("%s has no status", p.Code)
		}
		if en, ar := p.Message(locale.En), p.Message(locale.Ar); en == "" || ar == "" || en == ar {
			t.Errorf("%s: %q and %q", p.Code, en, ar)
		}
	}
}

func TestProblemOf_HidesUnexpectedErrors(t *testing.T) {
	t.Parallel()
	unlisted := problem.New("surprise", "", locale.Text{locale.En: "dial tcp 10.0.0.1"})
	for name, tt := range map[string]struct {
		err  error
		want problem.Code
	}{
		"a problem":          {errNotFound, "not_found"},
		"a wrapped problem":  {fmt.Errorf("call: %w", errRateLimited), "rate_limited"},
		"a joined problem":   {errors.Join(errors.New("x"), errUnavailable), "unavailable"},
		"an unlisted code":   {unlisted, "internal"},
		"anything":           {errors.New("dial tcp 10.0.0.1"), "internal"},
		"out of time":        {fmt.Errorf("call: %w", context.DeadlineExceeded), "unavailable"},
		"the caller is gone": {fmt.Errorf("call: %w", context.Canceled), "unavailable"},
	} {
		got := problemOf(tt.err)
		if got.Code != tt.want || strings.Contains(got.Message(locale.En), "10.0.0.1") {
			t.Errorf("%s: %s %q, want %s", name, got.Code, got.Message(locale.En), tt.want)
		}
	}
}
