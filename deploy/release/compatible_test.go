package main

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/oasdiff/oasdiff/checker"
	"github.com/oasdiff/oasdiff/diff"
	"github.com/oasdiff/oasdiff/load"
)

// sunsetDays is how long a removal is announced before, at least.
const sunsetDays = 180

func TestOpenAPI_BreaksNoClientOfTheLastRelease(t *testing.T) {
	t.Parallel()
	current, err := os.ReadFile("../../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range breaking(t, lastRelease(t), current) {
		t.Error(change)
	}
}

func TestBreaking_DetectsWhatAClientWouldNotice(t *testing.T) {
	t.Parallel()
	old := lastRelease(t)
	for name, edit := range map[string]struct{ old, new string }{
		"a call is gone":            {"  /cart/count:\n", "  /cart/number:\n"},
		"a parameter is gone":       {"name: customerPhone\n", "name: phone\n"},
		"pages are smaller":         {"maximum: 100,", "maximum: 50,"},
		"a member of data is gone":  {"\n        subtotal:\n", "\n        sub_total:\n"},
		"a member may be missing":   {"required: [cart_token, items, count, subtotal,", "required: [cart_token, items, count,"},
		"a member has another type": {"cart_token: {$ref: \"#/components/schemas/CartTokenOrNull\"}", "cart_token: {type: integer}"},
	} {
		if !bytes.Contains(old, []byte(edit.old)) {
			t.Errorf("%s: the document has no %q to edit", name, edit.old)
			continue
		}
		edited := bytes.Replace(old, []byte(edit.old), []byte(edit.new), 1)
		if len(breaking(t, old, edited)) == 0 {
			t.Errorf("%s: passed", name)
		}
	}
	if found := breaking(t, old, old); len(found) > 0 {
		t.Errorf("the same document: %q", found)
	}
}

// breaking returns the changes of a document that break clients of an older one. Texts are
// not compared: a new description below a oneOf would count as another alternative.
func breaking(t *testing.T, old, current []byte) []string {
	t.Helper()
	from, to := document(t, "old.yaml", old), document(t, "new.yaml", current)
	config := diff.NewConfig(diff.WithExcludeElements([]string{diff.ExcludeDescriptionOption, diff.ExcludeExamplesOption}))
	changes, sources, err := diff.GetWithOperationsSourcesMap(config, from, to)
	if err != nil {
		t.Fatal(err)
	}
	checks := checker.NewConfig(checker.GetAllChecks(), checker.WithDeprecation(sunsetDays, sunsetDays))
	var found []string
	for _, c := range checker.CheckBackwardCompatibility(checks, changes, sources) {
		found = append(found, c.GetOperation()+" "+c.GetPath()+": "+c.GetUncolorizedText(checker.NewDefaultLocalizer()))
	}
	return found
}

func document(t *testing.T, name string, text []byte) *load.SpecInfo {
	t.Helper()
	d, err := load.NewSpecInfoFromData(openapi3.NewLoader(), text, name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}

// lastRelease returns the OpenAPI document of the newest release.
func lastRelease(t *testing.T) []byte {
	t.Helper()
	kept, err := filepath.Glob("../../docs/releases/openapi-*.yaml")
	if err != nil || len(kept) == 0 {
		t.Fatalf("no documents of releases: %v", err)
	}
	text, err := os.ReadFile(slices.MaxFunc(kept, func(a, b string) int {
		return slices.Compare(numbers(t, a), numbers(t, b))
	}))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

var number = regexp.MustCompile(`\d+`)

// numbers returns the numbers of a version in a text.
func numbers(t *testing.T, text string) (all []int) {
	t.Helper()
	for _, digits := range number.FindAllString(filepath.Base(text), -1) {
		n, err := strconv.Atoi(digits)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

// A release is ready when the changelog, the OpenAPI document and the kept copy of it agree.
func TestChangelog_AndOpenAPINameTheSameRelease(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/changelog.md")
	if err != nil {
		t.Fatal(err)
	}
	headings := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)$`).FindAllStringSubmatch(string(text), -1)
	if len(headings) == 0 {
		t.Fatal("the changelog has no release")
	}
	if !slices.IsSortedFunc(headings, func(a, b []string) int {
		return cmp.Or(slices.Compare(numbers(t, b[1]), numbers(t, a[1])), strings.Compare(b[2], a[2]))
	}) {
		t.Error("the changelog does not begin with the newest release")
	}
	newest := headings[0][1]
	current, err := os.ReadFile("../../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"openapi.yaml": current, "its kept copy": lastRelease(t)} {
		if version := document(t, name, text).Spec.Info.Version; version != newest {
			t.Errorf("%s has version %s, the changelog %s", name, version, newest)
		}
	}
}
