package cart

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// Two releases may share a Redis, and carts outlive releases.
func TestLayout_OfTheReleaseBeforeIsTakenOver(t *testing.T) {
	t.Parallel()
	d, token := openDesk(t, Sum), tokenOf("t")
	d.add(d.as("", token), 2, 1)
	d.dieAfter(claimedStep, "c", token)
	customer, guest := CustomerRef(d.store.ID, "c"), GuestRef(d.store.ID, token)
	ctx, now := t.Context(), time.Now().Add(-2*time.Second)
	d.client.Del(ctx, customer.cartKey())
	d.client.HSet(ctx, customer.cartKey(), "i", "OLD", "v", 3, "1", "4 1 100", "r", "stamp "+ms(now), "m", guest.tag+" "+ms(now))
	d.client.PExpire(ctx, customer.cartKey(), time.Hour)
	d.client.HSet(ctx, guest.claimedKey(), "o", customer.tag)
	d.client.HDel(ctx, guest.claimedKey(), "l")

	again, err := d.Add(ctx, d.as("c", ""), Conditions{Stamp: "stamp"}, Addition{ProductID: 1, Quantity: 4})
	if err != nil || !again.Replayed || linesOf(again.Cart) != "1×4 2×1" || again.Cart.ID != "OLD" {
		t.Errorf("a retry of what the release before had applied: %v, %+v", err, again.Cart)
	}
	members := d.client.HKeys(ctx, customer.cartKey()).Val()
	if slices.Contains(members, "r") || slices.Contains(members, "m") || !slices.Contains(members, "l") {
		t.Errorf("rewritten as %v", members)
	}
	d.settle("c")
	d.wantSettled()
}

func ms(t time.Time) string { return decimal(t.UnixMilli()) }

func TestLayout_OfALaterReleaseIsLeftAlone(t *testing.T) {
	t.Parallel()
	d, token := openDesk(t, Sum), tokenOf("t")
	key := GuestRef(d.store.ID, token).cartKey()
	d.add(d.as("", token), 1, 1)
	d.client.HSet(t.Context(), key, "l", "3")
	before := d.client.Dump(t.Context(), key).Val()
	_, _, readErr := d.Read(t.Context(), d.as("", token))
	_, addErr := d.Add(t.Context(), d.as("", token), Conditions{}, Addition{ProductID: 1, Quantity: 1})
	for _, err := range []error{readErr, addErr} {
		var failed *Error
		if !errors.As(err, &failed) || failed.code != CodeUnavailable {
			t.Errorf("got %v, want unavailable", err)
		}
	}
	d.read(d.as("c", token)) // without the merge
	if after := d.client.Dump(t.Context(), key).Val(); after != before {
		t.Error("it was changed")
	}
}

func TestLayout_MembersThatNoReleaseWroteDoNotMatter(t *testing.T) {
	t.Parallel()
	d, token := openDesk(t, Sum), tokenOf("t")
	d.add(d.as("", token), 1, 1)
	d.client.HSet(t.Context(), GuestRef(d.store.ID, token).cartKey(), "", "", "x", "", "ی", "1")
	d.add(d.as("", token), 1, 1)
	d.wantLines(d.as("", token), "1×2")
}
