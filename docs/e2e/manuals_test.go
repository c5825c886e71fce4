package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// manuals are pages for operators. Their examples run one after the other next to a service
// with a Redis and a Postgres server of its own.
var manuals = []string{"docs/deploy.md", "docs/operations.md", "docs/privacy.md", "docs/runbook.md"}

// missingMember is what jq prints, also before uniq, for a member that a line does not have.
var missingMember = regexp.MustCompile(`(?m)\bnull\b|^ *\d+ *\t|\t$|^ *\d+ *$`)

// What the manuals show is compared with what their commands print. A command that searches the
// log must find something, because the log has what the alerts are about.
func TestManuals_PrintWhatTheyShow(t *testing.T) {
	slow(t)
	m := newMachine(t)
	for _, page := range manuals {
		examples := examplesOf(t, page)
		m.hasLinesFor(t, page, examples)
		printed := m.terminal(t).outputs(t, examples)
		for i, e := range examples {
			switch {
			case e.elsewhere():
			case e.prints != "":
				assert.Equal(t, asTable(printed[i]), asTable(e.prints), "%s: %sprinted, compared with the page", page, e.script)
			case strings.HasPrefix(e.script, "jq ") && (printed[i] == "" || missingMember.MatchString(printed[i])):
				t.Errorf("%s: %sfinds nothing in the log, or members that it does not have:\n%s", page, e.script, printed[i])
			}
		}
	}
}

// hasLinesFor checks that the log has the lines for which examples search it with grep.
func (m *machine) hasLinesFor(t *testing.T, page string, examples []example) {
	t.Helper()
	log := m.log(t)
	for _, e := range examples {
		if e.elsewhere() { // another test has the lines
			continue
		}
		for _, search := range regexp.MustCompile(`grep '([^']+)' commerce\.log`).FindAllStringSubmatch(e.script, -1) {
			assert.That(t, strings.Contains(log, search[1]), "%s: the log has no line with %s", page, search[1])
		}
	}
}

// machine is a folder with the repository's deploy and the program, and a service that runs with
// servers of its own. Its log is the file commerce.log.
type machine struct {
	dir             string
	redis, postgres *ephemeral.Server
	service         *service
	admin           string   // base URL of the service's other port
	users           []string // of Redis: the URLs of the pages, each followed by the one to use
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	ports := ephemeral.FreePorts(t, 3)
	m := &machine{
		dir: t.TempDir(), redis: ephemeral.StartRedis(t), postgres: ephemeral.StartPostgres(t),
		service: &service{url: fmt.Sprintf("http://localhost:%d", ports[0]), key: "pk_demo", log: &assert.Log{}},
		admin:   fmt.Sprintf("http://localhost:%d", ports[1]),
	}
	deploy := assert.Must(filepath.Abs(filepath.Join(repository, "deploy")))(t)
	for _, dir := range []string{"bin", "etc/redis", "etc/systemd/system", "usr/local/bin", "var/lib"} {
		assert.NoError(t, os.MkdirAll(filepath.Join(m.dir, dir), 0o755))
	}
	for link, to := range map[string]string{"deploy": deploy, "bin/commerce": buildProgram(t)} {
		assert.NoError(t, os.Symlink(to, filepath.Join(m.dir, link)))
	}
	m.terminal(t).run(t, "export DATABASE_URL=postgres://localhost/commerce; commerce migrate up; commerce seed")
	m.service.api = strings.TrimSpace(m.terminal(t).run(t, "DATABASE_URL=postgres://localhost/commerce commerce token store --store 1 --name test"))

	log := assert.Must(os.Create(filepath.Join(m.dir, "commerce.log")))(t)
	defer log.Close()
	m.service.run(t, log, log, "serve", []string{
		fmt.Sprintf("ADDR=127.0.0.1:%d", ports[0]), fmt.Sprintf("ADMIN_ADDR=127.0.0.1:%d", ports[1]),
		"REDIS_URL=" + m.redis.URL, "DATABASE_URL=" + m.postgres.URL,
		fmt.Sprintf("DATABASE_REPLICA_URL=postgres://127.0.0.1:%d/postgres", ports[2]), // does not answer
	})
	ephemeral.Eventually(t, "a port that is open", func() bool {
		response, err := http.Get(m.admin)
		return err == nil && response.Body.Close() == nil
	})
	m.haveTroubles(t) // after which Redis has no users
	for _, name := range []string{"check", "support"} {
		login := ephemeral.AsUser(t, m.redis.URL, redisUsers(t), name)
		m.users = append(m.users, "redis://"+name+":password@localhost:6379", strings.Replace(login, "127.0.0.1", "localhost", 1))
	}
	return m
}

