package torture

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

func TestBackup_OfRedisRestoresAllCarts(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	steps := runbook(t, "### Redis")
	assert.Require(t, len(steps) == 2, "the runbook has %d blocks, want the backup and the restore", len(steps))
	lost, database := ephemeral.StartRedis(t), catalog(t)
	s := newShopper(t, startService(t, "REDIS_URL="+lost.URL, "DATABASE_URL="+database))
	before := map[string]reply{}
	for _, token := range []string{"a-cart-that-is-backed-up", "a-cart-that-changes-later"} {
		before[token] = mustChange(t, s.as(token, ""), "first-of-"+token, 1001)
	}
	dir := t.TempDir()
	follow(t, dir, steps[0], "BACKUP=carts.rdb", "REDIS_BACKUP_URL="+ephemeral.AsUser(t, lost.URL, readFile(t, "../../../deploy/redis/users.conf"), "backup"))
	mustChange(t, s.as("a-cart-that-changes-later", ""), "second", 1002)
	mustChange(t, s.as("a-cart-that-begins-later", ""), "third", 1001)
	lost.Kill()

	restored := plainMachine(t)
	restoreRedis(t, dir, steps[1], restored)
	s = newShopper(t, startService(t, "REDIS_URL="+restored.url(), "DATABASE_URL="+database))
	for token, was := range before {
		now := s.as(token, "").send("GET", "/cart", "")
		assert.That(t, now.Header.Get("ETag") == was.Header.Get("ETag") && cmp.Equal(now.Cart.Items, was.Cart.Items),
			"%s: %v, want %v", token, now, was)
		again := s.as(token, "").send("POST", "/cart/add", `{"product_id":1001}`, "Idempotency-Key", "first-of-"+token)
		assert.That(t, again.replayed(), "%s: the repeat of a change from before the backup: %v, want a replay", token, again)
	}
	a := s.as("a-cart-that-begins-later", "").send("GET", "/cart", "")
	assert.That(t, a.Cart.Count == 0, "a cart from after the backup: %v", a)
	mustChange(t, s.as("a-cart-that-changes-later", ""), "second", 1002) // lost, so it is applied
}

// A reader who gives a wrong folder or name loses neither the carts there nor an older backup.
func TestBackup_OverwritesNothing(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	redis, dir := ephemeral.StartRedis(t), t.TempDir()
	for name, settings := range map[string][]string{
		"older.rdb":  {runbook(t, "### Redis")[0], "BACKUP=older.rdb", "REDIS_BACKUP_URL=" + redis.URL},
		"older.dump": {runbook(t, "### Postgres")[0], "DUMP=older.dump", "OWNER_URL=" + catalog(t)},
		"data/appendonlydir/appendonly.aof.manifest": {runbook(t, "### Redis")[1], "BACKUP=older.rdb", "REDIS_CONF=none", "REDIS_DATA=data", "REDIS_ADMIN_URL=" + redis.URL},
	} {
		file := filepath.Join(dir, name)
		assert.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		assert.NoError(t, os.WriteFile(file, []byte("of before"), 0o600))
		said, err := attempt(t, dir, settings[0], settings[1:]...)
		assert.That(t, err != nil || strings.Contains(said, "\n"+name+" exists\n"), "the reader does not learn that %s exists: %s", name, said)
		assert.Equal(t, readFile(t, file), "of before", "%s", name)
	}
	assert.That(t, redis.Admin().Ping(t.Context()).Err() == nil, "the restore has ended the server that runs")
	left := assert.Must(filepath.Glob(filepath.Join(dir, "data/*")))(t)
	assert.Equal(t, left, []string{filepath.Join(dir, "data/appendonlydir")}, "files in the data directory")
}

// restoreRedis follows the runbook on a new machine. Then it starts Redis as usual.
func restoreRedis(t *testing.T, dir, steps string, m *redisMachine) {
	t.Helper()
	m.connect(t)
	follow(t, dir, steps, "BACKUP=carts.rdb", "REDIS_CONF="+m.conf, "REDIS_DATA="+m.data, "REDIS_ADMIN_URL="+m.url())
	m.start(t)
}

func mustChange(t *testing.T, s *shopper, key string, product int64) reply {
	t.Helper()
	a := s.send("POST", "/cart/add", fmt.Sprintf(`{"product_id":%d}`, product), "Idempotency-Key", key)
	assert.Require(t, a.Status == http.StatusOK && !a.replayed(), "add %d: %v", product, a)
	return a
}

