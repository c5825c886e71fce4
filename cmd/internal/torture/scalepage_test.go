package torture

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// docs/scale.md makes one Redis a cluster of three masters with replicas. All carts stay.
func TestScale_OneRedisGrowsIntoACluster(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	fix := shellBlocks(t, "docs/scale.md", "## One Redis to a Redis Cluster")[0]
	grow := shellBlocks(t, "docs/scale.md", "## More masters")[0]
	database := catalog(t)
	conf, addr := newRedisConf(t)
	secrets := filepath.Dir(conf)
	follow(t, "../../..", "sh deploy/redis/passwords.sh "+secrets)
	assert.NoError(t, os.WriteFile(conf, []byte(readFile(t, conf)+"aclfile "+secrets+"/users.acl\ninclude "+secrets+"/replication.conf\n"), 0o600))
	admin := readFile(t, secrets+"/admin.password")
	old := redis.NewClient(&redis.Options{Addr: addr, Username: "admin", Password: admin})
	defer old.Close()
	startUsual(t, conf, old)
	url := "REDIS_URL=redis://commerce:" + readFile(t, secrets+"/commerce.password") + "@" + addr
	s := newShopper(t, startService(t, url, "DATABASE_URL="+database))
	tags := map[string]string{} // by cart token
	for i := range 30 {
		token := fmt.Sprint("a-cart-that-moves-to-another-shard-", i)
		tags[token] = mustChange(t, s.as(token, ""), "first", 1001).Header.Get("ETag")
	}
	_ = old.Shutdown(t.Context()).Err() // it answers by closing the connection
	assert.NoError(t, os.WriteFile(conf, []byte(readFile(t, conf)+"cluster-enabled yes\n"), 0o600))
	startUsual(t, conf, old)

	names := []string{"redis1.example.com:6379", addr}
	for i := range 5 {
		node := ephemeral.StartRedis(t, "--cluster-enabled", "yes", "--include", secrets+"/replication.conf")
		for _, user := range slices.Backward(strings.Split(strings.TrimSpace(readFile(t, secrets+"/users.acl")), "\n")) {
			words := strings.Fields(user) // default is last: then only admin may log in
			assert.NoError(t, node.Admin().ACLSetUser(t.Context(), words[1], words[2:]...).Err())
		}
		names = append(names, fmt.Sprintf("redis%d.example.com:6379", i+2), strings.TrimPrefix(node.URL, "redis://"))
	}
	addresses := strings.NewReplacer(names...)
	follow(t, t.TempDir(), addresses.Replace(fix), "REDISCLI_AUTH="+admin)
	follow(t, t.TempDir(), addresses.Replace(grow), "REDISCLI_AUTH="+admin)

	state := old.ClusterInfo(t.Context()).Val()
	for _, want := range []string{"cluster_state:ok\r\n", "cluster_slots_ok:16384\r\n", "cluster_known_nodes:6\r\n", "cluster_size:3\r\n"} {
		assert.That(t, strings.Contains(state, want), "the cluster has no %q:\n%s", want, state)
	}
	s = newShopper(t, startService(t, url+"/?cluster=true", "DATABASE_URL="+database))
	for token, tag := range tags {
		now := s.as(token, "").send("GET", "/cart", "")
		assert.That(t, now.Header.Get("ETag") == tag, "%s: %s in %v, want %s", token, now.Header.Get("ETag"), now, tag)
		mustChange(t, s.as(token, ""), "second", 1002)
	}
}

// newRedisConf returns a file for a server as on a machine of its own, and its address.
func newRedisConf(t *testing.T) (conf, addr string) {
	t.Helper()
	port, dir := ephemeral.FreePorts(t, 1)[0], t.TempDir()
	conf = filepath.Join(dir, "redis.conf")
	text := fmt.Sprintf("bind 127.0.0.1\nport %d\ndir %s\nappendonly yes\n", port, dir)
	assert.NoError(t, os.WriteFile(conf, []byte(text), 0o600))
	return conf, fmt.Sprintf("127.0.0.1:%d", port)
}
