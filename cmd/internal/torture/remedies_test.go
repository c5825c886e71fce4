package torture

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// Too few sentinels are left to replace the master. When the runbook has started the others, they do.
func TestLostSentinelMaster_IsReplacedWhenTheSentinelsStartAgain(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	steps := runbook(t, "## A lost Sentinel master")
	assert.Require(t, len(steps) == 3, "the runbook has %d blocks, want 3", len(steps))
	trio := startTrio(t)
	s, tags := withCarts(t, trio.url, trio.settle)
	master, lost := trio.servers[0], trio.sentinels[:2]
	master.kill()
	for _, sentinel := range lost {
		sentinel.kill()
	}
	asked := trio.sentinels[2]
	ephemeral.Until(t, func() error {
		if said := follow(t, t.TempDir(), steps[0], "SENTINEL_URL="+asked.url()); !strings.Contains(said, "NOQUORUM") || !strings.Contains(said, master.port) {
			return fmt.Errorf("the sentinel says %s", said)
		}
		return nil
	})
	assert.Equal(t, s.as(anyOf(tags), "").send("GET", "/cart", "").Status, http.StatusServiceUnavailable, "status while nobody is the master")

	for _, sentinel := range lost {
		follow(t, t.TempDir(), strings.ReplaceAll(steps[1], "/etc/redis/sentinel.conf", sentinel.conf))
	}
	wantCarts(t, s, tags)
	wantChanges(t, s, tags)
	said := follow(t, t.TempDir(), steps[0], "SENTINEL_URL="+asked.url())
	assert.That(t, strings.Contains(said, "OK 3 usable Sentinels") && !strings.Contains(said, master.port), "the sentinel says %s", said)
}

// Two of three machines are lost, each with a server and a sentinel. One of them returns with an empty disk.
func TestLostSentinelMaster_IsReplacedByTheOnlySentinelLeft(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	promote := runbook(t, "## A lost Sentinel master")[2]
	accept := commandIn(t, "### Errors of Redis", "config set min-replicas-to-write")
	trio := startTrio(t)
	s, tags := withCarts(t, trio.url, trio.settle)
	for i := range 2 {
		trio.servers[i].kill()
		trio.sentinels[i].kill()
	}
	left := trio.servers[2]
	ephemeral.Until(t, func() error { // until the sentinel has noticed, it takes the lost replica for a good one
		seen, err := trio.sentinels[2].client.Do(t.Context(), "sentinel", "replicas", "commerce").Result()
		if err == nil && strings.Count(fmt.Sprint(seen), "s_down") == 0 {
			err = fmt.Errorf("the sentinel sees %v", seen)
		}
		return err
	})
	said := follow(t, t.TempDir(), promote, "SENTINEL_URL="+trio.sentinels[2].url())
	assert.Require(t, strings.HasSuffix(said, "OK\n"), "the sentinel says %s", said)
	wantCarts(t, s, tags)

	a := s.as("another-cart", "").send("POST", "/cart/add", `{"product_id":1001}`)
	assert.Equal(t, a.Status, http.StatusServiceUnavailable, "status of a change without a replica: %v", a)
	follow(t, t.TempDir(), accept, "REDIS_ADMIN_URL="+left.url())
	wantChanges(t, s, tags)

	returned := trio.servers[0]
	returned.wipe(t)
	returned.start(t)
	ephemeral.Until(t, func() error { return returned.replicates(left) })
	wantChanges(t, s, tags)
}

