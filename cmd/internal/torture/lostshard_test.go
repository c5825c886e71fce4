package torture

import (
	"fmt"
	"net/http"
	"regexp"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// A master of a cluster and its replica are lost with their disks. A new server takes the
// master's place, with its backup.
func TestLostShard_IsRestoredFromItsBackup(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	backUp, identify := runbook(t, "### Redis"), runbook(t, "## A lost shard")
	assert.Require(t, len(backUp) == 2 && len(identify) == 1,
		"the runbook has %d and %d blocks, want 2 and 1", len(backUp), len(identify))
	cluster := ephemeral.StartCluster(t)
	lost, other := cluster.Nodes[0], cluster.Nodes[1]
	s := newShopper(t, startService(t, "REDIS_URL="+cluster.URL, "DATABASE_URL="+catalog(t)))
	tags := map[string]string{} // by cart token, over all shards
	for i := range 30 {
		token := fmt.Sprint("a-cart-of-some-shard-", i)
		tags[token] = mustChange(t, s.as(token, ""), "first", 1001).Header.Get("ETag")
	}
	held := lost.Admin().DBSize(t.Context()).Val()
	assert.Require(t, held != 0, "no cart is on the master that will be lost")
	id := assert.Must(lost.Admin().ClusterMyID(t.Context()).Result())(t)
	dir, data := t.TempDir(), t.TempDir()
	follow(t, dir, backUp[0], "REDIS_BACKUP_URL="+lost.URL)
	cluster.Nodes[3].Kill()
	lost.Kill()
	awaitMatch(t, "the loss", regexp.MustCompile(`(?m)^`+id+` .* master,fail `), func() string {
		return other.Admin().ClusterNodes(t.Context()).Val()
	})

	follow(t, dir, identify[0], "OTHER_URL="+other.URL, "LOST_ID="+id, "REDIS_DATA="+data)
	restoreRedis(t, dir, data, backUp[1], "cluster-enabled yes", "cluster-require-full-coverage no")
	awaitMatch(t, "the whole cluster", regexp.MustCompile(`cluster_slots_ok:16384\r\n`), func() string {
		return other.Admin().ClusterInfo(t.Context()).Val()
	})
	for token, tag := range tags {
		var now reply
		for began := time.Now(); ; time.Sleep(20 * time.Millisecond) { // the service may still look for the old address
			now = s.as(token, "").send("GET", "/cart", "")
			if now.Status == http.StatusOK || time.Since(began) > startLimit {
				break
			}
		}
		assert.That(t, now.Header.Get("ETag") == tag, "%s: %s in %v, want %s", token, now.Header.Get("ETag"), now, tag)
		mustChange(t, s.as(token, ""), "second", 1002)
	}
}

// awaitMatch waits until what look returns matches.
func awaitMatch(t *testing.T, what string, want *regexp.Regexp, look func() string) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		seen := look()
		if want.MatchString(seen) {
			return
		}
		assert.Require(t, time.Since(began) <= startLimit, "%s: not after %v:\n%s", what, startLimit, seen)
	}
}
