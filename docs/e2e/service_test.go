// Package e2e tests what people see: the program's pages in a browser, and what the commands of the
// documentation print in a terminal.
package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"commerce/auth"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

const (
	repository = "../.."
	secret     = "a secret of the tests, 32 bytes and more"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(cleaning{m}) }

// cleaning runs the tests, and ends what they share before TestMain looks for leaks.
type cleaning struct{ *testing.M }

func (c cleaning) Run() int {
	defer func() { _ = os.RemoveAll(program.dir) }()
	defer closeBrowser()
	return c.M.Run()
}

func slow(t *testing.T) {
	t.Helper()
	t.Parallel()
	ephemeral.Slow(t)
}

// command is a program that a test waits for, with a timeout.
func command(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ephemeral.Patience(2*time.Minute))
	t.Cleanup(cancel)
	return exec.CommandContext(ctx, name, args...)
}

// program is built for the first test that needs it, until the last test has ended.
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

// service is the program with the sample's data, for store 1.
type service struct {
	url, key string
	jwt, api string        // tokens of a customer, whom only the demo has, and of the store
	db       *pgxpool.Pool // nil: the demo
	log      *assert.Log
}

// The parts of the demo's output that people copy.
var (
	printedURL = regexp.MustCompile(`(?m)^Open (http://localhost:[0-9]+\S*)$`)
	printedKey = regexp.MustCompile(`(?m)^ *Store +(pk_\S+)`)
	printedJWT = regexp.MustCompile(`(?m)^ *Customer JWT\s+(\S+\.\S+\.\S+)$`)
	printedAPI = regexp.MustCompile(`(?m)^ *API token\s+(1\|\S+)$`)
)

// startDemo runs the demo with further settings until the test ends. It must exit with 0.
func startDemo(t *testing.T, settings ...string) *service {
	t.Helper()
	s := &service{log: &assert.Log{}}
	printed := &assert.Log{}
	s.run(t, printed, s.log, "demo", append(settings, "ADDR=127.0.0.1:0", "ADMIN_ADDR=127.0.0.1:0"))
	ephemeral.Eventually(t, "the URL of the demo", func() bool { return printedURL.MatchString(printed.String()) })
	for pattern, found := range map[*regexp.Regexp]*string{printedURL: &s.url, printedKey: &s.key, printedJWT: &s.jwt, printedAPI: &s.api} {
		match := pattern.FindStringSubmatch(printed.String())
		assert.Require(t, match != nil, "the demo printed nothing like %s:\n%s%s", pattern, printed, s.log)
		*found = match[1]
	}
	return s
}

// startServe runs the service on a Redis and a Postgres with the sample's data until the test ends.
func startServe(t *testing.T, redisURL string) *service {
	t.Helper()
	database, ports := ephemeral.Migrated(t), ephemeral.FreePorts(t, 2)
	run := func(args ...string) string {
		cmd := command(t, buildProgram(t), args...)
		cmd.Env = append(os.Environ(), "DATABASE_URL="+database)
		said, err := cmd.Output()
		assert.Require(t, err == nil, "%s: %v", cmd, err)
		return strings.TrimSpace(string(said))
	}
	run("seed")
	s := &service{
		url: fmt.Sprintf("http://localhost:%d", ports[0]), key: "pk_demo", api: run("token", "store", "--store", "1", "--name", "test"),
		db: ephemeral.OpenPool(t, database, connect.PostgresConfig{Writable: true}), log: &assert.Log{},
	}
	s.run(t, s.log, s.log, "serve", []string{
		"DATABASE_URL=" + database, "REDIS_URL=" + ephemeral.AsUser(t, redisURL, redisUsers(t), "commerce"), "HANDOVER_KEY=" + secret,
		fmt.Sprintf("ADDR=127.0.0.1:%d", ports[0]), fmt.Sprintf("ADMIN_ADDR=127.0.0.1:%d", ports[1]),
		"PLAYGROUND=on", "DEFAULT_STORE=1", "DRAIN_DELAY=0s",
	})
	ephemeral.Eventually(t, "a service that is ready", func() bool {
		response, err := http.Get(fmt.Sprintf("http://localhost:%d/readyz", ports[1]))
		return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
	})
	return s
}

func redisUsers(t *testing.T) string {
	t.Helper()
	return string(assert.Must(os.ReadFile(filepath.Join(repository, "deploy/redis/users.conf")))(t))
}

func (s *service) run(t *testing.T, out, log io.Writer, command string, settings []string) {
	t.Helper()
	run := exec.Command(buildProgram(t), command)
	run.Env = slices.Concat(os.Environ(), settings, []string{"JWT_SECRET=" + secret})
	run.Stdout, run.Stderr = out, log
	assert.NoError(t, run.Start())
	t.Cleanup(func() { end(t, run, s.log) })
}

// end stops a program, which must exit with 0 within ten seconds.
func end(t testing.TB, program *exec.Cmd, log *assert.Log) {
	t.Helper()
	_ = program.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(ephemeral.Patience(15*time.Second), func() { _ = program.Process.Kill() })
	defer late.Stop()
	err := program.Wait()
	assert.That(t, err == nil, "%s: %v\n%s", program, err, log)
}