// All three servers lose their disks. The one that the sentinels name gets the backup.
func TestBackup_IsRestoredBehindSentinels(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	steps, ask := runbook(t, "### Redis"), runbook(t, "## A lost Sentinel master")[0]
	trio, dir := startTrio(t), t.TempDir()
	s, tags := withCarts(t, trio.url, trio.settle)
	backup := redisMachine{user: "backup", password: trio.password("backup"), port: trio.servers[1].port}
	follow(t, dir, steps[0], "BACKUP=carts.rdb", "REDIS_BACKUP_URL="+backup.url())
	for _, server := range trio.servers {
		server.kill()
		server.wipe(t)
	}
	said := follow(t, dir, ask, "SENTINEL_URL="+trio.sentinels[0].url())
	named := slices.IndexFunc(trio.servers, func(m *redisMachine) bool { return strings.HasSuffix(strings.TrimSpace(said), "\n"+m.port) })
	assert.Require(t, named >= 0, "the sentinel names no server: %s", said)
	master := trio.servers[named]
	follow(t, dir, steps[1], "BACKUP=carts.rdb", "REDIS_CONF="+master.conf, "REDIS_DATA="+master.data, "REDIS_ADMIN_URL="+master.url())
	for _, server := range append([]*redisMachine{master}, slices.Delete(slices.Clone(trio.servers), named, named+1)...) {
		server.start(t)
	}
	wantCarts(t, s, tags)
	for _, server := range trio.servers {
		if server != master {
			ephemeral.Until(t, func() error { return server.replicates(master) })
		}
	}
	wantChanges(t, s, tags)
}

// A master that hangs is not dead for the others yet. The runbook does not wait for them.
func TestHangingMaster_IsReplaced(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	const entry, patient = "### CommerceRedisUnreachable", "600000"
	t.Run("by a sentinel", func(t *testing.T) {
		t.Parallel()
		trio := startTrio(t)
		s, tags := withCarts(t, trio.url, trio.settle)
		for _, sentinel := range trio.sentinels {
			assert.NoError(t, sentinel.client.Do(t.Context(), "sentinel", "set", "commerce", "down-after-milliseconds", patient).Err())
		}
		assert.NoError(t, trio.servers[0].process.Process.Signal(syscall.SIGSTOP))
		remedy := strings.ReplaceAll(commandIn(t, entry, "sentinel failover"), "<name>", "commerce")
		follow(t, t.TempDir(), remedy, "REDIS_ADMIN_URL="+trio.sentinels[0].url())
		wantCarts(t, s, tags)
		wantChanges(t, s, tags)
	})
	t.Run("by a node of a cluster", func(t *testing.T) {
		t.Parallel()
		cluster := ephemeral.StartCluster(t)
		for _, node := range cluster.Nodes {
			assert.NoError(t, node.Admin().ConfigSet(t.Context(), "cluster-node-timeout", patient).Err())
		}
		s, tags := withCarts(t, cluster.URL, func() error { return copied(t, cluster) })
		cluster.Nodes[0].Freeze()
		t.Cleanup(cluster.Nodes[0].Thaw)
		follow(t, t.TempDir(), commandIn(t, entry, "cluster failover force"), "REDIS_ADMIN_URL="+cluster.Nodes[3].URL)
		wantCarts(t, s, tags)
		wantChanges(t, s, tags)
	})
}

func TestLostMaster_IsReplacedByItsReplicaWithoutSentinels(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	master, replica := ephemeral.StartRedis(t), ephemeral.StartRedis(t)
	host, port := nodeOf(master).addr()
	assert.NoError(t, replica.Admin().ReplicaOf(t.Context(), host, port).Err())
	database := catalog(t)
	s := newShopper(t, startService(t, "REDIS_URL="+master.URL, "DATABASE_URL="+database))
	tags := fillCarts(t, s, func() error { return sameSize(t, master, replica) })
	master.Kill()
	follow(t, t.TempDir(), commandIn(t, "### CommerceRedisUnreachable", "replicaof no one"), "REDIS_ADMIN_URL="+replica.URL)
	s = newShopper(t, startService(t, "REDIS_URL="+replica.URL, "DATABASE_URL="+database))
	wantCarts(t, s, tags)
	wantChanges(t, s, tags)
}

