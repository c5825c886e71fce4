package torture

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

const rotating = "## Rotating secrets"

// Customers and a merchant's program use two instances through haproxy while all secrets are
// replaced, as docs/runbook.md says. Not parallel, as TestPromise10_AReplacementDropsNobody.
func TestRotation_OfAllSecretsRefusesNobody(t *testing.T) {
	ephemeral.Slow(t)
	redis, owner := ephemeral.StartRedis(t), startPostgres(t).URL
	execSQL(t, owner, readFile(t, "../../../deploy/postgres/roles.sql"))
	command(t, []string{"DATABASE_URL=" + owner, "SERVICE_ROLE=commerce_service"}, "migrate", "up")
	s := &secrets{t: t, dir: t.TempDir()}
	oldRedis := ephemeral.AsUser(t, redis.URL, readFile(t, "../../../deploy/redis/users.conf"), "commerce")
	oldSecret, newSecret, newPassword := strings.Repeat("o", 32), strings.Repeat("n", 32), "the new password"
	s.write("JWT_SECRET", oldSecret)
	s.write("REDIS_URL", oldRedis)
	s.write("DATABASE_URL", loginAs(t, owner, "commerce_service", ""))
	instances := []*service{startService(t, s.settings()...), startService(t, s.settings()...)}
	proxy := startHAProxy(t, instances[0], instances[1])
	arrive := func(secret, token string) (leave func()) {
		c := &crowd{p: &promise{t: t}, url: proxy, secret: secret}
		stop, stopReading := c.arrive(t, 2, token), c.readPages(apiToken(t, owner, token))
		return sync.OnceFunc(func() { stop(); stopReading() })
	}
	leave := arrive(oldSecret, "first")
	defer leave()

	// The new secrets are accepted before anyone uses them.
	old := assert.Must(url.Parse(oldRedis))(t)
	oldPassword, _ := old.User.Password()
	follow(t, t.TempDir(), redisCLI+strings.Replace(inline(t, rotating, ">new"), ">new", ">"+newPassword, 1), "REDIS_ADMIN_URL="+redis.URL)
	execSQL(t, owner, strings.Replace(inline(t, rotating, "CREATE ROLE"), "'…'", "'"+newPassword+"'", 1))
	s.write("JWT_SECRET", newSecret)
	s.write("JWT_SECRET_PREVIOUS", oldSecret)
	s.write("REDIS_URL", loginAs(t, oldRedis, old.User.Username(), newPassword))
	s.write("DATABASE_URL", loginAs(t, owner, "commerce_service_b", newPassword))
	replaceEach(t, instances, s.settings())

	// Those who sign or send secrets change to the new ones.
	leaveAgain := arrive(newSecret, "second")
	defer leaveAgain()
	execSQL(t, owner, `UPDATE page_link_key SET key = uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())`)
	leave()

	// The old ones are withdrawn.
	oldToken := apiToken(t, owner, "withdrawn")
	s.remove("JWT_SECRET_PREVIOUS")
	replaceEach(t, instances, s.settings())
	id, _, _ := strings.Cut(oldToken, "|")
	command(t, []string{"DATABASE_URL=" + owner}, "token", "revoke", id)
	execSQL(t, owner, inline(t, rotating, "NOLOGIN"))
	follow(t, t.TempDir(), redisCLI+strings.Replace(inline(t, rotating, "<old"), "<old", "<"+oldPassword, 1), "REDIS_ADMIN_URL="+redis.URL)
	replaceEach(t, instances, s.settings()) // they need the new logins to open connections
	leaveAgain()

	for _, instance := range instances {
		shopper := newShopper(t, instance)
		shopper.secret = oldSecret
		a := shopper.as("", shopper.customer(t, "withdrawn")).send("GET", "/cart", "")
		assert.That(t, a.Status == http.StatusUnauthorized, "a token of the old secret: %v", a)
		a = shopper.send("GET", "/subscriptions", "", "Authorization", "Bearer "+oldToken)
		assert.That(t, a.Status == http.StatusUnauthorized, "the old API token: %v", a)
	}
}

// secrets are files, each with a setting.
type secrets struct {
	t   testing.TB
	dir string
}

func (s *secrets) write(name, value string) {
	s.t.Helper()
	assert.NoError(s.t, os.WriteFile(filepath.Join(s.dir, name), []byte(value+"\n"), 0o600))
}

func (s *secrets) remove(name string) {
	s.t.Helper()
	assert.NoError(s.t, os.Remove(filepath.Join(s.dir, name)))
}

// settings name each file. They empty JWT_SECRET, which startService sets.
func (s *secrets) settings() []string {
	s.t.Helper()
	all := []string{"JWT_SECRET=", "TRUSTED_PROXIES=127.0.0.1"}
	for _, f := range assert.Must(os.ReadDir(s.dir))(s.t) {
		all = append(all, f.Name()+"_FILE="+filepath.Join(s.dir, f.Name()))
	}
	return all
}

func replaceEach(t *testing.T, instances []*service, settings []string) {
	t.Helper()
	for _, instance := range instances {
		instance.wantEnd(10 * time.Second)
		instance.settings = settings
		instance.start()
		instance.awaitRequests()
	}
}

// mostLate is how many of thousands of reads may find no connection to Postgres in time, and are repeated.
const mostLate = 20

// readPages reads all pages of the list by their links, again and again, until the returned function is called.
func (c *crowd) readPages(apiToken string) (stop func()) {
	client := shopperAt(c.p.t, func() string { return c.url })
	var stopped atomic.Bool
	var reading sync.WaitGroup
	reading.Go(func() {
		late := 0
		for path := ""; !stopped.Load(); {
			if path == "" {
				path = "/subscriptions?per_page=10"
			}
			a := client.send("GET", path, "", "Authorization", "Bearer "+apiToken)
			if a.Status == http.StatusServiceUnavailable && late < mostLate { // a busy machine: 300 ms for Postgres are few
				late++
				time.Sleep(100 * time.Millisecond)
				continue
			}
			var page struct {
				Data struct {
					Next string `json:"next_page_url"`
				}
			}
			if err := json.Unmarshal(a.Raw, &page); a.Status != http.StatusOK || err != nil {
				c.fail("%s: %v (%v)", path, a, err)
			}
			path = strings.TrimPrefix(page.Data.Next, c.url)
		}
	})
	return sync.OnceFunc(func() { stopped.Store(true); reading.Wait() })
}

func apiToken(t *testing.T, database, name string) string {
	t.Helper()
	return command(t, []string{"DATABASE_URL=" + database}, "token", "store", "--store", "1", "--name", name)
}

// loginAs returns a URL of a server with another user.
func loginAs(t *testing.T, server, name, password string) string {
	t.Helper()
	u := assert.Must(url.Parse(server))(t)
	u.User = url.UserPassword(name, password)
	return u.String()
}

func execSQL(t *testing.T, database, statements string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	db := assert.Must(pgx.Connect(ctx, database))(t)
	defer db.Close(context.Background())
	_, err := db.PgConn().Exec(ctx, statements).ReadAll()
	assert.Require(t, err == nil, "%.60s: %v", statements, err)
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	return string(assert.Must(os.ReadFile(path))(t))
}
