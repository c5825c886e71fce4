package torture

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"commerce/deploy/assert"
)

// binary is the service's program.
type binary struct {
	mu   sync.Mutex
	path string // "" until it is compiled
}

// commerce is the program that all tests of this process share. TestMain removes it.
var commerce binary

// compiled returns the program's path, and compiles the program first if no test has.
func (b *binary) compiled(t testing.TB) string {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.path != "" {
		return b.path
	}
	dir := assert.Must(os.MkdirTemp("", "torture-"))(t)
	path := filepath.Join(dir, "commerce")
	if err := compile(path); err != nil {
		_ = os.RemoveAll(dir)
		t.Fatal(err)
	}
	b.path = path
	return path
}

func compile(path string) error {
	cmd := exec.Command("go", "build", "-o", path, "commerce/cmd/commerce")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

func (b *binary) remove() {
	if b.path != "" {
		_ = os.RemoveAll(filepath.Dir(b.path))
	}
}
