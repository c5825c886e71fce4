package clients_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// latest is the release of the published client's profiles.
const latest = "2026-08-25"

type ucpCart struct {
	UCP       struct{ Version string }
	ID        string
	LineItems []ucpLine `json:"line_items"`
	Messages  []struct{ Code string }
	URL       string `json:"continue_url"`
}

type ucpLine struct {
	ID       string `json:"id,omitempty"`
	Item     ucpID  `json:"item"`
	Quantity int    `json:"quantity"`
}

type ucpID struct {
	ID string `json:"id"`
}

func (c ucpCart) quantities() (all []int) {
	for _, line := range c.LineItems {
		all = append(all, line.Quantity)
	}
	return all
}

// The published command-line client finds the demo and fills a cart, in the release that it has by default and in the older one.
// It names a profile that the test serves, or, where the service trusts profiles, one that nobody can read here.
func TestAgent_OfThePublishedCLIShops(t *testing.T) {
	t.Parallel()
	cli, _ := npm(t, "ucp")
	var reads atomic.Int64
	profile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads.Add(1)
		text, err := os.ReadFile("../../docs/playground/agent.json")
		if err == nil {
			_, err = w.Write(bytes.ReplaceAll(text, []byte(latest), []byte(strings.TrimPrefix(r.URL.Path, "/"))))
		}
		if err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(profile.Close)
	for name, tc := range map[string]struct {
		profile, setting, release string
		options                   []string
		reads                     int64
	}{
		"a profile on this machine": {profile.URL + "/" + latest, "UCP_PROFILES=fetch", latest, nil, 1},
		"of the older release":      {profile.URL + "/2026-04-08", "UCP_PROFILES=fetch", "2026-04-08", []string{"--version", "2026-04-08"}, 1},
		"a profile that is trusted": {"https://agent.invalid/profile.json", "UCP_PROFILES=trust", latest, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			before := reads.Load()
			a := agent{t, cli, t.TempDir(), startDemo(t, tc.setting)}
			a.ucp(nil, append([]string{"profile", "init", "--name", "tests", "--profile-url", tc.profile}, tc.options...)...)
			a.ucp(nil, "profile", "use", "tests")
			a.ucp(nil, "use", a.shop)
			var found struct {
				Negotiated map[string]struct{ Tools map[string]any }
			}
			a.ucp(&found, "discover", "--business", a.shop)
			for _, tool := range []string{"create_cart", "get_cart", "update_cart", "cancel_cart"} {
				if found.Negotiated["dev.ucp.shopping"].Tools[tool] == nil {
					t.Errorf("the client does not find %s in %+v", tool, found)
				}
			}

			made := a.cart("create", `{"line_items":[{"item":{"id":"1"},"quantity":2}]}`)
			if made.UCP.Version != tc.release {
				t.Errorf("the response is of release %q", made.UCP.Version)
			}
			read := a.cart("get", "", made.ID)
			if made.ID == "" || made.URL == "" || !slices.Equal(read.quantities(), []int{2}) {
				t.Fatalf("created %+v, read %+v", made, read)
			}
			read.LineItems[0].Quantity = 5
			lines, err := json.Marshal(map[string]any{"line_items": append(read.LineItems, ucpLine{Item: ucpID{"4.p41"}, Quantity: 1})})
			noError(t, err)
			if changed := a.cart("update", string(lines), made.ID); !slices.Equal(changed.quantities(), []int{5, 1}) {
				t.Errorf("updated with %s: %+v", lines, changed)
			}
			canceled, gone := a.cart("cancel", "", made.ID), a.cart("get", "", made.ID)
			if len(canceled.LineItems) != 2 || len(gone.Messages) != 1 || gone.Messages[0].Code != "not_found" {
				t.Errorf("canceled %+v, then read %+v", canceled, gone)
			}
			if n := reads.Load() - before; n != tc.reads {
				t.Errorf("the service has read the profile %d times, want %d", n, tc.reads)
			}
		})
	}
}

// The official SDK for Go negotiates, lists and calls the tools. A refusal ends no session.
func TestAgent_OfTheGoSDKCallsTools(t *testing.T) {
	t.Parallel()
	shop := startDemo(t, "UCP_PROFILES=trust")
	client := mcp.NewClient(&mcp.Implementation{Name: "tests", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: shop + "/ucp/pk_demo/mcp"}, nil)
	noError(t, err)
	t.Cleanup(func() { noError(t, session.Close()) })
	tools, err := session.ListTools(t.Context(), nil)
	noError(t, err)
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	if want := []string{"cancel_cart", "create_cart", "get_cart", "update_cart"}; !slices.Equal(names, want) {
		t.Errorf("tools %v, want %v", names, want)
	}

	call := func(tool string, arguments map[string]any) (c ucpCart, err error) {
		arguments["meta"] = map[string]any{"ucp-agent": ucpProfile{"https://agent.invalid/profile.json"}}
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err == nil {
			var text []byte
			text, err = json.Marshal(result.StructuredContent)
			noError(t, err)
			err = json.Unmarshal(text, &c)
		}
		return c, err
	}
	lines := map[string]any{"line_items": []ucpLine{{Item: ucpID{"2"}, Quantity: 3}}}
	made, err := call("create_cart", map[string]any{"cart": lines})
	if err != nil || !slices.Equal(made.quantities(), []int{3}) {
		t.Fatalf("created %+v: %v", made, err)
	}
	if _, err := call("steal_cart", map[string]any{}); err == nil {
		t.Error("a tool that does not exist was called")
	}
	if read, err := call("get_cart", map[string]any{"id": made.ID}); err != nil || !slices.Equal(read.quantities(), []int{3}) {
		t.Errorf("read %+v: %v", read, err)
	}
	noError(t, session.Ping(t.Context(), nil))
}