func TestBackup_OfPostgresRestoresSubscriptionsAndTokens(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	steps := runbook(t, "### Postgres")
	assert.Require(t, len(steps) == 2, "the runbook has %d blocks, want the backup and the restore", len(steps))
	database := startPostgres(t)
	token := apiToken(t, database.URL, "backup")
	redis := ephemeral.StartRedis(t)
	s := newShopper(t, startService(t, "REDIS_URL="+redis.URL, "DATABASE_URL="+database.URL))
	const list, changes = "/subscriptions?per_page=100", "/subscriptions/changes?limit=1000"
	listed, cursor := read(t, s, token, list).Data, read(t, s, token, changes).Next

	deploy := assert.Must(filepath.Abs("../../../deploy"))(t)
	dir := t.TempDir()
	assert.NoError(t, os.Symlink(deploy, filepath.Join(dir, "deploy")))
	follow(t, dir, steps[0], "DUMP=commerce.dump", "OWNER_URL="+database.URL)
	execSQL(t, database.URL, "DELETE FROM subscriptions WHERE id % 2 = 0")
	restored := strings.Replace(database.URL, "/postgres?", "/commerce_restored?", 1)
	follow(t, dir, steps[1], "DUMP=commerce.dump", "ADMIN_URL="+database.URL, "RESTORED_URL="+restored)

	s = newShopper(t, startService(t, "REDIS_URL="+redis.URL, "DATABASE_URL="+loginAs(t, restored, "commerce_service", "")))
	assert.Equal(t, read(t, s, token, list).Data, listed, "the restored list (-before +after)")
	a := s.send("GET", changes+"&after="+cursor, "", "Authorization", "Bearer "+token)
	assert.That(t, a.Code == "cursor_expired", "a cursor of the lost database: %v, want cursor_expired", a)
	read(t, s, token, changes)
	a = s.send("POST", "/cart/add", `{"product_id":1001}`)
	assert.That(t, a.Status == http.StatusOK, "a change of a cart with the restored catalog: %v", a)
}

type subscriptionsPage struct {
	Data []map[string]any
	Next string
}

// read waits for the page, because a Postgres that has just started may be slow on a busy machine.
func read(t *testing.T, s *shopper, token, path string) subscriptionsPage {
	t.Helper()
	var a reply
	ephemeral.Eventually(t, "an answer to GET "+path, func() bool {
		a = s.send("GET", path, "", "Authorization", "Bearer "+token)
		return a.Status != http.StatusServiceUnavailable
	})
	var page struct{ Data subscriptionsPage }
	err := json.Unmarshal(a.Raw, &page)
	assert.Require(t, a.Status == http.StatusOK && err == nil && len(page.Data.Data) != 0, "GET %s: %v (%v)", path, a, err)
	return page.Data
}

// A master and its replica are lost with their disks. A new server begins from the backup.
func TestLostShard_IsRestoredFromItsBackup(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	backUp, identify := runbook(t, "### Redis"), runbook(t, "## A lost shard")
	assert.Require(t, len(backUp) == 2 && len(identify) == 2,
		"the runbook has %d and %d blocks, want 2 and 2", len(backUp), len(identify))
	cluster := ephemeral.StartCluster(t)
	lost, other := cluster.Nodes[0], cluster.Nodes[1]
	s, tags := withCarts(t, cluster.URL, func() error { return copied(t, cluster) })
	held := lost.Admin().DBSize(t.Context()).Val()
	assert.Require(t, held != 0, "no cart is on the master that will be lost")
	id := assert.Must(lost.Admin().ClusterMyID(t.Context()).Result())(t)
	dir, m := t.TempDir(), plainMachine(t, "cluster-enabled yes", "cluster-require-full-coverage no")
	follow(t, dir, backUp[0], "BACKUP=carts.rdb", "REDIS_BACKUP_URL="+lost.URL)
	cluster.Nodes[3].Kill()
	lost.Kill()
	ephemeral.Eventually(t, "the cluster notices the loss", func() bool {
		return regexp.MustCompile(`(?m)^` + id + ` .* master,fail `).MatchString(other.Admin().ClusterNodes(t.Context()).Val())
	})

	follow(t, dir, identify[1], "OTHER_URL="+other.URL, "LOST_ID="+id, "REDIS_DATA="+m.data)
	restoreRedis(t, dir, backUp[1], m)
	ephemeral.Eventually(t, "the cluster is whole", func() bool {
		return strings.Contains(other.Admin().ClusterInfo(t.Context()).Val(), "cluster_slots_ok:16384\r\n")
	})
	wantCarts(t, s, tags)
	wantChanges(t, s, tags)
}
