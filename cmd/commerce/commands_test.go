package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"commerce/auth"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// asProgram is an environment variable that makes this test binary run as the program,
// so that tests can start it as a separate process without building it.
const asProgram = "COMMERCE_AS_PROGRAM"

func TestMain(m *testing.M) {
	switch os.Getenv(asProgram) {
	case "":
		os.Exit(m.Run())
	case "nohup":
		signal.Ignore(syscall.SIGHUP)
	}
	main()
}

func slow(t *testing.T) {
	t.Helper()
	t.Parallel()
	ephemeral.Slow(t)
}

const secret = "a secret of the tests, 32 bytes and more"

// program returns a command that runs the program with only these settings.
func program(t testing.TB, settings []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(assert.Must(os.Executable())(t), args...)
	cmd.Env = append([]string{asProgram + "=1", "ADDR=127.0.0.1:0", "ADMIN_ADDR=127.0.0.1:0"}, settings...)
	return cmd
}

type outcome struct {
	status      int
	out, errors string
}

func ended(t testing.TB, cmd *exec.Cmd) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	assert.NoError(t, cmd.Start())
	late := time.AfterFunc(ephemeral.Patience(time.Minute), func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	_ = cmd.Wait()
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

func TestCommands_FailWithOneLineThatNamesABadSetting(t *testing.T) {
	t.Parallel()
	taken := assert.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { taken.Close() })
	both := fmt.Sprintf("127.0.0.1:%d", ephemeral.FreePorts(t, 1)[0])
	dir := t.TempDir()
	noFile, pipe := filepath.Join(dir, "missing"), filepath.Join(dir, "pipe")
	assert.NoError(t, syscall.Mkfifo(pipe, 0o600))
	const (
		serving   = "JWT_SECRET=" + secret
		redis     = "REDIS_URL=redis://127.0.0.1:1"
		collector = "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1"
		postgres  = "DATABASE_URL=postgres://user:hunter2@127.0.0.1:1/commerce"
	)

	for names, call := range map[string]struct {
		command  string
		settings []string
	}{
		"unknown flag: --adr":                       {"demo --adr=:1", nil},
		"unexpected argument .JWT_SECRET.":          {"demo JWT_SECRET=hunter2", nil},
		"unknown flag: -j":                          {"demo -jwt-secret=hunter2", nil},
		"a flag must have the form":                 {"demo ---jwt-secret=hunter2", nil},
		"--help: has a wrong value":                 {"demo --help=hunter2", nil},
		"--customer: must be valid UTF-8":           {"token customer --store 1 --customer \xff", []string{serving}},
		"--customer: must not have control":         {"token customer --store 1 --customer a\x1b[31m", []string{serving}},
		"CORS_ORIGINS: .x":                          {"demo --cors-origins=x --cors-origins=https://shop.example", nil},
		"TRUSTED_PROXIES: .y":                       {"demo --trusted-proxies=::1 --trusted-proxies=y", nil},
		"unexpected argument .demi":                 {"demi", nil},
		"unexpected argument .now":                  {"demo now", nil},
		"ADDR: .*in use.* set ADDR to":              {"demo", []string{"ADDR=" + taken.Addr().String()}},
		"ADMIN_ADDR: has the port of ADDR":          {"demo", []string{"ADDR=" + both, "ADMIN_ADDR=" + both}},
		"ADMIN_ADDR: .*in use.* set ADMIN_ADDR to":  {"demo", []string{"ADMIN_ADDR=" + taken.Addr().String()}},
		"ADDR: .*missing port":                      {"demo", []string{"ADDR=localhost"}},
		"ADDR: must be an address":                  {"demo", []string{"ADDR="}},
		"ADMIN_ADDR: must be an address":            {"demo", []string{"ADMIN_ADDR="}},
		"DRAIN_DELAY: must be":                      {"serve", []string{serving, redis, postgres, "DRAIN_DELAY=5s"}},
		"JWT_SECRET: must have .* 32":               {"demo", []string{"JWT_SECRET=short"}},
		"JWT_SECRET_PREVIOUS: must have":            {"demo", []string{serving, "JWT_SECRET_PREVIOUS=short"}},
		"HANDOVER_KEY: must have .* 32":             {"demo", []string{"HANDOVER_KEY=short"}},
		"HANDOVER_KEY_PREVIOUS: must have .* 32":    {"demo", []string{"HANDOVER_KEY_PREVIOUS=short"}},
		"HANDOVER_KEY: .* HANDOVER_KEY_PREVIOUS":    {"serve", []string{serving, redis, postgres, "HANDOVER_KEY_PREVIOUS=" + secret}},
		"HANDOVER_KEY: is required with UCP=on":     {"serve", []string{serving, redis, postgres, "UCP=on", "PUBLIC_URL=https://shop.example"}},
		"HANDOVER_KEY_FILE: .*no such file":         {"serve", []string{serving, redis, postgres, "HANDOVER_KEY_FILE=" + noFile}},
		"PUBLIC_URL: is required with UCP=on":       {"serve", []string{serving, redis, postgres, "UCP=on", "HANDOVER_KEY=" + secret}},
		"UCP: .maybe.":                              {"demo", []string{"UCP=maybe"}},
		"UCP_PROFILES: .all.":                       {"demo", []string{"UCP_PROFILES=all"}},
		"JWT_SECRET_FILE: .*no such file":           {"demo", []string{"JWT_SECRET_FILE=" + noFile}},
		"JWT_SECRET_FILE: not a regular file":       {"demo", []string{"JWT_SECRET_FILE=" + pipe}},
		"JWT_JWKS_URL: the demo signs":              {"demo", []string{"JWT_JWKS_URL=https://issuer.example/keys"}},
		"JWT_JWKS_URL must be an https URL":         {"serve", []string{redis, postgres, "JWT_JWKS_URL=http://issuer.example/keys", "JWT_AUDIENCE=shop"}},
		"JWT_AUDIENCE: is required with":            {"serve", []string{redis, postgres, "JWT_JWKS_URL=https://issuer.example/keys"}},
		"JWT_SECRET and JWT_SECRET_FILE are both":   {"demo", []string{serving, "JWT_SECRET_FILE=" + noFile}},
		"DATABASE_URL and DATABASE_URL_FILE are":    {"serve", []string{serving, redis, postgres, "DATABASE_URL_FILE=" + noFile}},
		"JWT_SECRET_FILE: .*no such":                {"serve", []string{redis, postgres, "JWT_SECRET_FILE=" + noFile}},
		"DATABASE_URL_FILE: .*no such file":         {"serve", []string{redis, serving, "DATABASE_URL_FILE=" + noFile}},
		"ADMIN_ADDR: .*lookup":                      {"demo", []string{"ADMIN_ADDR=no-such-host.invalid:80"}},
		"TRUSTED_PROXIES: .*zone|TRUSTED_PROXIES":   {"demo", []string{"TRUSTED_PROXIES=fe80::1%eth0"}},
		"GUEST_CART_TTL.*soon":                      {"demo", []string{"GUEST_CART_TTL=soon"}},
		"GUEST_CART_TTL: must be":                   {"demo", []string{"GUEST_CART_TTL=0s"}},
		"CUSTOMER_CART_TTL: must be":                {"demo", []string{"CUSTOMER_CART_TTL=-1h"}},
		"MAX_LINES.*many":                           {"demo", []string{"MAX_LINES=many"}},
		"MAX_LINES: must be":                        {"demo", []string{"MAX_LINES=0"}},
		"MAX_LINES: must be .* 500":                 {"demo", []string{"MAX_LINES=501"}},
		"MAX_QUANTITY: must .* 10000":               {"demo", []string{"MAX_QUANTITY=10001"}},
		"REDIS_MIN_REPLICAS: must be":               {"demo", []string{"REDIS_MIN_REPLICAS=-1"}},
		"MAX_QUANTITY: must be":                     {"demo", []string{"MAX_QUANTITY=-1"}},
		"MERGE_STRATEGY: .most.":                    {"demo", []string{"MERGE_STRATEGY=most"}},
		"DEFAULT_STORE.*first":                      {"demo", []string{"DEFAULT_STORE=first"}},
		"DEFAULT_STORE: .*no store 9":               {"demo", []string{"DEFAULT_STORE=9"}},
		"BASE_PATH: .api.":                          {"demo", []string{"BASE_PATH=api"}},
		"BASE_PATH: .//. is":                        {"demo", []string{"BASE_PATH=//"}},
		"BASE_PATH: ./a//. is":                      {"demo", []string{"BASE_PATH=/a//"}},
		"BASE_PATH: ./../x. is":                     {"demo", []string{"BASE_PATH=/../x"}},
		"BASE_PATH: ./é. is":                        {"demo", []string{"BASE_PATH=/é"}},
		"BASE_PATH: ./{x}. is":                      {"demo", []string{"BASE_PATH=/{x}"}},
		"PUBLIC_URL: .shop.exam":                    {"demo", []string{"PUBLIC_URL=shop.example.com"}},
		"PUBLIC_URL: .https://a/.b=1":               {"demo", []string{"PUBLIC_URL=https://a/?b=1"}},
		"PUBLIC_URL: .https://a/[?]. is":            {"demo", []string{"PUBLIC_URL=https://a/?"}},
		"PUBLIC_URL: .https://a/#b. is":             {"demo", []string{"PUBLIC_URL=https://a/#b"}},
		"PUBLIC_URL: .*credentials":                 {"demo", []string{"PUBLIC_URL=https://user:hunter2@a/"}},
		"CORS_ORIGINS: .*credentials":               {"demo", []string{"CORS_ORIGINS=https://user:hunter2@a"}},
		"CORS_ORIGINS: .*wildcard":                  {"demo", []string{"CORS_ORIGINS=https://*.example.com"}},
		"CORS_ORIGINS: .*shop/":                     {"demo", []string{"CORS_ORIGINS=https://a.example.com,https://shop/"}},
		"TRUSTED_PROXIES: .gateway.":                {"demo", []string{"TRUSTED_PROXIES=10.0.0.0/8,gateway"}},
		"RATE_LIMIT: .maybe.":                       {"demo", []string{"RATE_LIMIT=maybe"}},
		"CREATE_LIMIT: .200/d.":                     {"demo", []string{"CREATE_LIMIT=200/d"}},
		"MAX_IN_FLIGHT: must be from":               {"demo", []string{"MAX_IN_FLIGHT=-1"}},
		"OTEL_EXPORTER_OTLP_ENDPOINT: must be":      {"demo", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=user:hunter2@collector:4318"}},
		"OTEL_EXPORTER_OTLP_PROTOCOL: .grpc.":       {"demo", []string{collector, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}},
		"LOG_LEVEL: .loud.":                         {"demo", []string{"LOG_LEVEL=loud"}},
		"LOG_FORMAT: .xml.":                         {"demo", []string{"LOG_FORMAT=xml"}},
		"REDIS_URL: is required":                    {"serve", []string{serving, postgres}},
		"REDIS_URL: .*port":                         {"serve", []string{serving, postgres, "REDIS_URL=redis://user:hunter2@redis:six"}},
		"DATABASE_URL: is required":                 {"serve", []string{serving, redis}},
		"DATABASE_REPLICA_URL: .*port":              {"serve", []string{serving, redis, postgres, "DATABASE_REPLICA_URL=postgres://user:hunter2@a,b:six/db"}},
		"DATABASE_REPLICA_URL_FILE: .*no such file": {"serve", []string{serving, redis, postgres, "DATABASE_REPLICA_URL_FILE=" + noFile}},
		"JWT_SECRET: is required":                   {"serve", []string{redis, postgres}},
		"--store: is required":                      {"token customer --customer 7", []string{serving}},
		"--store: must be":                          {"token customer --store 0 --customer 7", []string{serving}},
		"--customer: is required":                   {"token customer --store 1 --customer=", []string{serving}},
		"--ttl: must be":                            {"token customer --store 1 --customer 7 --ttl=0s", []string{serving}},
		"--ttl: .*soon":                             {"token customer --store 1 --customer 7 --ttl=soon", []string{serving}},
		"JWT_SECRET: is required, or":               {"token customer --store 1 --customer 7", nil},
		"--idle: .soon. .* 7d":                      {"cart abandoned --store 1 --idle soon", []string{redis}},
		"--within: .9999999d. is not":               {"cart abandoned --store 1 --within 9999999d", []string{redis}},
		"--within: must be longer than --idle":      {"cart abandoned --store 1 --idle 7d", []string{redis}},
		"--resume: is not a text":                   {"cart abandoned --store 1 --resume 1", []string{redis}},
	} {
		t.Run(names, func(t *testing.T) {
			t.Parallel()
			got := ended(t, program(t, call.settings, strings.Split(call.command, " ")...))
			assert.That(t, got.status == 2 && got.out == "", "ended with %d, want 2, after printing %q", got.status, got.out)
			assert.That(t, strings.Count(got.errors, "\n") == 1 && !strings.Contains(got.errors, "hunter2") &&
				regexp.MustCompile("^commerce: .*"+names).MatchString(said(got.errors)),
				"said %q, want one line that names %s and no password", got.errors, names)
		})
	}
}

// said returns error lines as text. A log in JSON has them as JSON.
func said(errors string) string {
	var text strings.Builder
	for line := range strings.Lines(errors) {
		var entry struct{ Level, Err string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Level == "ERROR" {
			line = "commerce: " + entry.Err + "\n"
		}
		text.WriteString(line)
	}
	return text.String()
}

func TestServe_EndsInTheFormOfItsLog(t *testing.T) {
	t.Parallel()
	taken := assert.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	works := []string{"JWT_SECRET=" + secret, "REDIS_URL=redis://127.0.0.1:1", "DATABASE_URL=postgres://127.0.0.1:1/x"}
	for _, test := range []struct {
		command  string
		settings []string
		isJSON   bool
	}{
		{"serve", nil, true},
		{"serve", []string{"LOG_FORMAT=text"}, false},
		{"serve", []string{"LOG_FORMAT=xml"}, true},
		{"serve --colour", nil, true},
		{"serve --colour", []string{"LOG_FORMAT=text"}, false},
		{"serve now", nil, true},
		{"serve", append(works, "ADDR="+taken.Addr().String()), true}, // an error after the start
		{"demo", []string{"MAX_LINES=0"}, false},
		{"demo", []string{"MAX_LINES=0", "LOG_FORMAT=json"}, true},
	} {
		got := ended(t, program(t, test.settings, strings.Fields(test.command)...))
		assert.That(t, got.status == 2 && got.errors != "", "%s %v: %+v", test.command, test.settings, got)
		for line := range strings.Lines(got.errors) {
			assert.Equal(t, json.Valid([]byte(line)), test.isJSON, "%s %v: whether %q is JSON", test.command, test.settings, line)
		}
	}
}

func TestToken_PrintsOnlyTheCustomersToken(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	assert.NoError(t, os.WriteFile(file+".1", []byte(secret+"\n"), 0o600))
	assert.NoError(t, os.Symlink(file+".1", file)) // as in Kubernetes
	verifier := assert.Must(auth.NewJWT(auth.JWTConfig{Secret: []byte(secret)}))(t)
	for name, settings := range map[string][]string{
		"secret":                      {"JWT_SECRET=" + secret},
		"secret in a file":            {"JWT_SECRET_FILE=" + file},
		"secret empty, and in a file": {"JWT_SECRET=", "JWT_SECRET_FILE=" + file},
	} {
		got := ended(t, program(t, settings, "token", "customer", "--store", "3", "--customer", "ali@example.com", "--ttl", "5m"))
		assert.Require(t, got.status == 0 && got.errors == "", "%s: ended with %d and %q", name, got.status, got.errors)
		token, whole := strings.CutSuffix(got.out, "\n")
		claims, err := verifier.Verify(t.Context(), token)
		assert.That(t, err == nil && whole && claims.Store == 3 && claims.Customer == "ali@example.com",
			"%s: %q is not a valid token: %+v, %v", name, got.out, claims, err)
	}
}

func TestCommands_ReportEachBadSettingOnALineSortedByName(t *testing.T) {
	t.Parallel()
	bad := []string{
		"JWT_SECRET_PREVIOUS=short", "MAX_LINES=many", "GUEST_CART_TTL=soon", "CUSTOMER_CART_TTL=0s", "BASE_PATH=//", "JWT_SECRET_FILE=/missing",
		"TRUSTED_PROXIES=gateway", "ADMIN_ADDR=", "LOG_LEVEL=loud",
	}
	got := ended(t, program(t, bad, "serve"))
	var names []string
	for line := range strings.Lines(said(got.errors)) {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "commerce: "), ": ")
		names = append(names, name)
	}
	want := []string{
		"ADMIN_ADDR", "BASE_PATH", "CUSTOMER_CART_TTL", "DATABASE_URL", "GUEST_CART_TTL", "JWT_SECRET_FILE", "JWT_SECRET_PREVIOUS",
		"LOG_LEVEL", "MAX_LINES", "REDIS_URL", "TRUSTED_PROXIES",
	}
	assert.Equal(t, names, want, "ended with %d and %q, which names", got.status, got.errors)
	assert.Equal(t, got.status, 2, "status")
}

