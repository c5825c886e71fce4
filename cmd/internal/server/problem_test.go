package server_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
)

func TestProblems_HaveTheCodesOfTheOpenAPIDocument(t *testing.T) {
	t.Parallel()
	schema := assert.Must(document())(t).Components.Schemas["ErrorCode"].Value
	codes := map[problem.Code]bool{}
	listCodes(schema, codes)
	documented := slices.Sorted(maps.Keys(codes))
	known := slices.Sorted(maps.Keys(server.Statuses))
	assert.That(t, slices.Equal(known, documented), "codes of the server: %q,\nof the document: %q", known, documented)
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
	assert.Equal(t, described, server.Statuses, "description of ErrorCode, compared with the server")
}

func TestProblems_AreExplainedInTheGuide(t *testing.T) {
	t.Parallel()
	guide := assert.Must(os.ReadFile("../../../docs/cart.md"))(t)
	_, section, _ := strings.Cut(string(guide), "\n## Error codes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	explained := map[problem.Code]int{}
	for _, row := range regexp.MustCompile("(?m)^- (\\d{3}) `(\\w+)`: \\w").FindAllStringSubmatch(section, -1) {
		explained[problem.Code(row[2])], _ = strconv.Atoi(row[1])
	}
	assert.Equal(t, explained, server.Statuses, "docs/cart.md, compared with the server")
	issues := map[problem.Code]bool{}
	listCodes(assert.Must(document())(t).Components.Schemas["IssueCode"].Value, issues)
	assert.That(t, len(issues) >= 10, "the document has only %d codes of issues", len(issues))
	for code := range issues {
		assert.That(t, strings.Contains(section, "`"+string(code)+"`"), "docs/cart.md does not explain %s", code)
	}
}

func TestProblems_HaveAStatusForEachConstantAndNoOther(t *testing.T) {
	t.Parallel()
	source := assert.Must(os.ReadFile("../../../auth/problem/codes.go"))(t)
	var declared []problem.Code
	for _, code := range regexp.MustCompile(`(?m)^\t\w+ .*= "(\w+)"`).FindAllSubmatch(source, -1) {
		declared = append(declared, problem.Code(code[1]))
	}
	slices.Sort(declared)
	assert.Equal(t, declared, slices.Sorted(maps.Keys(server.Statuses)), "constants, compared with the codes that have a status")
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
	listCodes(code.Value, into)
}

// listCodes adds the codes that a schema lists; later releases may have others.
func listCodes(code *openapi3.Schema, into map[problem.Code]bool) {
	codes, _ := code.Extensions["x-extensible-enum"].([]any)
	for _, one := range codes {
		into[problem.Code(one.(string))] = true
	}
}

func TestProblems_AreDocumentedUnderTheirStatus(t *testing.T) {
	t.Parallel()
	doc := assert.Must(document())(t)
	seen := map[problem.Code]bool{}
	check := func(where string, status int, response *openapi3.Response) {
		codes := map[problem.Code]bool{}
		codesOf(response.Content.Get("application/json").Schema.Value, codes)
		assert.That(t, len(codes) != 0, "%s: %d names no code", where, status)
		for code := range codes {
			seen[code] = true
			assert.That(t, server.Statuses[code] == status, "%s: %s is documented as %d but sent as %d", where, code, status, server.Statuses[code])
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
	for code := range server.Statuses {
		assert.That(t, seen[code], "no documented response has %s", code)
	}
}

func TestProblemOf_HidesUnexpectedErrors(t *testing.T) {
	t.Parallel()
	unlisted := problem.New("surprise", "", locale.Text{locale.En: "dial tcp 10.0.0.1"})
	for name, tt := range map[string]struct {
		err  error
		want problem.Code
	}{
		"a problem":          {server.ErrNotFound, "not_found"},
		"a wrapped problem":  {fmt.Errorf("call: %w", server.ErrRateLimited), "rate_limited"},
		"a joined problem":   {errors.Join(errors.New("x"), server.ErrUnavailable), "unavailable"},
		"an unlisted code":   {unlisted, "internal"},
		"anything":           {errors.New("dial tcp 10.0.0.1"), "internal"},
		"out of time":        {fmt.Errorf("call: %w", context.DeadlineExceeded), "unavailable"},
		"the caller is gone": {fmt.Errorf("call: %w", context.Canceled), "unavailable"},
	} {
		got := server.ProblemOf(tt.err)
		assert.That(t, got.Code == tt.want && !strings.Contains(got.Message(locale.En), "10.0.0.1"), "%s: %s %q, want %s", name, got.Code, got.Message(locale.En), tt.want)
	}
}