// Two of three masters are lost, so nobody elects their replicas. The lost ones return with empty disks.
func TestLostShard_IsServedByItsReplica(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	steps := runbook(t, "## A lost shard")
	assert.Require(t, len(steps) == 2, "the runbook has %d blocks, want 2", len(steps))
	cluster := ephemeral.StartCluster(t)
	s, tags := withCarts(t, cluster.URL, func() error { return copied(t, cluster) })
	for i := range 2 {
		cluster.Nodes[i].Kill()
	}
	for i := range 2 {
		follow(t, t.TempDir(), steps[0], "REPLICA_URL="+cluster.Nodes[3+i].URL)
	}
	wantCarts(t, s, tags)
	for i := range 2 {
		cluster.Nodes[i].Restart()
		ephemeral.Until(t, func() error { return sameSize(t, cluster.Nodes[3+i], cluster.Nodes[i]) })
	}
	wantChanges(t, s, tags)
}

// What the runbook does about refusals of Redis ends them, and keeps all carts.
func TestRefusals_OfRedisEndAsTheRunbookSays(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	redis := ephemeral.StartRedis(t, "--dbfilename", "obstacle")
	admin := redis.Admin()
	set := func(name, value string) {
		t.Helper()
		assert.NoError(t, admin.ConfigSet(t.Context(), name, value).Err())
	}
	s, tags := withCarts(t, redis.URL, func() error { return nil })
	obstacle := filepath.Join(admin.ConfigGet(t.Context(), "dir").Val()["dir"], "obstacle")
	for _, refusal := range []struct {
		code, heading, command string
		begin, before          func() // begin causes the refusal; before is what the reader does before the command
	}{
		{"NOREPLICAS", "### Errors of Redis", "config set min-replicas-to-write", func() { set("min-replicas-to-write", "1") }, func() {}},
		{"OOM", "### CommerceRedisFull", "config set maxmemory", func() { set("maxmemory", "1mb") }, func() {}},
		{"MISCONF", "### Errors of Redis", "bgsave", func() {
			assert.NoError(t, os.Mkdir(obstacle, 0o755)) // in place of a full disk
			set("save", "3600 1")
			ephemeral.Eventually(t, "the failure of a snapshot", func() bool {
				_ = admin.BgSave(t.Context()).Err()
				return strings.Contains(admin.Info(t.Context(), "persistence").Val(), "rdb_last_bgsave_status:err")
			})
		}, func() { assert.NoError(t, os.Remove(obstacle)) }},
	} {
		refusal.begin()
		err := admin.Set(t.Context(), "another", 1, 0).Err()
		assert.That(t, err != nil && strings.HasPrefix(err.Error(), refusal.code), "Redis answers %v, want %s", err, refusal.code)
		a := s.as(anyOf(tags), "").send("POST", "/cart/add", `{"product_id":1001}`)
		assert.That(t, a.Status == http.StatusServiceUnavailable, "a change while Redis answers %s: %v", refusal.code, a)
		refusal.before()
		remedy := strings.ReplaceAll(commandIn(t, refusal.heading, refusal.command), "<bytes>", "1000000000")
		ephemeral.Until(t, func() error { // Redis also tries to save on its own, and then refuses to
			said, err := attempt(t, t.TempDir(), remedy, "REDIS_ADMIN_URL="+redis.URL)
			if err != nil {
				err = fmt.Errorf("%w: %s", err, said)
			}
			return err
		})
		wantChanges(t, s, tags)
	}
}

