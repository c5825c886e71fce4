package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"commerce/cart/live"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// running is a `commerce serve` or a demo, and its two addresses.
type running struct {
	instance
	admin string
	cmd   *exec.Cmd
	log   *logLines // also what it prints
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

type logLine struct {
	Level, Msg, Route, Err, Finding, Code, Replica, State string
	TraceID                                               string `json:"trace_id"`
}

// lines returns the lines after the first n bytes, of which the last one may be incomplete.
func (l *logLines) lines(t *testing.T, after int) (all []logLine) {
	t.Helper()
	for text := range strings.Lines(l.String()[after:]) {
		var line logLine
		err := json.Unmarshal([]byte(text), &line)
		assert.That(t, err == nil || !strings.HasSuffix(text, "\n"), "the log has %q: %v", text, err)
		all = append(all, line)
	}
	return all
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

// addresses are in the log of serve, and in what the demo prints.
var addresses = regexp.MustCompile(
	`"msg":"serving","addr":"(.+?)","admin":"(.+?)"|Operators +http://(\S+)(?s:.*)\nOpen http://localhost(\S+)\n`)

// start starts a command, which ends with the test, and waits until both of its addresses accept connections.
func start(t *testing.T, command string, settings ...string) *running {
	t.Helper()
	r := &running{cmd: program(t, settings, command), log: &logLines{}}
	r.cmd.Stdout, r.cmd.Stderr = r.log, r.log
	assert.NoError(t, r.cmd.Start())
	t.Cleanup(func() {
		if r.cmd.ProcessState == nil { // the test has not ended it
			_ = r.cmd.Process.Kill()
			_ = r.cmd.Wait()
		}
	})
	eventually(t, func() string {
		found := addresses.FindStringSubmatch(r.log.String())
		if found == nil {
			return command + " has no addresses:\n" + r.log.String()
		}
		r.URL, r.admin = "http://"+found[1], "http://"+found[2]+found[3]
		if found[1] == "" {
			r.URL = "http://127.0.0.1" + found[4]
		}
		return ""
	})
	return r
}

// startServe starts `commerce serve` on the shared Redis, with these settings first.
func startServe(t *testing.T, databaseURL string, settings ...string) *running {
	t.Helper()
	redisURL := ephemeral.AsUser(t, ephemeral.Redis(t), source(t, "deploy/redis/users.conf"), "commerce")
	has := []string{"DATABASE_URL=" + databaseURL, "REDIS_URL=" + redisURL, "JWT_SECRET=" + secret, "HANDOVER_KEY=" + secret, "DRAIN_DELAY=0s"}
	return start(t, "serve", append(has, settings...)...)
}

func (r *running) signal(t *testing.T, signal os.Signal) {
	t.Helper()
	assert.NoError(t, r.cmd.Process.Signal(signal))
}

func TestServe_BehavesLikeTheDemo(t *testing.T) {
	t.Parallel()
	const publicURL = "PUBLIC_URL=https://shop.example.com" // of pictures
	demo := start(t, "demo", publicURL)
	serve := startServe(t, seeded(t), publicURL)
	var demoToken, serveToken string
	for _, step := range []struct{ method, path, body string }{
		{"GET", "/cart", ""},
		{"POST", "/cart/add", `{"product_id":1,"qty":2,"notice":"please"}`},
		{"POST", "/cart/add", `{"product_id":2,"qty":4}`},
		{"POST", "/cart/add", `{"product_id":4,"subscription_plan":{"id":42}}`},
		{"POST", "/cart/add", `{"product_id":5,"fields":{"Region":"us"}}`},
		{"POST", "/cart/add", `{"product_id":21}`},
		{"POST", "/cart/coupon", `{"coupon":"ten"}`},
		{"GET", "/cart/summary", ""},
		{"POST", "/cart/handover/redeem", `{"code":"none","preview":true}`},
		{"POST", "/cart/ops", `{"mode":"each","ops":[{"op":"add_shared","code":"none"}]}`},
		{"POST", "/cart/coupon", `{"coupon":"OLD"}`},
		{"GET", "/cart/validate", ""},
		{"DELETE", "/cart/clear", ""},
	} {
		wanted := assert.Must(demo.served(demoToken, step.method, step.path, step.body))(t)
		got := assert.Must(serve.served(serveToken, step.method, step.path, step.body))(t)
		assert.Equal(t, constant(t, got), constant(t, wanted), "%v (-demo +serve)", step)
		assert.Equal(t, got.Status, wanted.Status, "%v: status", step)
		if demoToken == "" {
			demoToken, serveToken = wanted.Data.CartToken, got.Data.CartToken
		}
	}
}

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

type instance struct{ URL string }

type answer struct {
	Status int         `json:"-"`
	Header http.Header `json:"-"`
	Body   string      `json:"-"`

	Code, Message string // of JSON, as the following
	Data          struct {
		CartToken string `json:"cart_token"`
		Items     []struct {
			UnitPrice json.Number `json:"unit_price"`
		}
	}
}

// request sends a request and decodes JSON. Headers are name, value, …; "" is no value.
func request(ctx context.Context, client *http.Client, method, url, body string, headers ...string) (a answer, err error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return a, err
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for pair := range slices.Chunk(headers, 2) {
		if pair[1] != "" {
			request.Header.Set(pair[0], pair[1])
		}
	}
	response, err := client.Do(request)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	a = answer{Status: response.StatusCode, Header: response.Header, Body: string(content)}
	if err == nil && strings.HasPrefix(a.Header.Get("Content-Type"), "application/json") {
		err = json.Unmarshal(content, &a)
	}
	if err == nil && client != http.DefaultClient && response.ProtoMajor != 2 {
		err = fmt.Errorf("%s instead of HTTP/2", response.Proto)
	}
	return a, err
}

// send is request for a path, or a URL.
func (i instance) send(t *testing.T, method, path, body string, headers ...string) answer {
	t.Helper()
	if strings.HasPrefix(path, "/") {
		path = i.URL + path
	}
	a, err := request(t.Context(), http.DefaultClient, method, path, body, headers...)
	assert.Require(t, err == nil, "%s %s: %v: %s", method, path, err, a.Body)
	return a
}

func decoded[T any](t *testing.T, a answer) (v T) {
	t.Helper()
	err := json.Unmarshal([]byte(a.Body), &v)
	assert.Require(t, err == nil, "%d %s: %v", a.Status, a.Body, err)
	return v
}

// call sends a guest's request to the sample's first store. No token means a new guest.
func (i instance) call(token, method, path, body string) (answer, error) {
	return i.callBy(http.DefaultClient, token, method, path, body)
}

// callBy is call for a client, which speaks HTTP/2 if it is not the default one.
func (i instance) callBy(client *http.Client, token, method, path, body string) (answer, error) {
	return request(context.Background(), client, method, i.URL+path, body, "X-Public-Key", "pk_demo", "X-Cart-Token", token)
}

// served repeats call for at most 10 s of Patience while the response is a 503, which means that
// nothing was changed. On a busy machine, the first read of something can take longer than
// a request waits.
func (i instance) served(token, method, path, body string) (answer, error) {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		a, err := i.call(token, method, path, body)
		if err != nil || a.Status != http.StatusServiceUnavailable || time.Since(began) > ephemeral.Patience(10*time.Second) {
			return a, err
		}
	}
}

// mustCall is served for a request that must succeed with status 200.
func (i instance) mustCall(t *testing.T, token, method, path, body string) answer {
	t.Helper()
	a, err := i.served(token, method, path, body)
	assert.Require(t, err == nil && a.Status == http.StatusOK, "%s %s %s: %v, %d %s", method, path, body, err, a.Status, a.Body)
	return a
}

// At least half of the connections are for requests, and a quarter of the limits is for what the process itself needs.
func TestServe_FitsConnectionsAndStreamsIntoItsLimits(t *testing.T) {
	t.Parallel()
	const none, mib = math.MaxInt64, 1 << 20
	for _, test := range []struct {
		files                uint64
		memory               int64
		connections, streams int
	}{
		{math.MaxUint64, none, math.MaxInt32 - 192, live.MaxStreams},
		{12_000, none, 11_808, live.MaxStreams},
		{8192, none, 8000, 7000},
		{1024, none, 832, 416},
		{256, none, 64, 32},
		{20_000, 256 * mib, 19_808, live.MaxStreams},
		{20_000, 86 * mib, 19_808, 1408},
		{20_000, 64 * mib, 19_808, 1024},
	} {
		connections, streams := room(test.files, test.memory, 2)
		assert.Equal(t, [2]int{connections, streams}, [2]int{test.connections, test.streams}, "with %d files and %d bytes: connections and streams", test.files, test.memory)
	}
}
