package clients_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// operation is one of the document, with an example of each argument as JSON.
type operation struct {
	id, method, path string
	inPath           []*openapi3.Parameter
	needsHeader      []*openapi3.Parameter
	params           bool   // it has parameters that are not in the path
	body             string // "" for none
}

func operations(t *testing.T) (all []operation) {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile(document)
	noError(t, err)
	for _, path := range doc.Paths.InMatchingOrder() {
		item := doc.Paths.Value(path)
		for _, method := range slices.Sorted(maps.Keys(item.Operations())) {
			op := item.GetOperation(method)
			one := operation{id: op.OperationID, method: method, path: path}
			for _, ref := range slices.Concat(item.Parameters, op.Parameters) {
				switch parameter := ref.Value; {
				case parameter.In == "path":
					one.inPath = append(one.inPath, parameter)
				case parameter.In == "header" && parameter.Required:
					one.needsHeader = append(one.needsHeader, parameter)
				}
				one.params = one.params || ref.Value.In != "path"
			}
			if op.RequestBody != nil {
				examples := op.RequestBody.Value.Content.Get("application/json").Examples
				first := slices.Min(slices.Collect(maps.Keys(examples)))
				one.body = asJSON(t, examples[first].Value.Value)
			}
			all = append(all, one)
		}
	}
	return all
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	noError(t, err)
	return string(text)
}

// required returns an object in TypeScript with examples of the required parameters, and more members.
func (op operation) required(t *testing.T, more ...string) string {
	t.Helper()
	for in, parameters := range map[string][]*openapi3.Parameter{"path": op.inPath, "header": op.needsHeader} {
		var members []string
		for _, p := range parameters {
			members = append(members, fmt.Sprintf("%q: %s", p.Name, asJSON(t, p.Example)))
		}
		if members != nil {
			more = append(more, in+": { "+strings.Join(members, ", ")+" }")
		}
	}
	return "{ " + strings.Join(more, ", ") + " }"
}

// wrongBody returns an object in TypeScript with a member of a wrong type.
func wrongBody(t *testing.T, right string) string {
	t.Helper()
	var members map[string]any
	noError(t, json.Unmarshal([]byte(right), &members))
	return fmt.Sprintf("{ %q: Symbol() }", slices.Min(slices.Collect(maps.Keys(members))))
}

// Each operation is called right, and with a query, a body or a path that is wrong. The right calls compile, and of the
// others none.
func TestClient_OfEachGeneratorCompilesRightCallsOfEveryOperationAndNoWrongOnes(t *testing.T) {
	t.Parallel()
	const refused = "// @ts-expect-error\n"
	fetch := strings.Builder{}
	fetch.WriteString("import createClient from \"openapi-fetch\";\nimport type { paths } from \"./schema\";\nconst client = createClient<paths>();\n")
	orval := strings.Builder{}
	orval.WriteString("import * as client from \"./client\";\n")
	for _, op := range operations(t) {
		call := func(body string, more ...string) string {
			return fmt.Sprintf("await client.%s(%q, { params: %s%s });\n", op.method, op.path, op.required(t, more...), body)
		}
		body := ""
		if op.body != "" {
			body = ", body: " + op.body
			fetch.WriteString(refused + call(", body: "+wrongBody(t, op.body)))
		}
		fetch.WriteString(call(body) + refused + call(body, `query: { "no such": "1" }`))

		var arguments []string
		for _, p := range op.inPath {
			arguments = append(arguments, asJSON(t, p.Example))
		}
		if op.body != "" {
			arguments = append(arguments, op.body)
		}
		right := fmt.Sprintf("await client.%s(%s);\n", op.id, strings.Join(arguments, ", "))
		if len(arguments) == 0 {
			arguments = []string{""}
		}
		arguments[len(arguments)-1] = "true"
		orval.WriteString(right + refused + fmt.Sprintf("await client.%s(%s);\n", op.id, strings.Join(arguments, ", ")))
	}
	generate, dir := npm(t, "openapi-typescript")
	run(t, dir, generate, absolute(t, document), "--output", "schema.d.ts")
	noError(t, os.WriteFile(filepath.Join(dir, "fetch.ts"), []byte(fetch.String()), 0o666))
	generate, _ = npm(t, "orval")
	run(t, dir, generate, "--input", absolute(t, document), "--output", "client.ts", "--client", "fetch")
	noError(t, os.WriteFile(filepath.Join(dir, "orval.ts"), []byte(orval.String()), 0o666))
	copied(t, "types.ts", filepath.Join(dir, "types.ts"))
	check(t, dir, "fetch.ts", "orval.ts", "types.ts")
}

// goCalls is a function in Go with the same calls of the client that oapi-codegen generates: each wrong one ends in a comment.
func goCalls(t *testing.T) string {
	t.Helper()
	var calls strings.Builder
	for _, op := range operations(t) {
		name := strings.ToUpper(op.id[:1]) + op.id[1:]
		arguments := []string{"nil"}
		for _, p := range op.inPath {
			arguments = append(arguments, asJSON(t, p.Example))
		}
		if op.params {
			arguments = append(arguments, "nil")
		}
		if op.body != "" {
			arguments = append(arguments, name+"JSONRequestBody{}")
		}
		wrong := slices.Clone(arguments)
		wrong[len(wrong)-1] = "true"
		for comment, arguments := range map[string][]string{"": arguments, " // cannot use": wrong} {
			fmt.Fprintf(&calls, "\t_, _ = c.%sWithResponse(%s)%s\n", name, strings.Join(arguments, ", "), comment)
		}
	}
	return calls.String()
}
