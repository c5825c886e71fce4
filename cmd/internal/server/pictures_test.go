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
	mermaid := must(os.ReadFile(filepath.Join(installPackages(t, "mermaid"), "node_modules/@mermaid-js/tiny/dist/mermaid.tiny.js")))(t)
	p := openPage(t, "about:blank")
	evaluate[any](p, string(mermaid)+"; null")
	draw := func(picture string) string {
		return evaluate[string](p, fmt.Sprintf(`mermaid.render("picture", %q).then(({ svg }) => svg.slice(0, 4), (error) => error.message)`, picture))
	}
	require(t, draw("flowchart TD\n  a -->") != "<svg", "it draws a picture with a mistake")
	pages := must(filepath.Glob(filepath.Join(repository, "docs/*.md")))(t)
	pictures := 0
	for _, page := range append(pages, filepath.Join(repository, "README.md")) {
		text := must(os.ReadFile(page))(t)
		for _, picture := range regexp.MustCompile("(?ms)^```mermaid\n(.*?)^```$").FindAllSubmatch(text, -1) {
			pictures++
			equal(t, draw(string(picture[1])), "<svg", "%s: Mermaid's answer to\n%s", page, picture[1])
		}
	}
	assert(t, pictures >= 3, "found %d pictures", pictures)
}
