package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// running is a `commerce serve` or a demo, and its two addresses.
type running struct {
	instance
	admin string
	cmd   *exec.Cmd
	log   *logLines
}

// logLines collects the log of a process. It is safe for concurrent use.
type logLines struct {
	mu   sync.Mutex
	text []byte
}

func (l *logLines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, text...)
	return len(text), nil
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// wait waits until a line after the first n bytes matches all patterns.
func (l *logLines) wait(t *testing.T, after int, patterns ...string) {
	t.Helper()
	eventually(t, func() string {
		log := l.String()[after:]
		for line := range strings.Lines(log) {
			if !slices.ContainsFunc(patterns, func(p string) bool { return !regexp.MustCompile(p).MatchString(line) }) {
				return ""
			}
		}
		return fmt.Sprintf("no line with %q in the log, which ends with\n%s", patterns, tail(log, 2000))
	})
}

// asService returns a Redis URL for the user in deploy/redis/users.conf that the service
// runs as.
func asService(t *testing.T, url string) string {
	t.Helper()
	return ephemeral.AsUser(t, url, source(t, "deploy/redis/users.conf"), "commerce")
}

// startServe starts `commerce serve` on the shared Redis. The given settings take
// precedence over the defaults.
func startServe(t *testing.T, databaseURL string, settings ...string) *running {
	t.Helper()
	has := []string{"DATABASE_URL=" + databaseURL, "REDIS_URL=" + asService(t, ephemeral.Redis(t)), "JWT_SECRET=" + secret, "DRAIN_DELAY=0s"}
	r := &running{cmd: program(t, append(has, settings...), "serve"), log: &logLines{}}
	log := assert.Must(r.cmd.StderrPipe())(t)
	r.start(t)
	lines := io.TeeReader(log, r.log)
	logged := bufio.NewScanner(lines)
	for r.URL == "" {
		assert.Require(t, logged.Scan(), "serve does not log its addresses")
		var line struct{ Msg, Addr, Admin string }
		err := json.Unmarshal(logged.Bytes(), &line)
		assert.Require(t, err == nil, "serve says %s", logged.Bytes())
		if line.Msg == "serving" {
			r.URL, r.admin = "http://"+line.Addr, "http://"+line.Admin
		}
	}
	go io.Copy(io.Discard, lines)
	return r
}

// start starts the process, which ends with the test.
func (r *running) start(t *testing.T) {
	t.Helper()
	assert.NoError(t, r.cmd.Start())
	t.Cleanup(func() {
		if r.cmd.ProcessState == nil { // the test has not ended it
			_ = r.cmd.Process.Kill()
			_ = r.cmd.Wait()
		}
	})
}

func (r *running) signal(t *testing.T, signal os.Signal) {
	t.Helper()
	assert.NoError(t, r.cmd.Process.Signal(signal))
}

func TestServe_BehavesLikeTheDemo(t *testing.T) {
	t.Parallel()
	demo := startDemo(t)
	serve := startServe(t, seeded(t))
	var demoToken, serveToken string
	for _, step := range []struct{ method, path, body string }{
		{"GET", "/cart", ""},
		{"POST", "/cart/add", `{"product_id":1,"qty":2,"notice":"please"}`},
		{"POST", "/cart/add", `{"product_id":2,"qty":3}`},
		{"POST", "/cart/add", `{"product_id":2}`},
		{"POST", "/cart/add", `{"product_id":3}`},
		{"POST", "/cart/add", `{"product_id":4}`},
		{"POST", "/cart/add", `{"product_id":4,"subscription_plan":41}`},
		{"POST", "/cart/add", `{"product_id":4,"subscription_plan":{"id":42}}`},
		{"POST", "/cart/add", `{"product_id":5,"fields":{"Region":"us"}}`},
		{"POST", "/cart/add", `{"product_id":5,"fields":{"0":"a@example.com","Region":"us"}}`},
		{"POST", "/cart/add", `{"product_id":6}`},
		{"POST", "/cart/add", `{"product_id":7,"qty":1}`},
		{"POST", "/cart/add", `{"product_id":7,"qty":2}`},
		{"POST", "/cart/add", `{"product_id":21}`},
		{"POST", "/cart/coupon", `{"coupon":"ten"}`},
		{"GET", "/cart/summary", ""},
		{"POST", "/cart/coupon", `{"coupon":"FIVE"}`},
		{"POST", "/cart/coupon", `{"coupon":"OLD"}`},
		{"PATCH", "/cart/items/2", `{"quantity":4}`},
		{"PATCH", "/cart/items/1", `{"quantity":1}`},
		{"GET", "/cart/validate", ""},
		{"GET", "/cart/count", ""},
		{"DELETE", "/cart/items/1", ""},
		{"DELETE", "/cart/clear", ""},
	} {
		wanted := assert.Must(demo.served(demoToken, step.method, step.path, step.body))(t)
		got := assert.Must(serve.served(serveToken, step.method, step.path, step.body))(t)
		if diff := cmp.Diff(constant(t, wanted), constant(t, got)); diff != "" || got.Status != wanted.Status {
			t.Errorf("%s %s %s: serve answers %d, the demo %d (-demo +serve):\n%s", step.method, step.path, step.body, got.Status, wanted.Status, diff)
		}
		if demoToken == "" {
			demoToken, serveToken = wanted.Data.CartToken, got.Data.CartToken
		}
	}
}

// constant returns a response body without the members that differ between responses.
func constant(t *testing.T, a answer) map[string]any {
	t.Helper()
	body := decoded[map[string]any](t, a)
	differs := func(name string, _ any) bool {
		return name == "cart_token" || name == "timestamp" || name == "expires_at" || name == "request_id"
	}
	maps.DeleteFunc(body, differs)
	if data, ok := body["data"].(map[string]any); ok {
		maps.DeleteFunc(data, differs)
	}
	return body
}
