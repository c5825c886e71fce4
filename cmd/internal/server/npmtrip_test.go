package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// lostReplies is how many changes testdata/npmtrip/trip.mjs sends over LOSSY_URL.
const lostReplies = 8

// The unchanged published client makes a whole shopping trip. TestPublishedClient_ALostReplyCountsOnce
// sends its requests without Node.
func TestPublishedClient_DrivesAWholeTrip(t *testing.T) {
	slow(t)
	installed := installPackages(t, "npmtrip")
	t.Run("demo", func(t *testing.T) {
		t.Parallel()
		demo := startDemo(t)
		drive(t, installed, demo.url, demo.key, demo.jwt, demo.token(t, "on-a-server"), demo.token(t, "on-a-lossy-line"))
	})
	for name, open := range map[string]func(*testing.T) *shop{
		"single":   func(t *testing.T) *shop { return openShop(t, ephemeral.Redis(t)) },
		"cluster":  func(t *testing.T) *shop { return openShop(t, ephemeral.Cluster(t)) },
		"as serve": func(t *testing.T) *shop { return openShopAs(t, ephemeral.Redis(t), true) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			drive(t, installed, s.URL, s.Key, s.token(t, "1001"), s.token(t, "1002"), s.token(t, "1003"))
		})
	}
}

// drive makes the trip against the shop at url, as customers with these tokens.
func drive(t *testing.T, dir, url, key, browserJWT, serverJWT, lossyJWT string) {
	t.Helper()
	line := loseReplies(t, url)
	node := command(t, "node", "trip.mjs")
	node.Dir = dir
	node.Env = append(os.Environ(), "BASE_URL="+url, "LOSSY_URL="+line.URL, "PUBLIC_KEY="+key,
		"JWT_BROWSER="+browserJWT, "JWT_SERVER="+serverJWT, "JWT_LOSSY="+lossyJWT)
	said, err := node.CombinedOutput()
	t.Logf("node trip.mjs:\n%s", said)
	assert.Require(t, err == nil, "node trip.mjs: %v", err)
	assert.Equal(t, line.lost.Load(), lostReplies, "replies that were lost")
	assert.That(t, line.repeated.Load() >= lostReplies, "%d changes were sent again, want %d", line.repeated.Load(), lostReplies)
}

// command is a program that a test waits for, with a timeout.
func command(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ephemeral.Patience(2*time.Minute))
	t.Cleanup(cancel)
	return exec.CommandContext(ctx, name, args...)
}

type demo struct {
	binary, url, key, jwt string
	log                   *logBuffer
}

// The parts of the demo's output that people copy.
var (
	printedURL = regexp.MustCompile(`(?m)^ *URL +(http://localhost:[0-9]+)$`)
	printedKey = regexp.MustCompile(`(?m)^ *Store +(pk_\S+)`)
	printedJWT = regexp.MustCompile(`(?m)^ *Customer JWT\s+(\S+\.\S+\.\S+)$`)
)

// program is built for the first test that needs it, until removeProgram.
var program struct {
	build sync.Once
	dir   string
	err   error
}

func buildProgram(t *testing.T) (binary string) {
	t.Helper()
	program.build.Do(func() {
		if program.dir, program.err = os.MkdirTemp("", "commerce"); program.err != nil {
			return
		}
		if said, err := command(t, "go", "build", "-o", program.dir, "commerce/cmd/commerce").CombinedOutput(); err != nil {
			program.err = fmt.Errorf("go build: %w\n%s", err, said)
		}
	})
	assert.Require(t, program.err == nil, "%v", program.err)
	return filepath.Join(program.dir, "commerce")
}

func removeProgram() {
	if program.dir != "" {
		_ = os.RemoveAll(program.dir)
	}
}

// startDemo runs the demo on free ports until the test ends. It must exit with 0.
func startDemo(t *testing.T) demo {
	t.Helper()
	d := demo{binary: buildProgram(t), log: &logBuffer{}}
	run := exec.Command(d.binary, "demo")
	run.Env = append(os.Environ(), "ADDR=127.0.0.1:0", "ADMIN_ADDR=127.0.0.1:0", "JWT_SECRET="+jwtSecret)
	run.Stderr = d.log
	out := assert.Must(run.StdoutPipe())(t)
	assert.NoError(t, run.Start())
	t.Cleanup(func() { end(t, run, d.log) })

	printed := welcome(bufio.NewScanner(out))
	for pattern, found := range map[*regexp.Regexp]*string{printedURL: &d.url, printedKey: &d.key, printedJWT: &d.jwt} {
		match := pattern.FindStringSubmatch(printed)
		assert.Require(t, match != nil, "the demo printed nothing like %s:\n%s%s", pattern, printed, d.log)
		*found = match[1]
	}
	return d
}

// welcome reads the demo's output up to its last line or its end.
func welcome(lines *bufio.Scanner) string {
	var printed strings.Builder
	for lines.Scan() {
		printed.WriteString(lines.Text() + "\n")
		if printedURL.MatchString(lines.Text()) {
			break
		}
	}
	return printed.String()
}

