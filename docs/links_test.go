package docs_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"commerce/deploy/assert"
)

// Links of the documentation to files of the repository, and to sections of its pages.
func TestPages_LinkToWhatExists(t *testing.T) {
	t.Parallel()
	all := pages(t)
	link := regexp.MustCompile(`\]\(([^):#]*)(?:#([^)]*))?\)`) // the colon leaves out other sites
	links := 0
	for _, page := range append(all, "llms.txt") {
		for _, match := range link.FindAllStringSubmatch(string(read(t, page)), -1) {
			links++
			target := page
			if match[1] != "" {
				target = path.Join(path.Dir(page), match[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", page, match[1], err)
			} else if match[2] != "" && !slices.Contains(anchorsOf(string(read(t, target))), match[2]) {
				t.Errorf("%s links to %s, which has no section #%s", page, target, match[2])
			}
		}
	}
	assert.That(t, links >= 100, "found %d links: this test does not read all", links)
}

// Both lists of pages are complete: for people, and for programs that read them.
func TestIndexes_ListEveryPage(t *testing.T) {
	t.Parallel()
	all := assert.Must(filepath.Glob("*.md"))(t)
	for _, index := range []string{"README.md", "llms.txt"} {
		list := string(read(t, index))
		for _, page := range append(all, "openapi.yaml") {
			assert.That(t, page == index || strings.Contains(list, "]("+page+")"), "%s does not link to %s", index, page)
		}
	}
}

// llms.txt has the form of llmstxt.org: a title, a summary, and lists of described links.
func TestLLMs_HasItsForm(t *testing.T) {
	t.Parallel()
	text := string(read(t, "llms.txt"))
	assert.That(t, regexp.MustCompile(`^# [^\n]+\n\n(> [^\n]+\n)+\n`).MatchString(text),
		"it does not begin with a title and a summary")
	_, lists, _ := strings.Cut(text, "\n## ")
	entry := regexp.MustCompile(`^- \[[^\]]+\]\([^)]+\): \S`)
	for i, line := range strings.Split(strings.TrimSpace(lists), "\n") {
		assert.That(t, i <= 0 || line == "" || strings.HasPrefix(line, "## ") || entry.MatchString(line),
			"this is no link with a description: %s", line)
	}
}

// Whoever decides reads the README in minutes. Each of its promises has figures: those of its last run, or of all simulations.
func TestReadme_IsShortAndHasTheFiguresOfTheLastRuns(t *testing.T) {
	t.Parallel()
	readme, runs := string(read(t, "../README.md")), string(read(t, "guarantees/torture.md"))
	const simulations = "docs/guarantees.md#simulations"
	_, simulated, _ := strings.Cut(string(read(t, "guarantees.md")), "\n## Simulations\n")
	words := len(strings.Fields(readme))
	assert.That(t, words <= 900, "it has %d words", words)
	proofs := regexp.MustCompile(`(?m)^\| .*\(docs/guarantees.md#(\d+)-[^)]*\).* \| \[(.*)\]\((docs/guarantees/torture.md|`+simulations+`)\) \|$`).FindAllStringSubmatch(readme, -1)
	for _, proof := range proofs {
		run := regexp.MustCompile(`(?m)^\| ` + proof[1] + ` \| .* \| kept, .*$`).FindString(runs)
		figures := regexp.MustCompile(`\d[\d,.]*\b`).FindAllString(proof[2], -1)
		assert.That(t, len(figures) != 0, "promise %s has no figures", proof[1])
		for _, figure := range figures {
			inRun := regexp.MustCompile(`: ` + regexp.QuoteMeta(figure) + `(<br>| )`).MatchString(run)
			assert.That(t, inRun || proof[3] == simulations && strings.Contains(simulated, " "+figure+" "), "promise %s has the figure %s, which is not in its last run: %s", proof[1], figure, run)
		}
	}
	assert.That(t, len(proofs) > 5 && len(proofs) == strings.Count(readme, "docs/guarantees.md#")-strings.Count(readme, simulations), "this test does not read all proofs, but %d", len(proofs))
}

func pages(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "../README.md", "../.github/*.md"} {
		found, err := filepath.Glob(pattern)
		assert.Require(t, err == nil && len(found) != 0, "no page matches %s: %v", pattern, err)
		all = append(all, found...)
	}
	return all
}

// A picture has a light and a dark variant.
func TestPages_ShowPicturesThatExist(t *testing.T) {
	t.Parallel()
	all := pages(t)
	picture := regexp.MustCompile(`(?:src|srcset)="([^":]+)"`)
	for _, page := range all {
		for _, match := range picture.FindAllStringSubmatch(string(read(t, page)), -1) {
			_, err := os.Stat(path.Join(path.Dir(page), match[1]))
			assert.Succeeds(t, err, "%s shows %s", page, match[1])
		}
	}
}

func TestAnchorsOf(t *testing.T) {
	t.Parallel()
	got := anchorsOf("# Which store, whose cart\n## What the ETag covers\n```sh\n# a comment\n```\n### `step` – in multiples\n#5\n")
	want := []string{"which-store-whose-cart", "what-the-etag-covers", "step--in-multiples"}
	assert.That(t, slices.Equal(got, want), "got %q, want %q", got, want)
}

// anchorsOf returns the anchors of a page's headings, as GitHub makes them.
func anchorsOf(page string) (anchors []string) {
	code := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if marks, heading, ok := strings.Cut(line, " "); ok && !code && marks != "" && strings.Trim(marks, "#") == "" {
			anchors = append(anchors, strings.Map(anchorRune, strings.TrimSpace(heading)))
		}
	}
	return anchors
}

func anchorRune(r rune) rune {
	switch {
	case r == ' ':
		return '-'
	case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
		return unicode.ToLower(r)
	}
	return -1
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	return assert.Must(os.ReadFile(filepath.FromSlash(file)))(t)
}
