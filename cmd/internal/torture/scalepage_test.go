package torture

import (
	"fmt"
	"slices"
	"strings"
	"testing"

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
	old := plainMachine(t)
	addr, secrets := "127.0.0.1:"+old.port, old.dir
	follow(t, "../../..", "sh deploy/redis/passwords.sh "+secrets)
	old.configure(t, "aclfile "+secrets+"/users.acl\ninclude "+secrets+"/replication.conf\n")
	admin := readFile(t, secrets+"/admin.password")
	old.user, old.password = "admin", admin
	old.start(t)
	url := "REDIS_URL=redis://commerce:" + readFile(t, secrets+"/commerce.password") + "@" + addr
	s := newShopper(t, startService(t, url, "DATABASE_URL="+database))
	tags := fillCarts(t, s, func() error { return nil })
	_ = old.client.Shutdown(t.Context()).Err() // it answers by closing the connection
	old.configure(t, "cluster-enabled yes\n")
	old.start(t)

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

	state := old.client.ClusterInfo(t.Context()).Val()
	for _, want := range []string{"cluster_state:ok\r\n", "cluster_slots_ok:16384\r\n", "cluster_known_nodes:6\r\n", "cluster_size:3\r\n"} {
		assert.That(t, strings.Contains(state, want), "the cluster has no %q:\n%s", want, state)
	}
	s = newShopper(t, startService(t, url+"/?cluster=true", "DATABASE_URL="+database))
	wantCarts(t, s, tags)
	wantChanges(t, s, tags)
}