// After SIGTERM, SIGINT or SIGHUP the demo is not ready and accepts no connections, but still
// responds to a request that it has begun to read. A SIGHUP does not interrupt that: some send it
// after another signal.
func TestDemo_DrainsAfterASignal(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			d := start(t, "demo")
			assert.Equal(t, d.ready(t).Code, http.StatusOK, "readyz answers before")
			answer, body := d.beginAdd(t)
			signaled := time.Now()
			d.signal(t, signal)
			soon(t, http.StatusServiceUnavailable, func() int { return d.ready(t).Code })
			d.signal(t, syscall.SIGHUP)
			soon(t, false, func() bool { return d.accepts(t) })
			fmt.Fprint(body, `_id":1}`)
			response, err := http.ReadResponse(bufio.NewReader(answer), nil)
			assert.Require(t, err == nil, "the request in flight: %v", err)
			response.Body.Close()
			assert.Equal(t, response.StatusCode, http.StatusOK, "the request in flight")
			assert.Succeeds(t, d.cmd.Wait(), "ended after\n%s", d.log)
			assert.That(t, time.Since(signaled) <= ephemeral.Patience(10*time.Second), "took %v to end", time.Since(signaled))
		})
	}
}

// The demo gives everyone who can connect tokens that a secret of its operator signs.
func TestDemo_ListensOnLoopbackOnlyWithASecretOfItsOwner(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	assert.NoError(t, os.WriteFile(file, []byte(secret), 0o600))
	const guarded = "127.0.0.1:8080"
	if taken, err := net.Listen("tcp", guarded); err == nil { // otherwise another process has it
		t.Cleanup(func() { taken.Close() })
	}
	for name, c := range map[string]struct {
		args, settings []string
		addr           string
	}{
		"no secret":            {nil, nil, ":8080"},
		"an empty secret":      {nil, []string{"JWT_SECRET="}, ":8080"},
		"a variable":           {nil, []string{"JWT_SECRET=" + secret}, guarded},
		"a flag":               {[]string{"--jwt-secret=" + secret}, nil, guarded},
		"a file":               {nil, []string{"JWT_SECRET_FILE=" + file}, guarded},
		"with an address":      {nil, []string{"JWT_SECRET=" + secret, "ADDR=:8080"}, ":8080"},
		"with an address flag": {[]string{"--addr=:8080"}, []string{"JWT_SECRET=" + secret}, ":8080"},
	} {
		demo := program(t, c.settings, append([]string{"demo"}, c.args...)...)
		demo.Env = slices.DeleteFunc(demo.Env, func(setting string) bool { return setting == "ADDR=127.0.0.1:0" })
		got := ended(t, demo)
		lines := strings.SplitAfter(got.errors, "\n")
		want := "commerce: ADDR: " + c.addr + " is in use by another process: set ADDR to another address\n"
		assert.That(t, got.status == 2 && lines[len(lines)-2] == want, "%s: %+v, want %q", name, got, want)
		says := strings.Contains(lines[0], "only this machine can connect, because")
		assert.That(t, says == (c.addr == guarded) && len(lines) <= 3, "%s: says %q", name, got.errors)
	}
}

