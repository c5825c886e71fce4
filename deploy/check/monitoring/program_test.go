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

func TestMain(m *testing.M) {
	status := m.Run()
	programs.remove()
	os.Exit(status)
}

// programs are the compiled programs that all tests of this process share. TestMain removes
// them.
var programs built

// built holds the programs that this process has compiled. It is safe for concurrent use.
type built struct {
	mu    sync.Mutex
	dir   string
	paths map[string]string
}

// right returns the path of the service.
func (b *built) right(t testing.TB) string {
	t.Helper()
	return b.compiled(t, "commerce", func() ([]string, error) { return nil, nil })
}

// buggy returns the path of the service with a bug: GET /cart/summary panics.
func (b *built) buggy(t testing.TB) string {
	t.Helper()
	return b.compiled(t, "buggy", func() ([]string, error) {
		overlay, err := plantBug(b.dir)
		return []string{"-overlay", overlay}, err
	})
}

// compiled returns a program, and compiles it if it is not yet.
func (b *built) compiled(t testing.TB, name string, flags func() ([]string, error)) string {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.paths[name] == "" {
		if b.dir == "" {
			b.dir, b.paths = must(os.MkdirTemp("", "monitoring-"))(t), map[string]string{}
		}
		path := filepath.Join(b.dir, name)
		arguments := append(append([]string{"build"}, must(flags())(t)...), "-o", path, "./cmd/commerce")
		cmd := exec.Command("go", arguments...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
		b.paths[name] = path
	}
	return b.paths[name]
}

func (b *built) remove() {
	if b.dir != "" {
		_ = os.RemoveAll(b.dir)
	}
}

// plantBug writes a file for the compiler's flag -overlay, by which a handler panics.
func plantBug(dir string) (overlay string, err error) {
	const handler = "func (a *API) summary(v *visit) (wire.Answer, error) {\n"
	original, err := filepath.Abs(filepath.Join(root, "cart/carthttp/api.go"))
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	before, after, found := strings.Cut(string(source), handler)
	if !found {
		return "", fmt.Errorf("%s has no %q", original, handler)
	}
	changed := filepath.Join(dir, "api.go")
	if err := os.WriteFile(changed, []byte(before+handler+"panic(\"a bug\")\n"+after), 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, replace, 0o600)
}

// must returns a value. If there is an error, it ends the test.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
