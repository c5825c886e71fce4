package torture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

const jwtSecret = "a secret of the tests, 32 bytes and more"

var startLimit = ephemeral.Patience(20 * time.Second)

// service is a process of `commerce serve`. After a restart it has the same addresses.
type service struct {
	t        testing.TB
	settings []string
	log      string // file

	mu    sync.Mutex
	cmd   *exec.Cmd // nil when it does not run
	addr  string    // host:port
	admin string
}

func newService(t testing.TB, settings ...string) *service {
	return &service{t: t, settings: settings, log: filepath.Join(t.TempDir(), "log"), addr: "127.0.0.1:0", admin: "127.0.0.1:0"}
}

func startService(t testing.TB, settings ...string) *service {
	t.Helper()
	s := newService(t, settings...)
	s.start()
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			for _, line := range s.failures(10) {
				t.Logf("the log about a failed request: %v", line)
			}
		}
	})
	return s
}

func (s *service) start() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	log := assert.Must(os.OpenFile(s.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644))(s.t)
	defer log.Close()
	from := assert.Must(log.Seek(0, io.SeekEnd))(s.t)
	s.launch(log)
	for began := time.Now(); !slices.ContainsFunc(s.entries(from), s.announces); time.Sleep(2 * time.Millisecond) {
		assert.Require(s.t, time.Since(began) <= startLimit, "the service does not serve within %v; its log:\n%s", startLimit, s.said(from))
	}
}

// launch starts the process, which writes its log to a file.
func (s *service) launch(log *os.File) {
	s.t.Helper()
	cmd := exec.Command(compiled(s.t), "serve")
	cmd.Env = slices.Concat(
		[]string{"PATH=" + os.Getenv("PATH"), "ADDR=" + s.addr, "ADMIN_ADDR=" + s.admin, "JWT_SECRET=" + jwtSecret, "HANDOVER_KEY=" + jwtSecret, "RATE_LIMIT=off"},
		s.settings)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := cmd.Start()
	assert.Require(s.t, err == nil, "start the service: %v", err)
	s.cmd = cmd
}

// announces takes the addresses from the line of the log that says that the service serves.
func (s *service) announces(line map[string]any) bool {
	if line["msg"] != "serving" {
		return false
	}
	s.addr, s.admin = line["addr"].(string), line["admin"].(string)
	return true
}

func (s *service) said(from int64) []byte {
	s.t.Helper()
	log := assert.Must(os.Open(s.log))(s.t)
	defer log.Close()
	return assert.Must(io.ReadAll(io.NewSectionReader(log, from, math.MaxInt64-from)))(s.t)
}

func (s *service) entries(from int64) (found []map[string]any) {
	s.t.Helper()
	for text := range bytes.Lines(s.said(from)) {
		var line map[string]any
		if json.Unmarshal(text, &line) == nil {
			found = append(found, line)
		}
	}
	return found
}

// failures returns the last n errors in the last 16 MB of the log.
func (s *service) failures(n int) []map[string]any {
	s.t.Helper()
	log := assert.Must(os.Stat(s.log))(s.t)
	failed := slices.DeleteFunc(s.entries(max(0, log.Size()-16<<20)), func(line map[string]any) bool { return line["level"] != "ERROR" })
	return failed[max(0, len(failed)-n):]
}

func (s *service) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "http://" + s.addr
}

func (s *service) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

// terminate waits for the end after SIGTERM, which must have status 0, and returns how long.
func (s *service) terminate() (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Now()
	late := time.AfterFunc(ephemeral.Patience(time.Minute), func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	err := errors.Join(s.cmd.Process.Signal(syscall.SIGTERM), s.cmd.Wait())
	s.cmd = nil
	return time.Since(began), err
}

// wantEnd terminates the service, which must end in time with status 0.
func (s *service) wantEnd(limit time.Duration) time.Duration {
	s.t.Helper()
	took, err := s.terminate()
	assert.That(s.t, err == nil && took <= ephemeral.Patience(limit), "ended after %v: %v, want exit status 0 within %v", took, err, limit)
	return took
}

func (s *service) signal(signal syscall.Signal) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	assert.Succeeds(s.t, s.cmd.Process.Signal(signal), "signal the service")
}

func (s *service) adminGet(path string) (status int, body string, err error) {
	s.mu.Lock()
	url := "http://" + s.admin + path
	s.mu.Unlock()
	response, err := http.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}

// metric returns the sum of the values of /metrics with a name, over all labels. At least one must exist.
func (s *service) metric(name string) (sum float64) {
	s.t.Helper()
	_, page, err := s.adminGet("/metrics")
	assert.NoError(s.t, err)
	found := false
	for line := range strings.Lines(page) {
		if rest, ok := strings.CutPrefix(line, name); ok && (rest[0] == ' ' || rest[0] == '{') {
			fields := strings.Fields(line)
			sum += assert.Must(strconv.ParseFloat(fields[len(fields)-1], 64))(s.t)
			found = true
		}
	}
	assert.Require(s.t, found || name == requestsServed, "no metric %s", name)
	return sum
}

// awaitRequests waits until the service has served requests since its start.
func (s *service) awaitRequests() {
	s.t.Helper()
	ephemeral.Eventually(s.t, "haproxy sends calls to a new instance", func() bool { return s.metric(requestsServed) > 0 })
}

// requestsServed counts the requests since the start. It is not there before the first one.
const requestsServed = "commerce_http_request_duration_seconds_count"

// command runs the program, and returns what it prints.
func command(t testing.TB, settings []string, arguments ...string) string {
	t.Helper()
	return assert.Must(execute(compiled(t), settings, arguments...))(t)
}

func execute(program string, settings []string, arguments ...string) (string, error) {
	cmd := exec.Command(program, arguments...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, settings...)
	var said bytes.Buffer
	cmd.Stderr = &said
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("commerce %s: %w: %s", strings.Join(arguments, " "), err, said.Bytes())
	}
	return strings.TrimSpace(string(text)), nil
}

func compiled(t testing.TB) string {
	t.Helper()
	return assert.Must(commerce())(t)
}

// programDir has the program that all tests of this process share. TestMain removes it.
func programDir() string { return filepath.Join(os.TempDir(), fmt.Sprint("torture-", os.Getpid())) }

// commerce compiles the program, and returns its path.
var commerce = sync.OnceValues(func() (string, error) {
	path := filepath.Join(programDir(), "commerce")
	if out, err := exec.Command("go", "build", "-o", path, "commerce/cmd/commerce").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})
