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
)

// When a merge brings more keys and stamps than a cart keeps, the oldest go, however many
// others have one and the same time.
func TestMerge_TheOldestKeysAndStampsGoFirst(t *testing.T) {
	t.Parallel()
	d, token := openDesk(t, cart.Sum), tokenOf("t")
	customer, guest := redisstore.CustomerRef(d.store.ID, "c"), redisstore.GuestRef(d.store.ID, token)
	d.add(d.as("c", ""), 1, 1)
	now := time.Now().Add(-time.Minute)
	plant := func(key, name string, at time.Time, suffix string) {
		d.client.HSet(t.Context(), key, name, decimal(at.UnixMilli())+suffix)
	}
	stamp := func(name string, at time.Time) string {
		return fmt.Sprintf("%-6s", name) + string(binary.BigEndian.AppendUint64(nil, uint64(at.UnixMilli()))[2:])
	}
	packed := stamp("oldest", now.Add(-time.Minute))
	for i := range 15 {
		packed += stamp(fmt.Sprintf("tie%d", i), now)
	}
	for i := range 4 {
		d.client.HSet(t.Context(), customer.CartKey(), fmt.Sprintf("r%d", i+1), packed[i*60:min(len(packed), (i+1)*60)])
	}
	for i := range 255 {
		plant(customer.KeysKey(), fmt.Sprintf("tie%d", i), now, " f")
	}
	plant(customer.KeysKey(), "oldest", now.Add(-time.Minute), " f")
	d.add(d.as("", token), 2, 1)
	late := now.Add(30 * time.Second)
	d.client.HSet(t.Context(), guest.CartKey(), "r1", stamp("new1", late)+stamp("new2", late)+stamp("new3", late))
	for _, name := range []string{"new1", "new2", "new3"} {
		plant(guest.KeysKey(), name, late, " f")
	}

	d.wantLines(d.as("c", token), "1×1 2×1")
	var flat []string
	for member, value := range d.client.HGetAll(t.Context(), customer.CartKey()).Val() {
		flat = append(flat, member, value)
	}
	stamps := slices.Sorted(maps.Keys(redisstore.Stamps(flat)))
	keys := d.client.HKeys(t.Context(), customer.KeysKey()).Val()
	if slices.Contains(stamps, "oldest") || !slices.Contains(stamps, "new3  ") || len(stamps) != 16 {
		t.Errorf("%d stamps: %q", len(stamps), stamps)
	}
	if slices.Contains(keys, "oldest") || !slices.Contains(keys, "new3") || len(keys) != 256 {
		t.Errorf("%d keys, the oldest among them: %v", len(keys), slices.Contains(keys, "oldest"))
	}
}
