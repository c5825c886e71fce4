package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"commerce/deploy/ephemeral"
)

// Mermaid, which draws the pictures of the documentation on GitHub, understands them.
func TestPages_HavePicturesThatMermaidDraws(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	mermaid, err := os.ReadFile(filepath.Join(installPackages(t, "mermaid"), "node_modules/@mermaid-js/tiny/dist/mermaid.tiny.js"))
	if err != nil {
		t.Fatal(err)
	}
	p := openPage(t, "about:blank")
	evaluate[any](p, string(mermaid)+"; null")
	draw := func(picture string) string {
		return evaluate[string](p, fmt.Sprintf(`mermaid.render("picture", %q).then(({ svg }) => svg.slice(0, 4), (error) => error.message)`, picture))
	}
	if said := draw("flowchart TD\n  a -->"); said == "<svg" {
		t.Fatal("it draws a picture with a mistake")
	}
	pages, err := filepath.Glob(filepath.Join(repository, "docs/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	pictures := 0
	for _, page := range append(pages, filepath.Join(repository, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, picture := range regexp.MustCompile("(?ms)^```mermaid\n(.*?)^```$").FindAllSubmatch(text, -1) {
			pictures++
			if said := draw(string(picture[1])); said != "<svg" {
				t.Errorf("%s: %s\n%s", page, said, picture[1])
			}
		}
	}
	if pictures < 3 {
		t.Errorf("found %d pictures", pictures)
	}
}
