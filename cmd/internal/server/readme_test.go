package server_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"commerce/deploy/ephemeral"
)

// What the README says about running the service works in two terminals, with the URLs of
// other servers and with a program that is built already.
func TestReadme_RunsForReal(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	server, client := twoTerminals(t)
	dir, ports := t.TempDir(), ephemeral.FreePorts(t, 2)
	link := filepath.Join(dir, "bin", "commerce")
	noError(t, os.Mkdir(filepath.Dir(link), 0o755))
	noError(t, os.Symlink(buildProgram(t), link))

	first := exec.Command("sh", "-eu")
	first.Dir = dir
	first.Env = append(os.Environ(), fmt.Sprintf("ADDR=127.0.0.1:%d", ports[0]), fmt.Sprintf("ADMIN_ADDR=127.0.0.1:%d", ports[1]))
	first.Stdin = strings.NewReader(strings.NewReplacer(
		"make build\n", "",
		"redis://localhost:6379", ephemeral.Redis(t),
		"postgres://localhost/commerce", "'"+ephemeral.Postgres(t)+"'", // its query has an &
		"commerce serve\n", "exec commerce serve\n", // so that it is the process that the test ends
	).Replace(server.script))
	log := &logBuffer{}
	first.Stdout, first.Stderr = log, log
	noError(t, first.Start())
	t.Cleanup(func() { end(t, first, log) })

	second := terminal{dir: dir, url: fmt.Sprintf("http://127.0.0.1:%d", ports[0])}
	second.run(t, "until curl -s -o /dev/null http://localhost:8080/openapi.yaml; do sleep 0.1; done")
	equal(t, second.run(t, client.script), client.prints, "what the README's commands print, with the log\n%s", log)
}

// twoTerminals returns the README's commands for a real service, and for its client.
func twoTerminals(t *testing.T) (server, client example) {
	t.Helper()
	all := examplesOf(t, "README.md")
	for i, e := range all {
		if strings.HasSuffix(e.script, "&& commerce serve\n") {
			e.script = all[i-1].script + e.script
			return e, all[i+1]
		}
	}
	t.Fatal("the README does not start the service")
	return server, client
}

func TestReadme_ListsEveryCall(t *testing.T) {
	t.Parallel()
	readme := must(os.ReadFile(filepath.Join(repository, "README.md")))(t)
	_, calls, _ := strings.Cut(string(readme), "## Calls\n")
	calls, _, _ = strings.Cut(calls, "\n## ")
	var listed, described []string
	for _, call := range regexp.MustCompile("`([A-Z]+ /[^`]+)`").FindAllStringSubmatch(calls, -1) {
		listed = append(listed, call[1])
	}
	api := must(document())(t)
	for path, item := range api.Paths.Map() {
		for method := range item.Operations() {
			described = append(described, method+" "+path)
		}
	}
	slices.Sort(listed)
	slices.Sort(described)
	equal(t, listed, described, "the README's calls, compared with openapi.yaml")
}
