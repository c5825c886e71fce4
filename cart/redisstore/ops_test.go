package redisstore_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/redisstore"
	"commerce/deploy/assert"
)

// However large the metadata is that each operation of a list changes, Redis decodes, encodes and writes it once.
func TestOps_WriteMetadataOnce(t *testing.T) {
	t.Parallel()
	r := newReader(t, startPair(t).master.URL, false)
	ref, large, list := newRefs(1)[0], cart.Metadata{}, make([]redisstore.Change, 50)
	for i := range cart.MaxMetadata {
		large[fmt.Sprint("n", i)] = strings.Repeat("\U0001F600", cart.MaxMetadataValue)
	}
	for i := range list {
		list[i] = redisstore.SetMetadata(cart.Metadata{"n0": fmt.Sprint("12 @", i)}, carttest.Limits)
	}
	change := func(c redisstore.Change) redisstore.Outcome {
		return assert.Must(r.Change(t.Context(), ref, redisstore.Conditions{}, redisstore.Attempt{CartID: "ID"}, c))(t)
	}
	written := func() int {
		_, n, _ := strings.Cut(r.client.Info(t.Context(), "replication").Val(), "master_repl_offset:")
		n, _, _ = strings.Cut(n, "\r\n")
		return assert.Must(strconv.Atoi(n))(t)
	}
	change(redisstore.SetMetadata(large, carttest.Limits))
	before := written()
	o := change(redisstore.Ops(false, list))
	assert.Equal(t, o.Metadata["n0"], "12 @49", "the last value")
	assert.Equal(t, len(o.Metadata), cart.MaxMetadata, "names")
	size := written() - before
	assert.That(t, size > 30_000 && size < 100_000, "the list wrote %d bytes", size)
}

// Each outcome of a list is what the single call gives in its place. A list of all or nothing is refused
// as the first single call is that is refused.
func TestOps_EqualTheSingleCalls(t *testing.T) {
	t.Parallel()
	onBothRedises(t, func(t *testing.T, r *rapid.T, store *redisstore.Store) {
		id := newStoreID()
		single, each, all := redisstore.CustomerRef(id, "single"), redisstore.CustomerRef(id, "each"), redisstore.CustomerRef(id, "all")
		change := func(ref redisstore.Ref, c redisstore.Change) redisstore.Outcome {
			o, err := store.Change(t.Context(), ref, redisstore.Conditions{}, redisstore.Attempt{CartID: "A"}, c)
			if err != nil {
				r.Fatal(err)
			}
			return o
		}
		var before cart.Cart
		for range rapid.IntRange(0, 4).Draw(r, "before") {
			d := drawOperation(r, before)
			for _, ref := range []redisstore.Ref{each, all, single} {
				before = change(ref, d.change).Cart
			}
		}
		list := drawList(r, before)
		changes, outcomes := make([]redisstore.Change, len(list)), make([]redisstore.OpOutcome, len(list))
		after := before
		for i, d := range list {
			changes[i] = d.change
			o := redisstore.Outcome{Stored: redisstore.Stored{Cart: after}}
			if d.onlyListed || d.ofLine && !after.Has(d.named) { // a product names a line only in a single call
				if _, _, refusal := d.inList(after, Room{}); refusal != nil {
					o.Status, o.Refusal = redisstore.Refused, *refusal
				}
			} else {
				o = change(single, d.change)
				if diff := gocmp.Diff(o.Cart, d.change.After(after), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(cart.Cart{}, "ID", "Version", "Mark", "ExpiresAt")); diff != "" {
					r.Fatalf("%+v (-script +After)\n%s", d.change, diff)
				}
			}
			after = o.Cart
			if line := cmp.Or(o.ChangedLine, d.named); after.Has(line) {
				outcomes[i].Line = line
			}
			if o.Status == redisstore.Refused {
				outcomes[i] = redisstore.OpOutcome{Refusal: &o.Refusal}
			}
		}
		judge := func(what string, o redisstore.Outcome, refusedAt int) {
			want := redisstore.Outcome{Status: redisstore.Applied, Ops: outcomes}
			want.Cart = after
			if after.Version != before.Version {
				want.Version = before.Version + 1
			}
			if refusedAt >= 0 {
				want = redisstore.Outcome{Status: redisstore.Refused, Refusal: *outcomes[refusedAt].Refusal, Op: refusedAt}
				want.Cart = before
			}
			if diff := gocmp.Diff(want, o, likeTwins, cmpopts.IgnoreUnexported(redisstore.Stored{}), cmpopts.IgnoreFields(redisstore.Stored{}, "Agent")); diff != "" {
				r.Fatalf("%s (-single calls +list)\n%s", what, diff)
			}
		}
		judge("each", change(each, redisstore.Ops(true, changes)), slices.IndexFunc(outcomes, func(o redisstore.OpOutcome) bool {
			return o.Refusal != nil && o.Refusal.Code == cart.LineChanged
		}))
		judge("all", change(all, redisstore.Ops(false, changes)), slices.IndexFunc(outcomes, func(o redisstore.OpOutcome) bool { return o.Refusal != nil }))
	})
}

// A list of an agent notes the version that it has made or found. A refused list, and any other change, notes nothing.
func TestOps_NoteWhatAnAgentHasSeen(t *testing.T) {
	t.Parallel()
	onBothRedises(t, func(t *testing.T, r *rapid.T, store *redisstore.Store) {
		ref := redisstore.CustomerRef(newStoreID(), "c")
		var held redisstore.Stored
		noted := ""
		for range rapid.IntRange(1, 6).Draw(r, "lists") {
			var changes []redisstore.Change
			for _, d := range drawList(r, held.Cart) {
				changes = append(changes, d.change)
			}
			agents, cancels := rapid.Bool().Draw(r, "of the agent"), rapid.IntRange(0, 3).Draw(r, "cancels") == 0
			changes = slices.DeleteFunc(changes, func(c redisstore.Change) bool { return c.Is("agent") })
			if agents {
				changes = append(changes, redisstore.NoteAgent(cancels))
			}
			o, err := store.Change(t.Context(), ref, redisstore.Conditions{}, redisstore.Attempt{CartID: "A"}, redisstore.Ops(rapid.Bool().Draw(r, "each"), changes))
			if err != nil {
				r.Fatal(err)
			}
			switch held = o.Stored; {
			case !agents || o.Status != redisstore.Applied || held.ID == "":
			case cancels:
				noted = redisstore.AgentCanceled
			default:
				noted = held.Moment()
			}
			if read, err := store.Load(t.Context(), ref); err != nil || held.Agent != noted || read.Agent != noted {
				r.Fatalf("the list answers %q, and the cart has %q, %v, want %q", held.Agent, read.Agent, err, noted)
			}
		}
	})
}

// onBothRedises checks a property of lists on a real Redis and on miniredis.
func onBothRedises(t *testing.T, check func(*testing.T, *rapid.T, *redisstore.Store)) {
	small := redisstore.New(redisstore.Config{Client: dial(t, "redis://"+miniredis.RunT(t).Addr()), TTL: usualTTLs})
	for name, store := range map[string]*redisstore.Store{"Redis": openBench(t).store, "miniredis": small} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(r *rapid.T) { check(t, r, store) })
		})
	}
}