// end stops a program, which must exit with 0 within ten seconds.
func end(t testing.TB, program *exec.Cmd, log *logBuffer) {
	t.Helper()
	_ = program.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(ephemeral.Patience(15*time.Second), func() { _ = program.Process.Kill() })
	defer late.Stop()
	err := program.Wait()
	assert.That(t, err == nil, "%s: %v\n%s", program, err, log)
}

func (d demo) token(t testing.TB, customer string) string {
	t.Helper()
	sign := command(t, d.binary, "token", "customer", "--store", "1", "--customer", customer)
	sign.Env = append(os.Environ(), "JWT_SECRET="+jwtSecret)
	token, err := sign.Output()
	assert.Require(t, err == nil, "%s: %v", sign, err)
	return string(bytes.TrimSpace(token))
}

// installPackages copies a folder of testdata to a temporary directory, installs its pinned
// npm packages there, and returns that directory.
func installPackages(t *testing.T, folder string) string {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		_, err := exec.LookPath(program)
		assert.Require(t, err == nil, "%s is not installed (sh deploy/ephemeral/install.sh)", program)
	}
	dir := t.TempDir()
	assert.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", folder))))
	npm := command(t, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	npm.Dir = dir
	said, err := npm.CombinedOutput()
	assert.Require(t, err == nil, "npm ci: %v\n%s", err, said)
	return dir
}

// docs/cart.md says which resend of a browser counts twice.
func TestResend_OfABrowserCountsTwiceOnlyWithoutAKey(t *testing.T) {
	slow(t)
	for name, tc := range map[string]struct {
		header string
		want   int
	}{
		"with only X-Timestamp":   {`"X-Timestamp": String(Math.floor(Date.now() / 1000))`, 2},
		"with an Idempotency-Key": {`"Idempotency-Key": "one"`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, embeddedRedis(t))
			var posts atomic.Int64
			web := serveGateway(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/":
					w.Header().Set("Content-Type", "text/html")
					fmt.Fprint(w, "<!doctype html><title>a storefront</title>")
				case r.Method == http.MethodPost && posts.Add(1) == 1: // closes the connection instead of responding
					s.handler.ServeHTTP(httptest.NewRecorder(), r)
					panic(http.ErrAbortHandler)
				default:
					s.handler.ServeHTTP(w, r)
				}
			})
			ctx, _ := chromedp.NewContext(openBrowser(t), chromedp.WithNewBrowserContext())
			t.Cleanup(func() { _ = chromedp.Cancel(ctx) })
			ctx, cancel := context.WithTimeout(ctx, patience)
			t.Cleanup(cancel)
			assert.NoError(t, chromedp.Do(ctx, chromedp.Navigate(web)))
			added := assert.Must(chromedp.Run(ctx, chromedp.Evaluate[int](fmt.Sprintf(`(async () => {
				const headers = {"X-Public-Key": %q, "X-Cart-Token": "a-token-of-the-browsers-own"};
				await (await fetch("/cart/count", {headers})).text(); // leaves a kept-alive connection
				await new Promise((done) => setTimeout(done, 300)); // until it is idle: a browser resends only on one that it has used
				const response = await fetch("/cart/add", {
					method: "POST", headers: {...headers, "Content-Type": "application/json", %s}, body: '{"product_id": 1, "qty": 1}',
				});
				return (await response.json()).data.count;
			})()`, s.Key, tc.header), chromedp.EvalAwaitPromise)))(t)
			assert.That(t, added == tc.want && posts.Load() == 2, "the cart has %d after %d requests, want %d after 2", added, posts.Load(), tc.want)
		})
	}
}

// published sends the requests of the published storefront client in a browser. See
// the tests above for the client itself; this one needs no Node.
type published struct{ *shopper }

func (s *shop) published(t testing.TB) published { return published{s.guest(t)} }

// request returns what the client sends: the same headers with every method, an empty body
// with DELETE, and a stamp that its own retries repeat.
func (c published) request(method, path, payload string) *http.Request {
	c.t.Helper()
	r := c.shopper.request(method, path, strings.NewReader(payload),
		"Accept", "application/json", "Accept-Language", "*", "X-Signature-Version", "v1", "X-Client-Auth", "true",
		"X-Timestamp", strconv.FormatInt(c.shop.Clock.Now().Unix(), 10))
	if method == http.MethodDelete {
		r.TransferEncoding = []string{"identity"} // net/http then sends Content-Length: 0, like browsers
	}
	return r
}

// shows makes a call after which the cart must hold these lines.
func (c published) shows(lines, method, path, payload string) cartBody {
	c.t.Helper()
	a := c.do(c.request(method, path, payload))
	assert.Require(c.t, a.Status == http.StatusOK, "%s %s %s: %d %s", method, path, payload, a.Status, a.Raw)
	got := a.Body.Data
	assert.That(c.t, got.lines() == lines, "after %s %s %s the cart holds %q, want %q", method, path, payload, got.lines(), lines)
	return got
}

