package redisstore_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
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
	ref, large, list := newRefs(1)[0], cart.Metadata{}, make([]cart.Rule, 50)
	for i := range cart.MaxMetadata {
		large[fmt.Sprint("n", i)] = strings.Repeat("\U0001F600", cart.MaxMetadataValue)
	}
	for i := range list {
		list[i] = cart.SetMetadata(cart.Metadata{"n0": fmt.Sprint("12 @", i)})
	}
	change := func(c redisstore.Change) redisstore.Outcome {
		return assert.Must(r.Change(t.Context(), ref, redisstore.Conditions{}, redisstore.Attempt{CartID: "ID", Limits: carttest.Limits}, c))(t)
	}
	written := func() int {
		_, n, _ := strings.Cut(r.client.Info(t.Context(), "replication").Val(), "master_repl_offset:")
		n, _, _ = strings.Cut(n, "\r\n")
		return assert.Must(strconv.Atoi(n))(t)
	}
	change(redisstore.Only(cart.SetMetadata(large)))
	before := written()
	o := change(redisstore.Listed(false, list))
	assert.Equal(t, o.Metadata["n0"], "12 @49", "the last value")
	assert.Equal(t, len(o.Metadata), cart.MaxMetadata, "names")
	size := written() - before
	assert.That(t, size > 30_000 && size < 100_000, "the list wrote %d bytes", size)
}

// A list of an agent notes the version that it has made or found. A refused list, and any other change, notes nothing.
func TestOps_NoteWhatAnAgentHasSeen(t *testing.T) {
	t.Parallel()
	onBothRedises(t, func(t *testing.T, r *rapid.T, store *redisstore.Store) {
		ref := redisstore.CustomerRef(newStoreID(), "c")
		var held redisstore.Stored
		noted := ""
		for range rapid.IntRange(1, 6).Draw(r, "lists") {
			rules := make([]cart.Rule, rapid.IntRange(1, 4).Draw(r, "operations"))
			for i := range rules {
				rules[i] = drawRule(r)
			}
			agents, cancels := rapid.Bool().Draw(r, "of the agent"), rapid.IntRange(0, 3).Draw(r, "cancels") == 0
			list := redisstore.Listed(rapid.Bool().Draw(r, "each"), rules)
			if agents {
				list.Agent = map[bool]string{true: cart.AgentCanceled, false: cart.AgentSees}[cancels]
			}
			o, err := store.Change(t.Context(), ref, redisstore.Conditions{}, redisstore.Attempt{CartID: "A", Limits: carttest.Limits}, list)
			if err != nil {
				r.Fatal(err)
			}
			switch held = o.Stored; {
			case !agents || o.Status != cart.Applied || held.ID == "":
			case cancels:
				noted = cart.AgentCanceled
			default:
				noted = held.Moment()
			}
			if read, err := store.Load(t.Context(), ref); err != nil || held.Agent != noted || read.Agent != noted {
				r.Fatalf("the list answers %q, and the cart has %q, %v, want %q", held.Agent, read.Agent, err, noted)
			}
		}
	})
}

func onBothRedises(t *testing.T, check func(*testing.T, *rapid.T, *redisstore.Store)) {
	small := redisstore.New(redisstore.Config{Client: dial(t, "redis://"+miniredis.RunT(t).Addr()), TTL: usualTTLs})
	for name, store := range map[string]*redisstore.Store{"Redis": openBench(t).store, "miniredis": small} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(r *rapid.T) { check(t, r, store) })
		})
	}
}
