package redisstore_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"commerce/cart"
	"commerce/cart/redisstore"
	"commerce/deploy/assert"
)

// The oldest of too many keys and stamps go, however many have one and the same time.
func TestMerge_TheOldestKeysAndStampsGoFirst(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "1×1", "2×1")
	now := time.Now().Add(-time.Minute)
	oldest, late := now.Add(-time.Minute), now.Add(30*time.Second)
	plant := func(owner redisstore.Ref, name string, at time.Time) {
		d.client.HSet(t.Context(), owner.KeysKey(), name, fmt.Sprintf("%d f", at.UnixMilli()))
	}
	stamp := func(name string, at time.Time) string {
		return fmt.Sprintf("%-6s", name) + string(binary.BigEndian.AppendUint64(nil, uint64(at.UnixMilli()))[2:])
	}
	packed, brought := stamp("oldest", oldest), ""
	plant(d.customer, "oldest", oldest)
	for i := range cart.KeysKept - 1 {
		plant(d.customer, fmt.Sprintf("tie%d", i), now)
	}
	for i := range cart.StampsKept - 1 {
		packed += stamp(fmt.Sprintf("tie%d", i), now)
	}
	for i := range 4 {
		d.client.HSet(t.Context(), d.customer.CartKey(), fmt.Sprintf("r%d", i+1), packed[i*60:min(len(packed), (i+1)*60)])
	}
	for _, name := range []string{"new1", "new2", "new3"} {
		brought += stamp(name, late)
		plant(d.guest, name, late)
	}
	d.client.HSet(t.Context(), d.guest.CartKey(), "r1", brought)

	d.wantLines(d.as("c", d.token), "1×1 2×1")
	var flat []string
	for member, value := range d.client.HGetAll(t.Context(), d.customer.CartKey()).Val() {
		flat = append(flat, member, value)
	}
	stamps := slices.Collect(maps.Keys(assert.Must(redisstore.ParseCart(flat))(t).Stamps.All()))
	keys := d.client.HKeys(t.Context(), d.customer.KeysKey()).Val()
	assert.That(t, !slices.Contains(stamps, "oldest") && slices.Contains(stamps, "new3  ") && len(stamps) == 16,
		"%d stamps: %q", len(stamps), stamps)
	assert.That(t, !slices.Contains(keys, "oldest") && slices.Contains(keys, "new3") && len(keys) == 256,
		"%d keys, the oldest among them: %v", len(keys), slices.Contains(keys, "oldest"))
}

// A guest goes on shopping while a merge of an earlier cart is unfinished. When that merge is
// finished, the later change has not moved yet, so a failover of the guest's shard can lose it.
// Its repeat must then be made, and not be taken for a replay.
func TestMerge_BringsNoKeyOfAChangeThatItDoesNotBring(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "")
	add := func(customer, key string, product int64) (replayed bool) {
		t.Helper()
		v := d.as(customer, d.token)
		d.Merge(t.Context(), v, key)
		changed := assert.Must(d.Add(t.Context(), v, redisstore.Conditions{Key: key, Fingerprint: key}, cart.Addition{ProductID: product, Quantity: 1}))(t)
		return changed.Replayed
	}
	add("", "claimed", 1)
	d.dieAfter(claimedStep, d.token)
	d.pass(time.Second)
	add("", "later", 2)
	d.wantLines(d.as("c", ""), "1×1") // finishes the merge
	d.client.Del(t.Context(), d.guest.CartKey(), d.guest.KeysKey())

	assert.That(t, add("c", "claimed", 1), "a change that was merged was made again")
	assert.That(t, !add("c", "later", 2), "a change that was lost was taken for a replay")
	d.wantLines(d.as("c", ""), "1×1 2×1")
}
