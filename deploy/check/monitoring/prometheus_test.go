package monitoring

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"commerce/deploy/assert"
)

// prometheus is a Prometheus server, of Debian's package, that scrapes instances and evaluates
// the project's rules with shorter durations.
type prometheus struct{ url, log string }

// How much faster the rules are, and how often they are evaluated. The shortest range, 5
// minutes, becomes 3 seconds, and holds six scrapes.
const (
	speed    = 100
	interval = "500ms"
)

func startPrometheus(t testing.TB, targets []string) *prometheus {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	assert.Require(t, err == nil, "prometheus is not installed (sh deploy/ephemeral/install.sh)")
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: %[1]s, scrape_timeout: %[1]s, evaluation_interval: %[1]s}\n"+
		"rule_files: [rules.yml]\nscrape_configs: [{job_name: commerce, static_configs: [{targets: [%[2]s]}]}]\n",
		interval, "'"+strings.Join(targets, "', '")+"'")
	rules := faster(string(assert.Must(os.ReadFile(rulesFile))(t)), speed)
	// The servers of the tests are fast because they do not wait for the disk.
	rules = strings.Replace(rules, `"redis_answers|`, `"postgres_fsync|redis_persistence|redis_answers|`, 1)
	for name, text := range map[string]string{
		"rules.yml":      rules,
		"prometheus.yml": config,
	} {
		assert.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	log := assert.Must(os.Create(filepath.Join(dir, "log")))(t)
	p := &prometheus{url: "http://" + freeAddress(t), log: log.Name()}
	defer log.Close()
	cmd := exec.Command(program,
		"--config.file", filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path", filepath.Join(dir, "data"),
		"--web.listen-address", strings.TrimPrefix(p.url, "http://"), "--log.level", "warn")
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	assert.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it has been killed
	})
	wait(t, "Prometheus is ready", func() string {
		response, err := http.Get(p.url + "/-/ready")
		if err == nil {
			response.Body.Close()
		}
		if err != nil || response.StatusCode != http.StatusOK {
			return fmt.Sprint(err, "\n", p.says())
		}
		return ""
	})
	return p
}

// says returns what Prometheus has logged.
func (p *prometheus) says() string {
	text, _ := os.ReadFile(p.log)
	return string(text)
}

func freeAddress(t testing.TB) string {
	t.Helper()
	listener := assert.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	return listener.Addr().String()
}

func (p *prometheus) get(t testing.TB, path string, data any) {
	t.Helper()
	response, err := http.Get(p.url + path)
	assert.Require(t, err == nil, "%v\n%s", err, p.says())
	defer response.Body.Close()
	answer := struct {
		Status string
		Data   any
	}{Data: data}
	err = json.NewDecoder(response.Body).Decode(&answer)
	assert.Require(t, err == nil && answer.Status == "success", "%s: %s, %v", path, answer.Status, err)
}

// slow is the beginning of the names of the alerts that a busy machine causes, with calls that take 100 ms.
const slow = "CommerceCartsSlow"

// alerts returns the names of the alerts in a state, "firing" or "pending", sorted.
func (p *prometheus) alerts(t testing.TB, state string) []string {
	t.Helper()
	var data struct {
		Alerts []struct {
			State  string
			Labels map[string]string
		}
	}
	p.get(t, "/api/v1/alerts", &data)
	names := []string{}
	for _, alert := range data.Alerts {
		if alert.State == state {
			names = append(names, alert.Labels["alertname"])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// unevaluated returns the names of the rules that have not been evaluated without an error.
func (p *prometheus) unevaluated(t testing.TB) (names []string) {
	t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	p.get(t, "/api/v1/rules", &data)
	if len(data.Groups) == 0 {
		return []string{"no rules"}
	}
	for _, group := range data.Groups {
		for _, rule := range group.Rules {
			if rule.Health != "ok" {
				names = append(names, strings.TrimSpace(rule.Name+" "+rule.LastError))
			}
		}
	}
	return names
}

// values returns how many values, other than NaN, a query returns now.
func (p *prometheus) values(t testing.TB, query string) (n int) {
	t.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	p.get(t, "/api/v1/query?query="+url.QueryEscape(query), &data)
	for _, series := range data.Result {
		if series.Value[1] != "NaN" {
			n++
		}
	}
	return n
}

// wantQuiet waits until no alert has fired for longer than any alert waits before it fires, and
// none is pending, except for those of slow calls.
func (p *prometheus) wantQuiet(t testing.TB) {
	t.Helper()
	var longest time.Duration
	for _, r := range readRules(t) {
		longest = max(longest, r.For/speed)
	}
	since := time.Now()
	wait(t, "all rules are evaluated, and no alert fires", func() string {
		isSlow := func(name string) bool { return strings.HasPrefix(name, slow) }
		unevaluated := p.unevaluated(t)
		firing, pending := slices.DeleteFunc(p.alerts(t, "firing"), isSlow), slices.DeleteFunc(p.alerts(t, "pending"), isSlow)
		if len(unevaluated)+len(firing) > 0 {
			since = time.Now()
		}
		if time.Since(since) > longest+2*time.Second && len(pending) == 0 {
			return ""
		}
		return fmt.Sprintf("not evaluated: %q; firing: %q; pending: %q", unevaluated, firing, pending)
	})
}

func (p *prometheus) wantFiring(t testing.TB, names []string) {
	t.Helper()
	began, missing := time.Now(), slices.Clone(names)
	wait(t, "the alerts fire", func() string {
		firing := p.alerts(t, "firing")
		for _, name := range firing {
			if at := slices.Index(missing, name); at >= 0 {
				t.Logf("%s fires after %s", name, time.Since(began).Round(100*time.Millisecond))
				missing = slices.Delete(missing, at, at+1)
			}
		}
		if len(missing) == 0 {
			return ""
		}
		return fmt.Sprintf("missing: %q; firing: %q", missing, firing)
	})
}

func (p *prometheus) wantEnded(t testing.TB, name string) {
	t.Helper()
	wait(t, name+" ends", func() string {
		if firing := p.alerts(t, "firing"); slices.Contains(firing, name) {
			return fmt.Sprint(firing)
		}
		return ""
	})
}
