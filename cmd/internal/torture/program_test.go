package torture

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// built holds the programs that this process has compiled.
type built struct {
	mu    sync.Mutex
	dir   string
	paths map[string]string // by the source's directory
}

// programs are the compiled programs that all tests of this process share. TestMain removes
// them.
var programs built

// compiled returns the path of the service's program, compiled from the module at source, or
// from this module if source is empty.
func (b *built) compiled(t testing.TB, source string) string {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if path := b.paths[source]; path != "" {
		return path
	}
	path, err := b.compile(source)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func (b *built) compile(source string) (string, error) {
	if b.dir == "" {
		dir, err := os.MkdirTemp("", "torture-")
		if err != nil {
			return "", err
		}
		b.dir, b.paths = dir, map[string]string{}
	}
	path := filepath.Join(b.dir, fmt.Sprintf("commerce-%d", len(b.paths)))
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "commerce/cmd/commerce")
	cmd.Dir = source
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build in %q: %w\n%s", source, err, out)
	}
	b.paths[source] = path
	return path, nil
}

func (b *built) remove() {
	if b.dir != "" {
		_ = os.RemoveAll(b.dir)
	}
}