// Of two replicas, one was cut off before the last changes.
func TestLostPrimary_IsReplacedByTheReplicaWithTheNewestData(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	steps := runbook(t, "## A lost Postgres primary")
	assert.Require(t, len(steps) == 2, "the runbook has %d blocks, want 2", len(steps))
	primary := startPostgres(t)
	token := apiToken(t, primary.URL, "promotion")
	late, newest := ephemeral.StartStandby(t, primary), ephemeral.StartStandby(t, primary)
	late.CutOff()
	execSQL(t, primary.URL, "UPDATE subscriptions SET updated_at = now(); DELETE FROM subscriptions WHERE id % 2 = 0")
	newest.CatchUp(primary)
	redis := ephemeral.StartRedis(t)
	const list = "/subscriptions?per_page=100"
	s := newShopper(t, startService(t, "REDIS_URL="+redis.URL, "DATABASE_URL="+primary.URL))
	want := read(t, s, token, list).Data
	primary.Kill()

	said := follow(t, t.TempDir(), steps[0], "REPLICA_URLS="+late.URL+" "+newest.URL)
	first := regexp.MustCompile(`(?m)^\d+ (postgres://.*)$`).FindStringSubmatch(said)
	assert.Require(t, first != nil && first[1] == newest.URL, "the newest replica is %q, want %s:\n%s", first, newest.URL, said)
	follow(t, t.TempDir(), steps[1], "NEWEST_URL="+first[1])
	s = newShopper(t, startService(t, "REDIS_URL="+redis.URL, "DATABASE_URL="+newest.URL))
	assert.Equal(t, read(t, s, token, list).Data, want, "the list (-before +after)")
	execSQL(t, newest.URL, "UPDATE subscriptions SET updated_at = now()")
}

func TestLongTransaction_IsFoundAndEnded(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	page := readFile(t, "../../../docs/runbook.md")
	_, page, _ = strings.Cut(page, "\n## A slow Postgres\n")
	search := regexp.MustCompile("(?ms)^ *```sql\n(.*?)^ *```$").FindStringSubmatch(page)
	assert.Require(t, search != nil, "the runbook has no search for transactions")
	database := startPostgres(t)
	holder := assert.Must(pgx.Connect(t.Context(), database.URL))(t)
	defer holder.Close(context.Background())
	assert.Must(holder.PgConn().Exec(t.Context(), "BEGIN; DELETE FROM subscriptions; LOCK subscriptions").ReadAll())(t)
	served := make(chan error, 1)
	go func() {
		db, err := pgx.Connect(context.Background(), database.URL)
		if err == nil {
			defer db.Close(context.Background())
			_, err = db.Exec(context.Background(), "SELECT count(*) FROM subscriptions")
		}
		served <- err
	}()
	var pid string
	ephemeral.Until(t, func() error {
		said := follow(t, t.TempDir(), `psql "$OWNER_URL" -At -c "$SEARCH"`, "OWNER_URL="+database.URL, "SEARCH="+search[1])
		waits := regexp.MustCompile(`(?m)^\d+\|active\|Lock\|relation\|\{(\d+)\}\|`).FindStringSubmatch(said)
		if waits == nil {
			return fmt.Errorf("nobody waits: %s", said)
		}
		pid = waits[1]
		return nil
	})
	execSQL(t, database.URL, strings.ReplaceAll(inline(t, "## A slow Postgres", "pg_terminate_backend"), "<pid>", pid))
	assert.NoError(t, <-served)
	execSQL(t, database.URL, inline(t, "## A slow Postgres", "VACUUM (ANALYZE)"))
}

func TestLostRightsAndTables_AreMadeAgain(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	grant := runbook(t, "### CommercePostgresUnfit")[0]
	database := startPostgres(t)
	execSQL(t, database.URL, readFile(t, "../../../deploy/postgres/roles.sql"))
	follow(t, t.TempDir(), grant, "OWNER_URL="+database.URL)
	token := apiToken(t, database.URL, "rights")
	settings := []string{"REDIS_URL=" + ephemeral.Redis(t), "DATABASE_URL=" + loginAs(t, database.URL, "commerce_service", "")}
	s := newShopper(t, startService(t, settings...))
	read(t, s, token, "/subscriptions")
	execSQL(t, database.URL, "REVOKE SELECT ON subscriptions FROM commerce_service")
	a := s.send("GET", "/subscriptions", "", "Authorization", "Bearer "+token)
	assert.That(t, a.Status == http.StatusServiceUnavailable, "a list without the right to it: %v", a)
	follow(t, t.TempDir(), grant, "OWNER_URL="+database.URL)
	read(t, s, token, "/subscriptions")

	path := fmt.Sprintf("/subscriptions/%v/history", read(t, s, token, "/subscriptions").Data[0]["id"])
	ephemeral.Until(t, func() error { // the newest migrations can be about other tables
		command(t, []string{"DATABASE_URL=" + database.URL}, "migrate", "down")
		if a = s.send("GET", path, "", "Authorization", "Bearer "+token); a.Status == http.StatusOK {
			return fmt.Errorf("a history without its table: %v", a)
		}
		return nil
	})
	follow(t, t.TempDir(), grant, "OWNER_URL="+database.URL)
	s = newShopper(t, startService(t, settings...)) // it would not start with an older schema
	a = s.send("GET", path, "", "Authorization", "Bearer "+token)
	assert.That(t, a.Status == http.StatusOK, "a history after its table is there again: %v", a)
}

