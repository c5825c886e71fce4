package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// root is the repository's root, from here.
const root = "../../.."

// scratch is a folder for what the tests of this process share. It is removed at the end.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "monitoring-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(status)
}

// program is the path of the service, which is compiled once for all tests of this process.
var program = sync.OnceValues(func() (string, error) { return compile("commerce") })

// buggy is the path of the service with a bug: GET /cart/summary panics.
var buggy = sync.OnceValues(func() (string, error) {
	overlay, err := plantBug()
	if err != nil {
		return "", err
	}
	return compile("buggy", "-overlay", overlay)
})

func compile(name string, flags ...string) (path string, err error) {
	path = filepath.Join(scratch, name)
	cmd := exec.Command("go", append(append([]string{"build"}, flags...), "-o", path, "./cmd/commerce")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}

// plantBug writes a file for the compiler's flag -overlay, by which the view of a summary panics.
func plantBug() (overlay string, err error) {
	const view = "func (w view) summary(p *cart.Priced, token auth.CartToken, m *cart.MergeReport) {\n"
	original, err := filepath.Abs(filepath.Join(root, "cart/carthttp/view.go"))
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	before, after, found := strings.Cut(string(source), view)
	if !found {
		return "", fmt.Errorf("%s has no %q", original, view)
	}
	changed := filepath.Join(scratch, "view.go")
	if err := os.WriteFile(changed, []byte(before+view+"panic(\"a bug\")\n"+after), 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(scratch, "overlay.json")
	return overlay, os.WriteFile(overlay, replace, 0o600)
}
