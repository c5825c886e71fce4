package docs_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"commerce/deploy/assert"
)

// Of equal keys, some parsers take the first and others the last, and generators refuse the file.
func TestFiles_HaveEachKeyOnce(t *testing.T) {
	t.Parallel()
	files := filesNamed(t, "*.yaml", "*.yml", "*.json")
	assert.Require(t, len(files) > 50, "found only %d files: this test does not see all", len(files))
	for _, file := range files {
		assert.Succeeds(t, eachKeyOnce(file, read(t, file)), "%s", file)
	}
	for text, want := range map[string]bool{
		"a: 1": true, "a: &x {b: 1}\nc: *x": true, "a: [{b: 1}, {b: 1}]": true, "a: 1\n---\na: 1": true, "a: \"<<: x\"": true,
		"a: 1\na: 2": false, "a: {b: 1, b: 2}": false, "a: [{b: 1, c: {d: 1, \"d\": 2}}]": false, "a: 1\n\"a\": 2": false,
		"a: &x {b: 1}\nc:\n  <<: *x": false, "a: &x {b: 1}\nc: {<<: *x}": false, "- a:\n  - b: 1\n    b: 2": false,
	} {
		assert.Equal(t, eachKeyOnce(".yaml", []byte(text)) == nil, want, "%q is accepted", text)
	}
	for text, want := range map[string]bool{`{"a":{"b":1}}`: true, `[{"a":1,"\u0061":2}]`: false} {
		assert.Equal(t, eachKeyOnce(".json", []byte(text)) == nil, want, "%s is accepted", text)
	}
}

// eachKeyOnce refuses equal keys of an object, and merge keys, which YAML 1.2 takes for members. Compose
// documents that it has them.
func eachKeyOnce(file string, text []byte) error {
	if filepath.Ext(file) == ".json" {
		if !jsontext.Value(text).IsValid() {
			return errors.New("no JSON, or a key twice")
		}
		return nil
	}
	parsed, err := parser.ParseBytes(text, 0)
	if err != nil {
		return err
	}
	merges := merging(0)
	for _, doc := range parsed.Docs {
		if doc.Body != nil {
			ast.Walk(&merges, doc.Body)
		}
	}
	if merges > 0 && filepath.Base(file) != "compose.yaml" {
		return errors.New("a merge key (<<)")
	}
	return nil
}

// merging counts merge keys.
type merging int

func (m *merging) Visit(n ast.Node) ast.Visitor {
	if n.Type() == ast.MergeKeyType {
		*m++
	}
	return m
}
