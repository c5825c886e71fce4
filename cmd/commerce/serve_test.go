package main

import (
	"bufio"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"commerce/deploy/ephemeral"
)

// running is a `commerce serve` and the addresses of both its sides.
type running struct {
	instance
	admin string
	cmd   *exec.Cmd
}

func startServe(t *testing.T, databaseURL string, settings ...string) *running {
	t.Helper()
	settings = append(settings, "DATABASE_URL="+databaseURL, "REDIS_URL="+ephemeral.Redis(t), "JWT_SECRET="+secret)
	r := &running{cmd: program(t, settings, "serve")}
	log, err := r.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if r.cmd.ProcessState == nil { // the test did not get that far
			_ = r.cmd.Process.Kill()
			_ = r.cmd.Wait()
		}
	})
	logged := bufio.NewScanner(log)
	for r.URL == "" {
		if !logged.Scan() {
			t.Fatal("serve does not say where it listens")
		}
		var line struct{ Msg, Addr, Admin string }
		if err := json.Unmarshal(logged.Bytes(), &line); err != nil {
			t.Fatalf("serve says %s", logged.Bytes())
		}
		if line.Msg == "serving" {
			r.URL, r.admin = "http://"+line.Addr, "http://"+line.Admin
		}
	}
	go io.Copy(io.Discard, log)
	return r
}

func TestServe_BehavesAsTheDemoDoes(t *testing.T) {
	t.Parallel()
	demo := instance{"http://" + startDemo(t).public}
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
		wanted, err := demo.call(demoToken, step.method, step.path, step.body)
		if err != nil {
			t.Fatal(err)
		}
		got, err := serve.call(serveToken, step.method, step.path, step.body)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(constant(t, wanted), constant(t, got)); diff != "" || got.Status != wanted.Status {
			t.Errorf("%s %s %s: serve answers %d, the demo %d (-demo +serve):\n%s", step.method, step.path, step.body, got.Status, wanted.Status, diff)
		}
		if demoToken == "" {
			demoToken, serveToken = wanted.Data.CartToken, got.Data.CartToken
		}
	}
}

// constant is an answer's body without what differs from one to the next.
func constant(t *testing.T, a answer) map[string]any {
	t.Helper()
	var body map[string]any
	if err := json.Unmarshal([]byte(a.Body), &body); err != nil {
		t.Fatal(err)
	}
	differs := func(name string, _ any) bool {
		return name == "cart_token" || name == "timestamp" || name == "expires_at" || name == "request_id"
	}
	maps.DeleteFunc(body, differs)
	if data, ok := body["data"].(map[string]any); ok {
		maps.DeleteFunc(data, differs)
	}
	return body
}

func TestServe_StaysReadyWithoutPostgresAndEndsWhenTold(t *testing.T) {
	t.Parallel()
	postgres := ephemeral.StartPostgres(t)
	onDatabase(t, postgres.URL, "migrate", "up")
	onDatabase(t, postgres.URL, "seed")
	serve := startServe(t, postgres.URL)
	token := serve.mustCall(t, "", "POST", "/cart/add", `{"product_id":1}`).Data.CartToken
	for _, step := range []struct {
		change func()
		says   string
	}{{func() {}, `"postgres":"ok"`}, {postgres.Kill, `"postgres":"failing"`}, {postgres.Restart, `"postgres":"ok"`}} {
		step.change()
		response, err := http.Get(serve.admin + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(body), step.says) {
			t.Errorf("readyz: %d %s, %v, want 200 and %s", response.StatusCode, body, err, step.says)
		}
		serve.mustCall(t, token, "POST", "/cart/add", `{"product_id":1}`)
	}
	if err := serve.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(15*time.Second, func() { _ = serve.cmd.Process.Kill() })
	defer late.Stop()
	if err := serve.cmd.Wait(); err != nil {
		t.Errorf("serve ended with %v", err)
	}
}