// withCarts starts a service on a Redis, with carts.
func withCarts(t *testing.T, redisURL string, settled func() error) (s *shopper, tags map[string]string) {
	t.Helper()
	s = newShopper(t, startService(t, "REDIS_URL="+redisURL, "DATABASE_URL="+catalog(t)))
	return s, fillCarts(t, s, settled)
}

// fillCarts returns the tags of new carts by their tokens, when all servers have the carts.
func fillCarts(t *testing.T, s *shopper, settled func() error) map[string]string {
	t.Helper()
	tags := map[string]string{}
	for i := range 20 {
		token := fmt.Sprint("a-cart-that-outlives-a-server-", i)
		r, ok := served(func() reply {
			return s.as(token, "").send("POST", "/cart/add", `{"product_id":1001}`, "Idempotency-Key", "first")
		})
		assert.Require(t, ok, "add: %v", r)
		tags[token] = r.Header.Get("ETag")
	}
	ephemeral.Until(t, settled)
	return tags
}

func anyOf(tags map[string]string) string {
	for token := range tags {
		return token
	}
	return ""
}

// wantCarts waits until the service serves each cart, as it was.
func wantCarts(t *testing.T, s *shopper, tags map[string]string) {
	t.Helper()
	for token, tag := range tags {
		var now reply
		ephemeral.Until(t, func() error {
			if now = s.as(token, "").send("GET", "/cart", ""); now.Status != http.StatusOK {
				return fmt.Errorf("%s: %v", token, now)
			}
			return nil
		})
		assert.That(t, now.Header.Get("ETag") == tag, "%s: %s in %v, want %s", token, now.Header.Get("ETag"), now, tag)
	}
}

// wantChanges waits until the service changes each cart, which has not lost what was in it, and updates the tags.
func wantChanges(t *testing.T, s *shopper, tags map[string]string) {
	t.Helper()
	for token := range tags {
		key := rand.Text()
		ephemeral.Until(t, func() error {
			a := s.as(token, "").send("POST", "/cart/add", `{"product_id":1002}`, "Idempotency-Key", key)
			if a.Status != http.StatusOK {
				return fmt.Errorf("%s: %v", token, a)
			}
			assert.That(t, a.Cart.quantities()["1001"] == 1, "%s has lost what was in it: %v", token, a)
			tags[token] = a.Header.Get("ETag")
			return nil
		})
	}
}

// sameSize returns an error unless a replica has as many keys as its master, which has some.
func sameSize(t *testing.T, master, replica *ephemeral.Server) error {
	t.Helper()
	want, err := master.Admin().DBSize(t.Context()).Result()
	if err != nil {
		return err
	}
	got, err := replica.Admin().DBSize(t.Context()).Result()
	if err == nil && (got != want || want == 0) {
		err = fmt.Errorf("the replica has %d keys of %d", got, want)
	}
	return err
}

func copied(t *testing.T, cluster *ephemeral.RedisCluster) error {
	t.Helper()
	var errs []error
	for i := range 3 {
		errs = append(errs, sameSize(t, cluster.Nodes[i], cluster.Nodes[3+i]))
	}
	return errors.Join(errs...)
}

