package redisstore_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/redisstore"
	"commerce/cart/service"
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

// A stamped change went to the guest's cart. Its retry comes with the login, which does not bring
// that cart: it counts once all the same.
func TestStamp_OfAGuestIsKnownWithoutTheMerge(t *testing.T) {
	t.Parallel()
	on := redisstore.Conditions{Stamp: "stmp01"}
	retry := func(t *testing.T, d *desk, sh func() *service.Visit) {
		t.Helper()
		v := sh()
		d.Merge(t.Context(), v, "")
		changed, err := d.Add(t.Context(), v, on, cart.Addition{ProductID: 1, Quantity: 1})
		if err != nil || !changed.Replayed {
			t.Errorf("the retry: %v, replayed: %v, the cart holds %v", err, changed.Replayed, linesOf(changed.Cart))
		}
	}
	first := func(t *testing.T, d *desk, v *service.Visit) {
		t.Helper()
		if _, err := d.Add(t.Context(), v, on, cart.Addition{ProductID: 1, Quantity: 1}); err != nil {
			t.Fatal(err)
		}
		d.pass(2 * time.Second)
	}
	t.Run("since another customer has taken it", func(t *testing.T) {
		t.Parallel()
		d, token := openDesk(t, cart.Sum), tokenOf("t")
		first(t, d, d.as("", token))
		d.wantLines(d.as("first", token), "1×1")
		retry(t, d, func() *service.Visit { return d.as("second", token) })
		d.wantLines(d.as("second", ""), "")
	})
	t.Run("since there is no room for it", func(t *testing.T) {
		t.Parallel()
		d, token := openDesk(t, cart.Sum), tokenOf("t")
		d.add(d.as("c", ""), 2, 1)
		for i := range cart.MergeFactor*carttest.Limits.Lines - 1 { // as many as a merge may leave
			d.client.HSet(t.Context(), redisstore.CustomerRef(d.store.ID, "c").CartKey(), decimal(9000+i), "1 "+decimal(i+2)+" 100")
		}
		first(t, d, d.as("", token))
		retry(t, d, func() *service.Visit { return d.as("c", token) })
		d.wantLines(d.as("", token), "1×1")
	})
}