// The official SDK for TypeScript does the same.
func TestAgent_OfTheTypeScriptSDKCallsTools(t *testing.T) {
	t.Parallel()
	shop := startDemo(t, "UCP_PROFILES=trust")
	_, dir := npm(t, "")
	copied(t, "mcp.mjs", filepath.Join(dir, "mcp.mjs"))
	run(t, dir, "node", "mcp.mjs", shop+"/ucp/pk_demo/mcp", "https://agent.invalid/profile.json")
}

// The command line of the MCP Inspector reads the list of tools, and calls one. It runs as its manual says, because its 120
// packages are not worth being pinned here.
func TestAgent_OfTheMCPInspectorCallsTools(t *testing.T) {
	t.Parallel()
	shop := startDemo(t, "UCP_PROFILES=trust")
	inspect := func(into any, args ...string) {
		t.Helper()
		inspector := []string{"exec", "--yes", "--ignore-scripts", "--prefer-offline", "--package=@modelcontextprotocol/inspector@2.12.0", "--", "mcp-inspector", "--cli"}
		command := exec.CommandContext(t.Context(), "npm", slices.Concat(inspector, []string{shop + "/ucp/pk_demo/mcp"}, args)...)
		command.Dir = t.TempDir()
		said, err := command.Output()
		if err == nil {
			err = json.Unmarshal(said, into)
		}
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, said)
		}
	}
	var listed struct{ Tools []struct{ Name string } }
	inspect(&listed, "--method", "tools/list")
	if len(listed.Tools) != 4 || listed.Tools[0].Name != "create_cart" {
		t.Errorf("lists %+v", listed)
	}
	var made struct{ StructuredContent ucpCart }
	inspect(&made, "--method", "tools/call", "--tool-name", "create_cart",
		"--tool-arg", `meta={"ucp-agent":{"profile":"https://agent.invalid/profile.json"}}`, "--tool-arg", `cart={"line_items":[{"item":{"id":"1"},"quantity":2}]}`)
	if c := made.StructuredContent; c.UCP.Version != latest || !slices.Equal(c.quantities(), []int{2}) {
		t.Errorf("created %+v", c)
	}
}

type ucpProfile struct {
	Profile string `json:"profile"`
}

// agent is the command-line client, with a home of its own.
type agent struct {
	t                  *testing.T
	program, dir, shop string
}

// ucp runs a command, decodes the result that it prints, unless into is nil, and returns the release of the response.
func (a agent) ucp(into any, args ...string) (release string) {
	a.t.Helper()
	command := exec.CommandContext(a.t.Context(), a.program, args...)
	command.Env = append(os.Environ(), "UCP_HOME="+a.dir, "UCP_TEST_ALLOW_INSECURE_LOCALHOST=true", "UCP_STRICT_SCHEMA=1")
	said, err := command.Output()
	if err != nil {
		a.t.Fatalf("ucp %q: %v\n%s", args, err, said)
	}
	printed := struct {
		UCP    struct{ Version string }
		Result any
	}{Result: into}
	if into != nil {
		noError(a.t, json.Unmarshal(said, &printed))
	}
	return printed.UCP.Version
}

// cart runs a command about a cart. input is its JSON, "" for none.
func (a agent) cart(command, input string, ids ...string) (c ucpCart) {
	a.t.Helper()
	args := append([]string{"cart", command, "--business", a.shop}, ids...)
	if input != "" {
		args = append(args, "--input", input)
	}
	c.UCP.Version = a.ucp(&c, args...)
	return c
}

// demo is the program, which the first test that needs it builds.
var demo struct {
	build sync.Once
	dir   string
}

// startDemo starts the demo with a setting, and returns its URL.
func startDemo(t *testing.T, setting string) (url string) {
	t.Helper()
	demo.build.Do(func() {
		var err error
		demo.dir, err = os.MkdirTemp("", "commerce-demo-")
		noError(t, err)
		run(t, "../..", "go", "build", "-tags=nomsgpack", "-o", filepath.Join(demo.dir, "commerce"), "./cmd/commerce")
	})
	program := exec.Command(filepath.Join(demo.dir, "commerce"), "demo")
	program.Env = append(os.Environ(), "ADDR=127.0.0.1:0", "ADMIN_ADDR=127.0.0.1:0", setting)
	program.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var problems bytes.Buffer
	program.Stderr = &problems
	out, err := program.StdoutPipe()
	noError(t, err)
	noError(t, program.Start())
	t.Cleanup(func() {
		_ = program.Process.Signal(os.Interrupt)
		late := time.AfterFunc(15*time.Second, func() { _ = program.Process.Kill() })
		defer late.Stop()
		if err := program.Wait(); err != nil {
			t.Errorf("the demo: %v\n%s", err, problems.Bytes())
		}
	})
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); said.WriteString(lines.Text() + "\n") {
		if found := regexp.MustCompile(`^Open (http://localhost:\d+)$`).FindStringSubmatch(lines.Text()); found != nil {
			return found[1]
		}
	}
	t.Fatalf("the demo does not print its URL:\n%s%s", said.String(), problems.Bytes())
	return ""
}
