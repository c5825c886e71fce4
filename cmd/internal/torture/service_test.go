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
	program  string
	settings []string
	log      string // file

	mu    sync.Mutex
	cmd   *exec.Cmd // nil when it does not run
	addr  string    // host:port
	admin string
}

func startService(t testing.TB, settings ...string) *service {
	t.Helper()
	s := &service{
		t: t, program: commerce.compiled(t), settings: settings, log: filepath.Join(t.TempDir(), "log"),
		addr: "127.0.0.1:0", admin: "127.0.0.1:0",
	}
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
	cmd := exec.Command(s.program, "serve")
	cmd.Env = slices.Concat(
		[]string{"PATH=" + os.Getenv("PATH"), "ADDR=" + s.addr, "ADMIN_ADDR=" + s.admin, "JWT_SECRET=" + jwtSecret, "HANDOVER_KEY=" + jwtSecret, "RATE_LIMIT=off"},
		s.settings)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := cmd.Start()
	assert.Require(s.t, err == nil, "start the service: %v", err)
	s.cmd = cmd
	for began := time.Now(); !s.announced(from); time.Sleep(2 * time.Millisecond) {
		if time.Since(began) > startLimit {
			s.t.Fatalf("the service does not serve within %v; its log:\n%s", startLimit, s.said(from))
		}
	}
}

// announced takes the addresses from the log, once that says that the service serves.
func (s *service) announced(from int64) bool {
	for _, line := range s.entries(from) {
		if line["msg"] == "serving" {
			s.addr, s.admin = line["addr"].(string), line["admin"].(string)
			return true
		}
	}
	return false
}

func (s *service) said(from int64) []byte {
	s.t.Helper()
	log := assert.Must(os.Open(s.log))(s.t)
	defer log.Close()
	return assert.Must(io.ReadAll(io.NewSectionReader(log, from, math.MaxInt64-from)))(s.t)
}

func (s *service) entries(from int64) []map[string]any {
	s.t.Helper()
	var found []map[string]any
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

// metric returns a value of /metrics by name and labels, as in `x{a="b"}`.
func (s *service) metric(name string) float64 {
	s.t.Helper()
	_, page, err := s.adminGet("/metrics")
	assert.NoError(s.t, err)
	for line := range strings.Lines(page) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return assert.Must(strconv.ParseFloat(strings.TrimSpace(value), 64))(s.t)
		}
	}
	s.t.Fatalf("no metric %s", name)
	return 0
}

func command(t testing.TB, program string, settings []string, arguments ...string) string {
	t.Helper()
	return assert.Must(execute(program, settings, arguments...))(t)
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

// A shopper's requests alternate between two instances, and nothing shows it: each sees what
// the other has just changed, in the same words.
func TestInstances_AShopperSwitchesAtEachRequest(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	redis, database := ephemeral.StartRedis(t), catalog(t)
	settings := []string{"REDIS_URL=" + redis.URL, "DATABASE_URL=" + database, "TRUSTED_PROXIES=127.0.0.1"}
	instances := []*service{startService(t, settings...), startService(t, settings...)}
	url := startHAProxy(t, instances[0], instances[1])
	s := &switching{t: t, shopper: shopperAt(t, func() string { return url })}
	var before [2]int
	for i, instance := range instances {
		before[i] = instance.served()
	}

	s.Token = "a-shopper-who-switches-instances"
	for n := range int64(20) {
		s.change("POST", "/cart/add", `{"product_id":1001}`, 2*n+1, n+1)
		s.refused("PATCH", "/cart/items/1002", `{"quantity":1}`)
		s.change("PATCH", "/cart/items/1001", fmt.Sprintf(`{"quantity":%d,"notice":"number %d"}`, n+1, n), 2*n+2, n+1)
	}
	s.JWT = customer(t, "switching")
	login := s.send("GET", "/cart", "")
	assert.Require(t, login.Status == http.StatusOK && login.Cart.Merge != nil && login.Cart.Count == 20, "login: %v", login)
	report := login.Cart.Merge.ID
	if a := s.send("GET", "/cart", ""); a.Status != http.StatusOK || a.Cart.Merge == nil || a.Cart.Merge.ID != report || a.Cart.Count != 20 {
		t.Errorf("after the login: %v", a)
	}

	for i, instance := range instances {
		served := instance.served() - before[i]
		assert.That(t, served >= s.sent/5, "instance %d served %v of %v requests: the shopper did not switch", i, served, s.sent)
	}
}

// switching makes one request at a time, which haproxy gives to the instances in turns.
type switching struct {
	t *testing.T
	*shopper
	sent int
}

func (s *switching) send(method, path, body string, headers ...string) reply {
	s.sent++
	return s.shopper.send(method, path, body, headers...)
}

func (s *switching) refused(method, path, body string) {
	s.t.Helper()
	a := s.send(method, path, body)
	assert.Require(s.t, a.Code == "item_not_found", "%s %s: %v, want item_not_found", method, path, a)
}

// change makes a change and repeats it, and lets each instance show the cart.
func (s *switching) change(method, path, body string, version, count int64) {
	s.t.Helper()
	key := []string{"Idempotency-Key", fmt.Sprint("switch-", s.sent)}
	a := s.send(method, path, body, key...)
	assert.Require(s.t, a.Status == http.StatusOK && a.Cart.Version == version && a.Cart.Count == count && !a.replayed(),
		"%s %s %s: %v, want version %d with %d pieces", method, path, body, a, version, count)
	again := s.send(method, path, body, key...)
	assert.Require(s.t, again.replayed() && again.Cart.Version == version,
		"repeated %s %s: %v, want a replay of version %d", method, path, again, version)
	tag := a.Header.Get("ETag")
	for range 2 {
		if read := s.send("GET", "/cart", ""); read.Header.Get("ETag") != tag || read.Cart.Count != count {
			s.t.Fatalf("read after %s %s: %s %v, want %s", method, path, read.Header.Get("ETag"), read, tag)
		}
		if same := s.send("GET", "/cart", "", "If-None-Match", tag); same.Status != http.StatusNotModified {
			s.t.Fatalf("conditional read after %s %s: %v, want 304", method, path, same)
		}
	}
}