// A process under nohup ignores the end of its terminal.
func TestDemo_RunsOnUnderNohup(t *testing.T) {
	t.Parallel()
	d := start(t, "demo", asProgram+"=nohup")
	d.signal(t, syscall.SIGHUP)
	time.Sleep(time.Second)
	assert.Equal(t, d.ready(t).Code, http.StatusOK, "readyz answers after SIGHUP")
}

func (r *running) accepts(t *testing.T) bool {
	conn, err := net.Dial("tcp", hostOf(t, r.URL))
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// beginAdd sends the first half of an add request. It returns once the server has begun
// to read the body. The caller writes the rest of the body to body.
func (r *running) beginAdd(t *testing.T) (answer io.Reader, body io.Writer) {
	t.Helper()
	conn := assert.Must(net.Dial("tcp", hostOf(t, r.URL)))(t)
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST /cart/add HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 16\r\nExpect: 100-continue\r\n\r\n", hostOf(t, r.URL))
	reader := bufio.NewReader(conn)
	line, err := reader.ReadString('\n')
	assert.Require(t, err == nil && strings.Contains(line, " 100 "), "the server does not request the body: %q, %v", line, err)
	assert.Must(reader.ReadString('\n'))(t)
	fmt.Fprint(conn, `{"product`)
	return reader, conn
}

func TestCartShow_PrintsWhatAShopperWroteOnOneLine(t *testing.T) {
	t.Parallel()
	redisURL := ephemeral.Redis(t)
	serve := startServe(t, seeded(t), "REDIS_URL="+redisURL)
	token := serve.mustCall(t, "", "POST", "/cart/add", `{"product_id":1,"notice":"هدية\nNothing is stored."}`).Data.CartToken
	shown := ended(t, program(t, []string{"REDIS_URL=" + redisURL}, "cart", "show", "--store", "1", "--token", token))
	assert.That(t, shown.status == 0 && strings.Contains(shown.out, `notice: هدية\nNothing is stored.`+"\n"),
		"shows %q, %q", shown.out, shown.errors)
	for text, want := range map[string]string{
		"plain":               "plain",
		`say "hi"`:            `say "hi"`,
		"\x1b[2J\r\n\t":       `\x1b[2J\r\n\t`,
		"\u202Ereversed":      `\u202ereversed`,
		"line\u2028break":     `line\u2028break`,
		"not \xff UTF-8":      `not \xff UTF-8`,
		`a \n that was typed`: `a \\n that was typed`,
	} {
		assert.Equal(t, onOneLine(text), want, "%q is shown as", text)
	}
}

func TestCartShow_TakesATokenThatBeginsWithAHyphen(t *testing.T) {
	t.Parallel()
	shown := ended(t, program(t, []string{"REDIS_URL=" + ephemeral.Redis(t)}, "cart", "show", "--store", "1", "--token", "-OpRw04sg0pgZkBmWsSK-g"))
	assert.That(t, shown.status == 0 && strings.Contains(shown.out, "othing is stored"),
		"status %d, shows %q, %q", shown.status, shown.out, shown.errors)
}
