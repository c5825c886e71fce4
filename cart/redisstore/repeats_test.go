package redisstore_test

import (
	"fmt"
	"slices"
	"strings"
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
	for i := range 15 {
		plant(customer.CartKey(), fmt.Sprintf("rtie%d", i), now, "")
	}
	plant(customer.CartKey(), "roldest", now.Add(-time.Minute), "")
	for i := range 255 {
		plant(customer.KeysKey(), fmt.Sprintf("tie%d", i), now, " f")
	}
	plant(customer.KeysKey(), "oldest", now.Add(-time.Minute), " f")
	d.add(d.as("", token), 2, 1)
	for _, name := range []string{"new1", "new2", "new3"} {
		plant(guest.CartKey(), "r"+name, now.Add(30*time.Second), "")
		plant(guest.KeysKey(), name, now.Add(30*time.Second), " f")
	}

	d.wantLines(d.as("c", token), "1×1 2×1")
	stamps := slices.DeleteFunc(d.client.HKeys(t.Context(), customer.CartKey()).Val(), func(m string) bool { return !strings.HasPrefix(m, "r") })
	keys := d.client.HKeys(t.Context(), customer.KeysKey()).Val()
	if slices.Contains(stamps, "roldest") || !slices.Contains(stamps, "rnew3") || len(stamps) != 16 {
		t.Errorf("%d stamps: %q", len(stamps), stamps)
	}
	if slices.Contains(keys, "oldest") || !slices.Contains(keys, "new3") || len(keys) != 256 {
		t.Errorf("%d keys, the oldest among them: %v", len(keys), slices.Contains(keys, "oldest"))
	}
}
