package monitoring

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

const (
	jwtSecret = "a secret of the tests, 32 bytes and more"

	// patience is how long tests wait for what must happen. It is long, because the machine
	// may be busy. No test passes because it is over.
	patience = 3 * time.Minute
)

const system = "127.0.0.1:0"

// service is an instance of `commerce serve`. After a restart it has the same addresses.
type service struct {
	t       testing.TB
	program string
	wrapper []string // command that runs the program; empty: none
	log     string   // file

	cmd   *exec.Cmd // nil when it does not run
	addr  string    // host:port
	admin string
}

func startService(t testing.TB, program string, wrapper []string, settings ...string) *service {
	t.Helper()
	s := &service{
		t: t, program: program, wrapper: wrapper, log: filepath.Join(t.TempDir(), "commerce.log"),
		addr: system, admin: system,
	}
	s.start(settings...)
	t.Cleanup(s.kill)
	return s
}

func (s *service) start(settings ...string) {
	s.t.Helper()
	log := assert.Must(os.Create(s.log))(s.t)
	defer log.Close()
	arguments := append(append([]string{}, s.wrapper...), s.program, "serve")
	cmd := exec.Command(arguments[0], arguments[1:]...)
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "ADDR=" + s.addr, "ADMIN_ADDR=" + s.admin, "JWT_SECRET=" + jwtSecret, "DRAIN_DELAY=0s",
	}, settings...)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	assert.NoError(s.t, cmd.Start())
	s.cmd = cmd
	wait(s.t, "the service serves", func() string {
		text := assert.Must(os.ReadFile(s.log))(s.t)
		for line := range bytes.Lines(text) {
			var entry struct{ Msg, Addr, Admin string }
			if json.Unmarshal(line, &entry) == nil && entry.Msg == "serving" {
				if s.addr == system { // others read the address while the process starts again
					s.addr, s.admin = entry.Addr, entry.Admin
				}
				return ""
			}
		}
		return "its log: " + string(text)
	})
}

func (s *service) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait() // it has been killed
		s.cmd = nil
	}
}

func (s *service) url() string { return "http://" + s.addr }

func (s *service) metrics(t testing.TB) string {
	t.Helper()
	response := assert.Must(http.Get("http://" + s.admin + "/metrics"))(t)
	defer response.Body.Close()
	return string(assert.Must(io.ReadAll(response.Body))(t))
}

// call is a request. Empty members are not sent.
type call struct{ method, path, body, cart, bearer string }

// send makes a request of the first sample store. It returns the status, or 0 if there is no
// response, and the body.
func (c call) send(client *http.Client, base string) (status int, body []byte) {
	request, err := http.NewRequest(c.method, base+c.path, strings.NewReader(c.body))
	if err != nil {
		return 0, nil
	}
	request.Header.Set("X-Public-Key", "pk_demo")
	request.Header.Set("Content-Type", "application/json")
	if c.cart != "" {
		request.Header.Set("X-Cart-Token", c.cart)
	}
	if c.bearer != "" {
		request.Header.Set("Authorization", "Bearer "+c.bearer)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	if err != nil {
		return 0, nil
	}
	return response.StatusCode, body
}

// sharedDatabase returns the URL of a new database with the sample data, on the shared server.
func sharedDatabase(t testing.TB) string {
	t.Helper()
	url := ephemeral.Migrated(t)
	commerce(t, url, "seed")
	return url
}

// commerce runs a command of the program on a database and returns what it prints.
func commerce(t testing.TB, database string, arguments ...string) string {
	t.Helper()
	cmd := exec.Command(assert.Must(program())(t), arguments...)
	cmd.Env = []string{"DATABASE_URL=" + database}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	assert.Require(t, err == nil, "commerce %s: %v\n%s", strings.Join(arguments, " "), err, &errs)
	return strings.TrimSpace(string(out))
}

// wait repeats try until it returns "", which must happen within patience. Otherwise try
// returns what is missing.
func wait(t testing.TB, what string, try func() string) {
	t.Helper()
	limit := ephemeral.Patience(patience)
	deadline := time.Now().Add(limit)
	for {
		missing := try()
		if missing == "" {
			return
		}
		assert.Require(t, !time.Now().After(deadline), "not within %s: %s\n%s", limit, what, missing)
		time.Sleep(50 * time.Millisecond)
	}
}

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
	const view = "func (w view) summary(p *price.Priced, token auth.CartToken, m *cart.MergeReport) {\n"
	return changed("buggy", map[string][2]string{"cart/carthttp/view.go": {view, view + "panic(\"a bug\")\n"}})
})

// ahead is the path of the service whose clock is 10 minutes ahead, by which it compares clocks and verifies tokens.
var ahead = sync.OnceValues(func() (string, error) {
	const clock = "func() time.Time { return time.Now().Add(10 * time.Minute) }"
	return changed("ahead", map[string][2]string{
		"deploy/inspect/inspect.go": {"c.Now = time.Now", "c.Now = " + clock},
		"auth/jwt.go":               {"cfg.Now = time.Now", "cfg.Now = " + clock},
	})
})

// hasty is the path of the service that checks its servers every 2 seconds, and for which a transaction is long after 4.
var hasty = sync.OnceValues(func() (string, error) {
	return changed("hasty", map[string][2]string{
		"cmd/commerce/check.go":      {"checkInterval = 50 *", "checkInterval = 2 *"},
		"deploy/inspect/postgres.go": {"longWriting = 2 * time.Minute", "longWriting = 4 * time.Second"},
	})
})

// changed compiles the service with other text in its files, by the compiler's flag -overlay.
func changed(name string, edits map[string][2]string) (path string, err error) {
	replace := map[string]string{}
	for file, edit := range edits {
		original, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			return "", err
		}
		source, err := os.ReadFile(original)
		if err != nil {
			return "", err
		}
		if !strings.Contains(string(source), edit[0]) {
			return "", fmt.Errorf("%s has no %q", original, edit[0])
		}
		replace[original] = filepath.Join(scratch, name+"-"+filepath.Base(file))
		if err := os.WriteFile(replace[original], []byte(strings.Replace(string(source), edit[0], edit[1], 1)), 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(scratch, name+".json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return "", err
	}
	return compile(name, "-overlay", overlay)
}

func compile(name string, flags ...string) (path string, err error) {
	path = filepath.Join(scratch, name)
	cmd := exec.Command("go", append(append([]string{"build"}, flags...), "-o", path, "./cmd/commerce")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}
