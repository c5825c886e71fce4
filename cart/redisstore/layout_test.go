package redisstore_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/redisstore"
	"commerce/cart/service"
	"commerce/deploy/assert"
)

// A layout without a number, or with one of a later release, must not be misread.
func TestLayout_OfAnotherReleaseIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, renumber := range map[string]func(*desk, string) *redis.IntCmd{
		"a later one": func(d *desk, key string) *redis.IntCmd {
			return d.client.HSet(t.Context(), key, "l", "4", "n", "later1")
		},
		"no number": func(d *desk, key string) *redis.IntCmd { return d.client.HDel(t.Context(), key, "l", "n") },
	} {
		d := openDesk(t, "", "1×1")
		key := d.guest.CartKey()
		assert.NoError(t, renumber(d, key).Err())
		before := d.client.Dump(t.Context(), key).Val()
		_, readErr := d.Read(t.Context(), d.as("", d.token))
		_, addErr := d.Add(t.Context(), d.as("", d.token), redisstore.Conditions{}, cart.Addition{ProductID: 1, Quantity: 1})
		for _, err := range []error{readErr, addErr} {
			assert.That(t, isProblem(err, problem.Unavailable), "%s: got %v, want unavailable", name, err)
		}
		d.read(d.as("c", d.token)) // without the merge
		assert.Equal(t, d.client.Dump(t.Context(), key).Val(), before, "%s: the cart was changed", name)
	}
}

// Notes and stamps may lie where there is no cart. They have a layout too.
func TestLayout_HasANumberWithoutACart(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "")
	stamped := redisstore.Conditions{Stamp: "stmp01"}
	assert.Must(d.Add(t.Context(), d.as("", d.token), stamped, cart.Addition{ProductID: 1, Quantity: 1}))(t)
	d.dieAfter(claimedStep, d.token)
	for ref, prefix := range map[redisstore.Ref]string{d.customer: "m", d.guest: "r"} {
		held := d.client.HGetAll(t.Context(), ref.CartKey()).Val()
		kept := strings.Contains(" "+strings.Join(slices.Collect(maps.Keys(held)), " "), " "+prefix)
		_, exists := held["i"]
		assert.That(t, !exists && kept && held["l"] == "3", "%s holds %v", ref.String(), held)
	}
}

func TestLayout_UnknownMembersAreIgnored(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "1×1")
	d.client.HSet(t.Context(), d.guest.CartKey(), "", "", "x", "", "ی", "1", "z", "7.ABCDEF")
	d.add(d.as("", d.token), 1, 1)
	d.wantLines(d.as("", d.token), "1×2")
	d.clear(d.as("", d.token))
	assert.Equal(t, d.client.HGet(t.Context(), d.guest.CartKey(), "z").Val(), "7.ABCDEF", "what a later release has noted")
}

// A line whose text was stored in another form keeps its ID and its text.
func TestLayout_ALineWithTextNotInNormalFormCanBeReadAndChanged(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "")
	d.goods.products[5] = carttest.Account()
	fields := []cart.FieldValue{{Name: "email", Value: " jose\u0301@example.com"}, {Name: "region", Value: "us"}}
	old := cart.NewLine{
		ID: cart.NewLineID(5, 51, fields), Quantity: 1, Price: 4025, Fields: fields, Notice: "\u200b",
		Bounds: cart.Bounds{Stock: -1, Min: 1, Max: 999},
	}
	assert.Must(d.redis.Change(t.Context(), d.guest, redisstore.Conditions{}, redisstore.Attempt{CartID: "OLD", Limits: carttest.Limits}, redisstore.Only(cart.Add(old))))(t)
	priced := assert.Must(d.Read(t.Context(), d.as("", d.token)))(t)
	if l := priced.Lines[0]; l.ID != old.ID || l.Issue != nil || l.Total != 4025 || l.Fields[0].Value != " jose\u0301@example.com" {
		t.Errorf("line %s with issue %v, total %d, fields %q", l.ID, l.Issue, l.Total, l.Fields)
	}
	three := service.Edit{Item: old.ID, Edit: cart.Edit{Quantity: new(int64(3))}}
	changed, err := d.Edit(t.Context(), d.as("", d.token), redisstore.Conditions{}, three)
	assert.That(t, err == nil && changed.Lines[0].Quantity == 3, "set to 3: %v, %v", linesOf(changed.Cart), err)
	changed, err = d.Do(t.Context(), d.as("", d.token), redisstore.Conditions{}, service.Op{Remove: &old.ID})
	assert.That(t, err == nil && len(changed.Lines) == 0, "removed: %v, %v", linesOf(changed.Cart), err)
}

// Values that no release writes are refused, so that none reaches a price or a header.
func TestLayout_ValuesOutOfBoundsAreUnavailable(t *testing.T) {
	t.Parallel()
	for name, member := range map[string][2]string{
		"a quantity that overflows": {"1", "9223372036854775807 1 100"},
		"a quantity above all":      {"1", "10001 1 100"},
		"no quantity":               {"1", "0 1 100"},
		"a negative quantity":       {"1", "-1 1 100"},
		"a long line ID":            {"1" + strings.Repeat("0", 64), "1 1 100"},
		"a long cart ID":            {"i", strings.Repeat("A", 70_000)},
		"a cart ID for a header":    {"i", "A\r\nSet-Cookie: x"},
		"a version without a mark":  {"v", "1"},
		"a version below 1":         {"v", "0.ABCDEF"},
		"a mark for a header":       {"v", `1.A"B`},
		"a report that is cut":      {"g", "1763632800000 A"},
	} {
		d := openDesk(t, "", "1×1")
		assert.NoError(t, d.client.HSet(t.Context(), d.guest.CartKey(), member[0], member[1]).Err())
		_, err := d.Read(t.Context(), d.as("", d.token))
		assert.That(t, isProblem(err, problem.Unavailable), "%s: got %v, want unavailable", name, err)
	}
}
