package torture

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

// A cluster grows from three to six masters, each with a replica, by the commands of
// docs/scale.md: redis-cli moves half of all slots, with their carts, while shoppers fill, read
// and merge carts through two instances.
// Every change counts once, with and without a key. On a busy machine, a few calls are late.
func TestGrowth_OfAClusterLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	cluster := ephemeral.StartCluster(t)
	for _, node := range cluster.Nodes { // a failover may lose changes, which is not tested here
		assert.NoError(t, node.Admin().ConfigSet(t.Context(), "cluster-node-timeout", longPatience).Err())
	}
	database := catalog(t)
	var instances []*service
	for range 2 {
		instances = append(instances, startService(t, "REDIS_URL="+cluster.URL, "DATABASE_URL="+database))
	}
	client := assert.Must(connect.Redis(cluster.URL, ephemeral.PatientRedis))(t)
	t.Cleanup(func() { _ = client.Close() })
	l := newLoad(&promise{t: t}, alternating(t, instances), client)
	l.unkeyed = true
	idle := make([]*visit, sized(300, 20_000)) // their carts move while nobody uses them
	inGroups(4, len(idle), func(i int) {
		v := l.newVisit(fmt.Sprint("idle-", i))
		idle[i], v.staysGuest = v, true
		for range 6 {
			v.insist(v.chooseAny(), v.guest)
		}
		v.held = v.look()
		assert.That(t, v.judge(tallyOf(v.bought, maps.Clone(v.held))) == "", "%s holds %v of %v", v.name, v.held, v.bought)
	})

	join, rebalance, login := growCommands(t, cluster)
	follow(t, t.TempDir(), join, login)
	stop := l.shop(4, func(v *visit) {
		v.make()
		time.Sleep(visitPause)
		moving := idle[rand.IntN(len(idle))]
		held := moving.look()
		assert.That(t, maps.Equal(held, moving.held), "%s holds %v, want %v", moving.name, held, moving.held)
	})
	began := time.Now()
	follow(t, t.TempDir(), rebalance, login)
	t.Log("the slots moved within", time.Since(began).Round(time.Second))
	stop()
	inGroups(4, len(idle), func(i int) {
		idle[i].logIn()
		idle[i].compare("after its slot has moved")
	})
	l.recount(nil)
	var served []int64
	for _, shard := range cluster.Nodes[0].Admin().ClusterShards(t.Context()).Val() {
		var slots int64
		for _, r := range shard.Slots {
			slots += r.End - r.Start + 1
		}
		served = append(served, slots)
	}
	assert.That(t, len(served) == 6 && slices.Min(served) >= 2500,
		"the masters serve %d slots, want six with 2500 or more", served)
	late, changes := l.repeats.Load()+l.unknown.Load(), l.changes.Load()
	t.Logf("slots %v; %d changes, %d merges; %d calls were not served at once", served, changes, l.merged.Load(), late)
	if late > sized(changes, changes/100) { // in the short form, other tests keep the machine busy
		t.Errorf("%d of %d calls were not served at once", late, changes)
	}
}

// growCommands starts six nodes. It returns the page's commands that let them join as three
// masters and their replicas, those that move slots to them, and the setting with which they log in.
// The page adds two masters.
func growCommands(t *testing.T, cluster *ephemeral.RedisCluster) (join, rebalance, login string) {
	t.Helper()
	users := readFile(t, "../../../deploy/redis/users.conf")
	admin := assert.Must(url.Parse(ephemeral.AsUser(t, cluster.URL, users, "admin")))(t)
	password, _ := admin.User.Password()
	var added []string
	for range 6 {
		node := ephemeral.StartRedis(t, "--cluster-enabled", "yes", "--cluster-node-timeout", longPatience)
		ephemeral.AsUser(t, node.URL, users, "admin")
		added = append(added, strings.TrimPrefix(node.URL, "redis://"))
	}
	old := cluster.Nodes[0].Admin().Options().Addr
	commands := strings.NewReplacer(
		"redis1.example.com:6379", old,
		"redis2.example.com:6379", added[0]+" "+added[1],
		"redis3.example.com:6379", added[2],
		"redis4.example.com:6379", added[3],
		"redis5.example.com:6379", added[4],
		"redis6.example.com:6379", added[5],
	).Replace(shellBlocks(t, "docs/scale.md", "## More masters")[0])
	const last = "redis-cli --user admin --cluster rebalance"
	join, rebalance, found := strings.Cut(commands, last)
	assert.Require(t, found, "no %s in the page", last)
	return join, "OLD=" + old + "\n" + last + rebalance, "REDISCLI_AUTH=" + password
}
