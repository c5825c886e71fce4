package redisstore_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/redisstore"
	"commerce/cart/service"
)

// Two releases may share a Redis, and carts outlive releases.
func TestLayout_OfThePreviousReleaseIsUpgraded(t *testing.T) {
	t.Parallel()
	d, token := openDesk(t, cart.Sum), tokenOf("t")
	d.add(d.as("", token), 2, 1)
	d.dieAfter(claimedStep, "c", token)
	customer, guest := redisstore.CustomerRef(d.store.ID, "c"), redisstore.GuestRef(d.store.ID, token)
	ctx, now := t.Context(), time.Now().Add(-2*time.Second)
	d.client.Del(ctx, customer.CartKey())
	d.client.HSet(ctx, customer.CartKey(), "i", "OLD", "v", 3, "1", "4 1 100", "r", "stamp "+ms(now), "m", guest.String()+" "+ms(now))
	d.client.PExpire(ctx, customer.CartKey(), time.Hour)
	d.client.HSet(ctx, guest.ClaimedKey(), "o", customer.String())
	d.client.HDel(ctx, guest.ClaimedKey(), "l")

	again, err := d.Add(ctx, d.as("c", ""), redisstore.Conditions{Stamp: "stamp"}, cart.Addition{ProductID: 1, Quantity: 4})
	if err != nil || !again.Replayed || linesOf(again.Cart) != "1×4 2×1" || again.Cart.ID != "OLD" {
		t.Errorf("a retry of a change that the previous release applied: %v, %+v", err, again.Cart)
	}
	members := d.client.HKeys(ctx, customer.CartKey()).Val()
	if slices.Contains(members, "r") || slices.Contains(members, "m") || !slices.Contains(members, "l") {
		t.Errorf("upgraded to %v", members)
	}
	d.settle("c")
	d.wantSettled()
}

func ms(t time.Time) string { return decimal(t.UnixMilli()) }

func TestLayout_OfALaterReleaseIsLeftAlone(t *testing.T) {
	t.Parallel()
	d, token := openDesk(t, cart.Sum), tokenOf("t")
	key := redisstore.GuestRef(d.store.ID, token).CartKey()
	d.add(d.as("", token), 1, 1)
	d.client.HSet(t.Context(), key, "l", "3")
	before := d.client.Dump(t.Context(), key).Val()
	_, readErr := d.Read(t.Context(), d.as("", token))
	_, addErr := d.Add(t.Context(), d.as("", token), redisstore.Conditions{}, cart.Addition{ProductID: 1, Quantity: 1})
	for _, err := range []error{readErr, addErr} {
		var failed *problem.Error
		if !errors.As(err, &failed) || failed.Code != problem.Unavailable {
			t.Errorf("got %v, want unavailable", err)
		}
	}
	d.read(d.as("c", token)) // without the merge
	if after := d.client.Dump(t.Context(), key).Val(); after != before {
		t.Error("the cart was changed")
	}
}

func TestLayout_UnknownMembersAreIgnored(t *testing.T) {
	t.Parallel()
	d, token := openDesk(t, cart.Sum), tokenOf("t")
	d.add(d.as("", token), 1, 1)
	d.client.HSet(t.Context(), redisstore.GuestRef(d.store.ID, token).CartKey(), "", "", "x", "", "ی", "1")
	d.add(d.as("", token), 1, 1)
	d.wantLines(d.as("", token), "1×2")
}

// A line that an earlier release stored keeps its ID and its text.
func TestLayout_ALineWithTextNotInNormalFormCanBeReadAndChanged(t *testing.T) {
	t.Parallel()
	d := openDesk(t, cart.Sum)
	d.goods.put(carttest.Account())
	token := tokenOf("old")
	fields := []cart.FieldValue{{Name: "email", Value: " jose\u0301@example.com"}, {Name: "region", Value: "us"}}
	old := cart.NewLine{
		ID: cart.NewLineID(5, 51, fields), Quantity: 1, Price: 4025, Fields: fields, Notice: "\u200b",
		Bounds: cart.Bounds{Stock: -1, Min: 1, Max: 999},
	}
	ref, attempt := redisstore.GuestRef(d.store.ID, token), redisstore.Attempt{CartID: "OLD"}
	if _, err := d.redis.Change(t.Context(), ref, redisstore.Conditions{}, attempt, redisstore.Add(old, carttest.Limits)); err != nil {
		t.Fatal(err)
	}
	priced, err := d.Read(t.Context(), d.as("", token))
	if err != nil {
		t.Fatal(err)
	}
	if l := priced.Lines[0]; l.ID != old.ID || l.Issue != nil || l.Total != 4025 || l.Fields[0].Value != " jose\u0301@example.com" {
		t.Errorf("line %s with issue %v, total %d, fields %q", l.ID, l.Issue, l.Total, l.Fields)
	}
	three := service.Edit{Item: old.ID, Edit: cart.Edit{Quantity: new(int64(3))}}
	if changed, err := d.Edit(t.Context(), d.as("", token), redisstore.Conditions{}, three); err != nil || changed.Lines[0].Quantity != 3 {
		t.Errorf("set to 3: %v, %v", linesOf(changed.Cart), err)
	}
	if changed, err := d.Remove(t.Context(), d.as("", token), redisstore.Conditions{}, old.ID); err != nil || len(changed.Lines) != 0 {
		t.Errorf("removed: %v, %v", linesOf(changed.Cart), err)
	}
}