// commandIn returns the redis-cli command with these words that stands inline in a section of the runbook,
// for the server of REDIS_ADMIN_URL.
func commandIn(t *testing.T, heading, words string) string {
	t.Helper()
	return redisCLI + strings.TrimPrefix(inline(t, heading, words), "redis-cli ")
}

const redisCLI = `redis-cli -e -u "$REDIS_ADMIN_URL" `

// inline returns the inline code with these words in a section of the runbook.
func inline(t *testing.T, heading, words string) string {
	t.Helper()
	_, section, found := strings.Cut(readFile(t, "../../../docs/runbook.md"), "\n"+heading+"\n")
	assert.Require(t, found, "the runbook has no section %q", heading)
	section, _, _ = strings.Cut(section, "\n#")
	section = regexp.MustCompile("(?ms)^ *```.*?^ *```$").ReplaceAllString(section, "")
	for _, code := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(section, -1) {
		if text := strings.Join(strings.Fields(code[1]), " "); strings.Contains(text, words) {
			return text
		}
	}
	t.Fatalf("%s has no %q", heading, words)
	return ""
}

// trio is a master, two replicas and three sentinels, with the files of deploy/redis.
type trio struct {
	url                string // REDIS_URL
	servers, sentinels []*redisMachine
	password           func(user string) string
}

func startTrio(t *testing.T) *trio {
	t.Helper()
	secrets := t.TempDir()
	follow(t, "../../..", "sh deploy/redis/passwords.sh "+secrets)
	password := func(user string) string { return readFile(t, filepath.Join(secrets, user+".password")) }
	ports := ephemeral.FreePorts(t, 6)
	r := &trio{password: password}
	var hosts []string
	for i, port := range ports {
		m := newRedisMachine(t, port)
		files := []string{"../../../deploy/redis/common.conf", "../../../deploy/redis/replicated.conf", secrets + "/users.acl", secrets + "/replication.conf"}
		add := fmt.Sprintf("\nport %s\nbind 127.0.0.1\nrepl-diskless-sync-delay 0\n", m.port)
		m.user, m.password, m.conf = "admin", password("admin"), filepath.Join(m.dir, "replicated.conf")
		if i > 0 {
			add += fmt.Sprintln("replicaof 127.0.0.1", ports[0])
		}
		if i > 2 {
			files, add = []string{secrets + "/sentinel.conf"}, ""
			m.user, m.password, m.conf, m.arguments = "default", password("sentinel"), filepath.Join(m.dir, "sentinel.conf"), []string{"--sentinel"}
			r.sentinels, hosts = append(r.sentinels, m), append(hosts, "127.0.0.1:"+m.port)
		} else {
			r.servers = append(r.servers, m)
		}
		here := strings.NewReplacer("/etc/redis/", m.dir+"/", "/var/lib/redis", m.data, "bind * -::*", "bind 127.0.0.1", "port 26379", "port "+m.port,
			"10.0.0.1 6379", fmt.Sprint("127.0.0.1 ", ports[0]), "commerce 5000", "commerce 1000", "commerce 30000", "commerce 3000")
		for _, file := range files {
			assert.NoError(t, os.WriteFile(filepath.Join(m.dir, filepath.Base(file)), []byte(here.Replace(readFile(t, file))), 0o600))
		}
		m.configure(t, add)
		m.start(t)
	}
	r.url = fmt.Sprintf("redis://commerce:%s@%s/?master=commerce&sentinel_password=%s", password("commerce"), strings.Join(hosts, ","), password("sentinel"))
	ephemeral.Until(t, r.settle)
	return r
}

// redisMachine is a folder in place of the folders /etc/redis and /var/lib/redis of a machine.
type redisMachine struct {
	dir, conf, data, port string
	user, password        string // of an operator; "" for none
	arguments             []string
	client                *redis.Client
	process               *exec.Cmd
}

// newRedisMachine returns a machine with an empty redis.conf.
func newRedisMachine(t *testing.T, port int) *redisMachine {
	t.Helper()
	dir := t.TempDir()
	m := &redisMachine{dir: dir, conf: filepath.Join(dir, "redis.conf"), data: filepath.Join(dir, "data"), port: fmt.Sprint(port)}
	assert.NoError(t, os.Mkdir(m.data, 0o755))
	return m
}