// change makes a change in the database, which the service hears of.
func (s *service) change(t *testing.T, sql string) {
	t.Helper()
	assert.Must(s.db.Exec(t.Context(), sql))(t)
	ephemeral.Settle(t, s.db)
}

// token returns a JWT of a customer.
func (s *service) token(t testing.TB, customer string) string {
	t.Helper()
	return assert.Must(assert.Must(auth.NewJWT(auth.JWTConfig{Secret: []byte(secret)}))(t).Sign(1, customer, time.Hour))(t)
}

// shopper is another client of a service: a phone, an agent, or a merchant elsewhere.
type shopper struct {
	t       testing.TB
	service *service
	token   string // of a guest's cart
	jwt     string
}

func (s *service) shopper(t testing.TB, token string) *shopper {
	return &shopper{t: t, service: s, token: token}
}

// fixable is what is wrong with a cart. Fix is an operation, or null.
type fixable struct{ Fix any }

type answer struct {
	Status  int
	Raw     []byte
	Message string
	Data    struct {
		CartToken      string `json:"cart_token"`
		Code           string
		ID             json.Number // of a product
		Count, Version int64
		Total          float64
		Items          []struct {
			ID       string
			Quantity int64
			Issue    fixable
		}
		Warnings []fixable
	}
}

// send makes one call. Headers are name, value, ….
func (c *shopper) send(method, path, body string, headers ...string) (a answer) {
	c.t.Helper()
	r := assert.Must(http.NewRequestWithContext(c.t.Context(), method, c.service.url+path, strings.NewReader(body)))(c.t)
	for _, h := range [][2]string{{"Content-Type", "application/json"}, {"X-Public-Key", c.service.key}, {"X-Cart-Token", c.token}, {"Authorization", "Bearer " + c.jwt}} {
		if h[1] != "" && h[1] != "Bearer " {
			r.Header.Set(h[0], h[1])
		}
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response := assert.Must(http.DefaultTransport.RoundTrip(r))(c.t)
	defer response.Body.Close()
	a = answer{Status: response.StatusCode, Raw: assert.Must(io.ReadAll(response.Body))(c.t)}
	_ = json.Unmarshal(a.Raw, &a) // the data of a list has other members
	if a.Data.CartToken != "" && c.jwt == "" {
		c.token = a.Data.CartToken
	}
	return a
}

func (c *shopper) ok(method, path, body string) answer {
	c.t.Helper()
	a := c.send(method, path, body)
	assert.Require(c.t, a.Status == http.StatusOK, "%s %s %s: %d %s", method, path, body, a.Status, a.Raw)
	return a
}

func (c *shopper) add(body string) { c.t.Helper(); c.ok("POST", "/cart/add", body) }

// fill adds lines such as "1×2 8×1" one by one.
func (c *shopper) fill(lines string) *shopper {
	c.t.Helper()
	for line := range strings.FieldsSeq(lines) {
		product, quantity, _ := strings.Cut(line, "×")
		c.add(fmt.Sprintf(`{"product_id":%s,"qty":%s}`, product, quantity))
	}
	return c
}

// copyProduct returns the id of a copy of a product, which the demo can change.
func (c *shopper) copyProduct(id string) string {
	c.t.Helper()
	return c.ok("POST", "/playground/products/"+id, `{}`).Data.ID.String()
}

// lines are those of the cart, such as "1×2 8×1".
func (a answer) lines() string {
	lines := make([]string, len(a.Data.Items))
	for i, item := range a.Data.Items {
		lines[i] = fmt.Sprintf("%s×%d", item.ID, item.Quantity)
	}
	return strings.Join(lines, " ")
}

// fixes is how many operations mend the cart.
func (a answer) fixes() (n int) {
	for _, item := range a.Data.Items {
		a.Data.Warnings = append(a.Data.Warnings, item.Issue)
	}
	for _, w := range a.Data.Warnings {
		if w.Fix != nil {
			n++
		}
	}
	return n
}

func (c *shopper) wantLines(want string) {
	c.t.Helper()
	assert.Equal(c.t, c.ok("GET", "/cart", "").lines(), want, "lines of the cart")
}

func serveGateway(t testing.TB, gateway http.HandlerFunc) (address string) {
	t.Helper()
	s := httptest.NewServer(gateway)
	t.Cleanup(s.Close)
	return s.URL
}

func proxyTo(t testing.TB, service string) *httputil.ReverseProxy {
	t.Helper()
	target := assert.Must(url.Parse(service))(t)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
}

// gatewayPage answers as a gateway does in place of the service.
func gatewayPage(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Access-Control-Allow-Headers", "*")
		w.Header().Set("Content-Type", "text/html")
		if r.Method == http.MethodOptions {
			return
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, "<h1>%s</h1>", http.StatusText(status))
	}
}

// installPackages copies a folder of testdata to a temporary directory, installs its pinned
// npm packages there, and returns that directory.
func installPackages(t *testing.T, folder string) string {
	t.Helper()
	dir := t.TempDir()
	assert.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", folder))))
	npm := command(t, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	npm.Dir = dir
	said, err := npm.CombinedOutput()
	assert.Require(t, err == nil, "npm ci (deploy/ephemeral/install.sh installs it): %v\n%s", err, said)
	return dir
}