// The client retries a change without a response a second later, with the same stamp.
func TestPublishedClient_ALostReplyCountsOnce(t *testing.T) {
	const plan = `{"product_id":4,"qty":1,"subscription_plan":41}|{"product_id":1,"qty":1}`
	cases := map[string]struct {
		held                  string // bodies of adds
		method, path, payload string
		want                  string // lines
		version               int64
	}{
		"add":                      {`{"product_id":1,"qty":2}`, "POST", "/cart/add", `{"product_id":1,"qty":3}`, "1×5", 2},
		"first add":                {``, "POST", "/cart/add", `{"product_id":1,"qty":3}`, "1×3", 1},
		"add of all in stock":      {``, "POST", "/cart/add", `{"product_id":2,"qty":3}`, "2×3", 1},
		"quantity":                 {`{"product_id":1,"qty":2}`, "PATCH", "/cart/items/1", `{"quantity":7}`, "1×7", 2},
		"quantity of 0 by product": {plan, "PATCH", "/cart/items/4", `{"quantity":0}`, "1×1", 3},
		"removal by product":       {plan, "DELETE", "/cart/items/4", "", "1×1", 3},
		"removal of the last line": {`{"product_id":1,"qty":2}`, "DELETE", "/cart/items/1", "", "", 2},
		"clear":                    {`{"product_id":1,"qty":2}`, "DELETE", "/cart/clear", "", "", 2},
		"add by a customer":        {`customer|{"product_id":1,"qty":2}`, "POST", "/cart/add", `{"product_id":1,"qty":3}`, "1×5", 2},
		"add that merges a cart":   {`{"product_id":1,"qty":2}|customer`, "POST", "/cart/add", `{"product_id":1,"qty":3}`, "1×5", 2},
	}
	onEachRedis(t, func(t *testing.T, s *shop) {
		line := loseReplies(t, s.URL)
		for name, tc := range cases {
			c := s.published(t)
			for held := range strings.SplitSeq(tc.held, "|") {
				switch held {
				case "": // a new shopper
				case "customer":
					c.JWT = s.token(t, strings.ReplaceAll(name, " ", "-"))
				default:
					c.do(c.request("POST", "/cart/add", held))
				}
			}
			first, retry := c.request(tc.method, tc.path, tc.payload), c.request(tc.method, tc.path, tc.payload)
			retry.Header = first.Header
			line.carry(t, first)
			s.pass(t, time.Second)
			a := c.do(retry)
			assert.That(t, a.Status == http.StatusOK, "%s: sent again: %d %s", name, a.Status, a.Raw)
			assert.Equal(t, c.shows(tc.want, "GET", "/cart", "").Version, tc.version, "%s: version", name)
		}
		assert.Equal(t, line.lost.Load(), int64(len(cases)), "changes that were made before their reply was lost")
	})
}

// lossyLine is a proxy between client and service. It loses the first response to every
// change: the change is made, and the connection closed before the response. Reads and
// retries pass.
type lossyLine struct {
	URL            string
	lost, repeated atomic.Int64
	seen           sync.Map
}

func loseReplies(t testing.TB, service string) *lossyLine {
	t.Helper()
	line, proxy := &lossyLine{}, proxyTo(t, service)
	proxy.ModifyResponse = line.lose
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	line.URL = serveGateway(t, proxy.ServeHTTP)
	return line
}

// lose returns an error for the first response to a change.
func (l *lossyLine) lose(reply *http.Response) error {
	r := reply.Request
	if r.Method == http.MethodGet {
		return nil
	}
	change := fmt.Sprint(r.Method, r.URL.Path, r.Header["X-Timestamp"], r.Header["X-Cart-Token"], r.Header["Authorization"])
	if _, again := l.seen.LoadOrStore(change, true); again {
		l.repeated.Add(1)
		return nil
	}
	l.lost.Add(1)
	return errors.New("the reply is lost")
}

// carry sends a change through the proxy, which must lose its response.
func (l *lossyLine) carry(t testing.TB, r *http.Request) {
	t.Helper()
	over, _ := url.Parse(l.URL)
	r.URL.Host = over.Host
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		response.Body.Close()
		t.Fatalf("%s %s came back: %d", r.Method, r.URL.Path, response.StatusCode)
	}
}

// quickly makes a call without a connection, and without comparing its answer with the
// OpenAPI document: for tests that make thousands.
func (c *shopper) quickly(method, path, payload string, headers ...string) answer {
	r := httptest.NewRequest(method, path, strings.NewReader(payload))
	r.Header.Set("Content-Type", "application/json")
	c.identify(r.Header)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	c.shop.handler.ServeHTTP(w, r)
	a := answer{Status: w.Code, Header: w.Header(), Raw: w.Body.Bytes()}
	_ = json.Unmarshal(a.Raw, &a.Body)
	return a
}