// plainMachine returns a machine with an address, a data folder and further settings.
func plainMachine(t *testing.T, settings ...string) *redisMachine {
	t.Helper()
	m := newRedisMachine(t, ephemeral.FreePorts(t, 1)[0])
	settings = append(settings, "bind 127.0.0.1", "port "+m.port, "dir "+m.data, "appendonly yes", "maxmemory-policy noeviction", "")
	assert.NoError(t, os.WriteFile(m.conf, []byte(strings.Join(settings, "\n")), 0o600))
	return m
}

// configure adds settings to the configuration.
func (m *redisMachine) configure(t *testing.T, settings string) {
	t.Helper()
	assert.NoError(t, os.WriteFile(m.conf, []byte(readFile(t, m.conf)+settings), 0o600))
}

func (m *redisMachine) url() string {
	login := ""
	if m.user != "" {
		login = m.user + ":" + m.password + "@"
	}
	return "redis://" + login + "127.0.0.1:" + m.port
}

// connect makes the client. A server that a step of the runbook starts in the background ends with the test.
func (m *redisMachine) connect(t *testing.T) {
	if m.client != nil {
		return
	}
	m.client = redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + m.port, Username: m.user, Password: m.password, MaxRetries: -1})
	t.Cleanup(func() {
		_ = m.client.ShutdownNoSave(context.Background()).Err()
		_ = m.client.Close()
	})
}

// start starts the server, and waits until it has loaded its data.
func (m *redisMachine) start(t *testing.T) {
	t.Helper()
	m.connect(t)
	process := exec.Command("redis-server", append([]string{m.conf}, m.arguments...)...)
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := process.Start()
	assert.Require(t, err == nil, "%v (sh deploy/ephemeral/install.sh)", err)
	m.process = process
	t.Cleanup(m.kill)
	ephemeral.Until(t, func() error { return m.client.Ping(t.Context()).Err() })
}

// kill ends the process like a loss of the machine, if it runs.
func (m *redisMachine) kill() {
	_ = m.process.Process.Kill()
	_ = m.process.Wait()
}

// wipe gives a machine that does not run a new disk.
func (m *redisMachine) wipe(t *testing.T) {
	t.Helper()
	assert.NoError(t, os.RemoveAll(m.data))
	assert.NoError(t, os.Mkdir(m.data, 0o755))
}

// replicates returns an error unless m is a replica of master, with all keys.
func (m *redisMachine) replicates(master *redisMachine) error {
	ctx := context.Background()
	role, err := m.client.Do(ctx, "role").Slice()
	if err != nil {
		return err
	}
	want, got := master.client.DBSize(ctx).Val(), m.client.DBSize(ctx).Val()
	if role[0] != "slave" || fmt.Sprint(role[2]) != master.port || role[3] != "connected" || want == 0 || got != want {
		return fmt.Errorf("the server is %v with %d keys of %d", role, got, want)
	}
	return nil
}

// settle returns an error unless the replicas confirm a write, and the sentinels know each other and the replicas.
func (r *trio) settle() error {
	ctx := context.Background()
	if err := confirmed(r.servers[0].client, 2); err != nil {
		return err
	}
	for _, sentinel := range r.sentinels {
		quorum, err := sentinel.client.Do(ctx, "sentinel", "ckquorum", "commerce").Text()
		if err != nil {
			return err
		}
		replicas, err := sentinel.client.Do(ctx, "sentinel", "replicas", "commerce").Result()
		seen := quorum + fmt.Sprint(replicas)
		if err != nil || !strings.HasPrefix(quorum, "OK 3 ") || strings.Count(seen, "master-link-status:ok") != 2 || strings.Contains(seen, "down ") {
			return fmt.Errorf("a sentinel sees %s: %w", seen, err)
		}
	}
	return nil
}
