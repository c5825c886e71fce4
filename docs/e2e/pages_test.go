package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// mostNotRun is how many examples of all pages may be exempt from running.
const mostNotRun = 10

// Every shell block of every page runs in a test: as part of a guide or a manual, or in the test
// that a comment above the block names. Only a few are exempt, say why, and name only files that exist.
func TestPages_HaveOnlyCommandsThatRun(t *testing.T) {
	t.Parallel()
	tests := testsOfTheRepository(t)
	files := regexp.MustCompile(`[^>\w/](deploy/[\w./*-]+)`) // after > is a file that the command writes
	var notRun, named []string
	seen := map[string]bool{}
	for _, page := range pagesWithCommands(t) {
		seen[page] = true
		pasted := slices.Contains(guides, page) || slices.Contains(manuals, page)
		for _, e := range examplesOf(t, page) {
			switch {
			case e.notRun != "":
				notRun = append(notRun, page+": "+e.notRun)
				for _, file := range files.FindAllStringSubmatch(e.script, -1) {
					named = append(named, file[1])
					found, err := filepath.Glob(filepath.Join(repository, file[1]))
					assert.That(t, err == nil && len(found) != 0, "%s: no file %s (%v)\n%s", page, file[1], err, e.script)
				}
			case e.runBy == "make verify": // by deploy/pages.sh
			case e.runBy != "":
				source, exists := tests[e.runBy]
				assert.That(t, exists && strings.Contains(source, filepath.Base(page)), "%s: the test %s does not exist, or its package does not read the page", page, e.runBy)
			case !pasted:
				t.Errorf("%s: no test runs this: list the page as a guide, or name the test above the block\n%s", page, e.script)
			}
		}
	}
	for _, page := range slices.Concat(guides, manuals) {
		assert.That(t, seen[page], "%s has no commands", page)
	}
	assert.That(t, len(notRun) <= mostNotRun, "%d examples do not run, want at most %d:\n%s", len(notRun), mostNotRun, strings.Join(notRun, "\n"))
	assert.That(t, len(named) >= 5, "found only the files %q", named)
}

func pagesWithCommands(t *testing.T) (pages []string) {
	t.Helper()
	shell := regexp.MustCompile("(?m)^ *```(sh|bash|shell|zsh|console)\\b")
	for page, text := range filesOfTheRepository(t, ".md") {
		if shell.MatchString(text) {
			pages = append(pages, page)
		}
	}
	slices.Sort(pages)
	return pages
}

func testsOfTheRepository(t *testing.T) map[string]string {
	t.Helper()
	packages, tests := map[string]string{}, map[string]string{}
	for file, text := range filesOfTheRepository(t, "_test.go") {
		packages[filepath.Dir(file)] += text
	}
	for _, source := range packages {
		for _, test := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(source, -1) {
			tests[test[1]] = source
		}
	}
	return tests
}

func filesOfTheRepository(t *testing.T, ending string) map[string]string {
	t.Helper()
	files := map[string]string{}
	assert.NoError(t, filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{".git", "bin", "node_modules", "testdata"}, entry.Name()) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ending) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(repository, path)
		files[filepath.ToSlash(name)] = string(text)
		return err
	}))
	return files
}

// Mermaid, which draws the pictures of the documentation on GitHub, understands them.
func TestPages_HavePicturesThatMermaidDraws(t *testing.T) {
	slow(t)
	mermaid := assert.Must(os.ReadFile(filepath.Join(installPackages(t, "mermaid"), "node_modules/@mermaid-js/tiny/dist/mermaid.tiny.js")))(t)
	p := open(t, "about:blank", look{})
	evaluate[any](p, string(mermaid)+"; null")
	draw := func(picture string) string {
		return evaluate[string](p, fmt.Sprintf(`mermaid.render("picture", %q).then(({ svg }) => svg.slice(0, 4), (error) => error.message)`, picture))
	}
	assert.Require(t, draw("flowchart TD\n  a -->") != "<svg", "it draws a picture with a mistake")
	pages := assert.Must(filepath.Glob(filepath.Join(repository, "docs/*.md")))(t)
	pictures := 0
	for _, page := range append(pages, filepath.Join(repository, "README.md")) {
		text := assert.Must(os.ReadFile(page))(t)
		for _, picture := range regexp.MustCompile("(?ms)^```mermaid\n(.*?)^```$").FindAllSubmatch(text, -1) {
			pictures++
			assert.Equal(t, draw(string(picture[1])), "<svg", "%s: Mermaid's answer to\n%s", page, picture[1])
		}
	}
	assert.That(t, pictures >= 2, "found %d pictures", pictures)
}

// What the page says about running the service on one's machine works in two terminals, with the
// URLs of other servers and with a program that is built already.
func TestDeploy_RunsOnOneMachine(t *testing.T) {
	slow(t)
	server, client := twoTerminals(t)
	dir, ports := t.TempDir(), ephemeral.FreePorts(t, 2)
	link := filepath.Join(dir, "bin", "commerce")
	assert.NoError(t, os.Mkdir(filepath.Dir(link), 0o755))
	assert.NoError(t, os.Symlink(buildProgram(t), link))

	first := exec.Command("sh", "-eu")
	first.Dir = dir
	first.Env = append(os.Environ(), fmt.Sprintf("ADDR=127.0.0.1:%d", ports[0]), fmt.Sprintf("ADMIN_ADDR=127.0.0.1:%d", ports[1]))
	first.Stdin = strings.NewReader(strings.NewReplacer(
		"make build\n", "",
		"redis://localhost:6379", ephemeral.Redis(t),
		"postgres://localhost/commerce", "'"+ephemeral.Postgres(t)+"'", // its query has an &
		"commerce serve\n", "exec commerce serve\n", // so that it is the process that the test ends
	).Replace(server.script))
	log := &assert.Log{}
	first.Stdout, first.Stderr = log, log
	assert.NoError(t, first.Start())
	t.Cleanup(func() { end(t, first, log) })

	second := terminal{dir: dir, url: fmt.Sprintf("http://127.0.0.1:%d", ports[0])}
	second.run(t, "until curl -s -o /dev/null http://localhost:8080/openapi.yaml; do sleep 0.1; done")
	assert.Equal(t, second.run(t, client.script), client.prints, "what the page's commands print, with the log\n%s", log)
}

// twoTerminals returns the commands of docs/deploy.md for a real service, and for its client.
func twoTerminals(t *testing.T) (server, client example) {
	t.Helper()
	all := examplesOf(t, "docs/deploy.md")
	for i, e := range all {
		if strings.HasSuffix(e.script, "&& commerce serve\n") {
			e.script = all[i-1].script + e.script
			return e, all[i+1]
		}
	}
	t.Fatal("the page does not start the service")
	return server, client
}