// haveTroubles makes the service log what the alerts of the runbook are about.
func (m *machine) haveTroubles(t *testing.T) {
	t.Helper()
	const list = "/subscriptions"
	m.until(t, http.StatusOK, "/cart")
	m.until(t, http.StatusOK, list)
	m.until(t, http.StatusTooManyRequests, "/cart/coupon")

	m.terminal(t).run(t, `psql postgres://localhost/commerce -c 'ALTER TABLE subscriptions RENAME duration TO renamed'`)
	m.until(t, http.StatusInternalServerError, list)
	m.terminal(t).run(t, `psql postgres://localhost/commerce -c 'ALTER TABLE subscriptions RENAME renamed TO duration'`)

	m.postgres.Stop()
	m.until(t, http.StatusServiceUnavailable, list)
	m.logs(t, `"lost postgres"`)
	m.postgres.Restart()
	m.redis.Stop()
	m.until(t, http.StatusServiceUnavailable, "/cart")
	m.logs(t, `"lost redis"`)
	m.redis.Restart()
	m.logs(t, `"a replica serves no reads`)
	m.until(t, http.StatusOK, list)
	m.until(t, http.StatusOK, "/cart")
}

// until repeats a request until it gets the status. A path of coupons gets wrong codes, each once, since a repeated
// one does not count.
func (m *machine) until(t *testing.T, status int, path string) {
	t.Helper()
	codes := 0
	c := m.service.shopper(t, "a-token-of-the-runbook-test")
	if path == "/subscriptions" {
		c.jwt = m.service.api
	}
	m.eventually(t, fmt.Sprintf("%s with status %d", path, status), func() bool {
		if !strings.HasSuffix(path, "/coupon") {
			return c.send("GET", path, "").Status == status
		}
		codes++
		return c.send("POST", path, fmt.Sprintf(`{"coupon":"wrong-%d"}`, codes)).Status == status
	})
}

func (m *machine) logs(t *testing.T, text string) {
	t.Helper()
	m.eventually(t, "the log line "+text, func() bool { return strings.Contains(m.log(t), text) })
}

func (m *machine) log(t *testing.T) string {
	t.Helper()
	return string(assert.Must(os.ReadFile(filepath.Join(m.dir, "commerce.log")))(t))
}

func (m *machine) eventually(t *testing.T, what string, happens func() bool) {
	t.Helper()
	for began := time.Now(); !happens(); time.Sleep(20 * time.Millisecond) {
		if log := m.log(t); time.Since(began) > ephemeral.Patience(time.Minute) {
			t.Fatalf("not yet: %s\n%s", what, log[max(0, len(log)-4000):])
		}
	}
}

// terminal is one where addresses and folders of the pages are those of this test.
func (m *machine) terminal(t *testing.T) terminal {
	t.Helper()
	where := assert.Must(url.Parse(m.postgres.URL))(t)
	login := func(user string) string {
		return fmt.Sprintf("postgres://%s@localhost:%s%s?sslmode=disable", user, where.Port(), where.Path)
	}
	owner, service := login("postgres"), login("commerce_service")
	return terminal{
		dir: m.dir, url: m.service.url, typed: "a new password\na new password\n",
		env: []string{
			"PATH=" + strings.Join([]string{m.dir + "/usr/local/bin", m.dir + "/bin", os.Getenv("PATH")}, ":"),
			"EDITOR=" + m.editor(t, owner, service),
		},
		replace: strings.NewReplacer(append(m.users,
			"http://localhost:9090", m.admin,
			"redis://localhost:6379", strings.Replace(m.redis.URL, "127.0.0.1", "localhost", 1),
			"postgres://commerce_service@localhost/commerce", service,
			"postgres://localhost/commerce", owner,
			"PGHOST=localhost PGDATABASE=commerce PGUSER=commerce_owner", "PGHOST=localhost PGPORT="+where.Port()+" PGDATABASE=postgres PGUSER=postgres",
			"/etc/", m.dir+"/etc/", "/usr/local/bin/", m.dir+"/usr/local/bin/", "/var/lib/", m.dir+"/var/lib/",
			"-o redis -g redis", "", // only root may choose an owner
			"CGO_ENABLED=0 make build VERSION=1.0.0\n", "", // the program is built already
			// Its status is 1, because something is serious: the server does not sync to its disk.
			"commerce check\n", "commerce check || [ $? = 1 ]\n", "commerce check ", "commerce check || [ $? = 1 ] ",
		)...),
	}
}

// editor returns a program that writes the URLs into the files with secrets, as a reader does.
func (m *machine) editor(t *testing.T, owner, service string) string {
	t.Helper()
	script := filepath.Join(m.dir, "editor")
	text := fmt.Sprintf(`#!/bin/sh
case $1 in
*/DATABASE_REPLICA_URL) ;;
*/REDIS_URL) echo '%s' >"$1" ;;
*/owner/DATABASE_URL | */OWNER_DATABASE_URL) echo '%s' >"$1" ;;
*/DATABASE_URL) echo '%s' >"$1" ;;
*) exit 1 ;;
esac
`, m.redis.URL, owner, service)
	assert.NoError(t, os.WriteFile(script, []byte(text), 0o700))
	return script
}

// asTable returns what a command printed without what depends on the length of addresses.
func asTable(printed string) string {
	for _, form := range [][2]string{{`localhost:\d+`, "localhost:N"}, {`\n {20,}`, " "}, {` +`, " "}} {
		printed = regexp.MustCompile(form[0]).ReplaceAllString(printed, form[1])
	}
	return likeThis(printed)
}
