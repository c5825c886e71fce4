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
	"commerce/cart/money"
	"commerce/cart/redisstore"
	"commerce/deploy/assert"
)

// However large the metadata is that each operation of a list changes, Redis decodes, encodes and writes it once.
func TestOps_WriteMetadataOnce(t *testing.T) {
	t.Parallel()
	r := newReader(t, startPair(t).master.URL)
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
			before := held
			switch held = o.Stored; {
			case !agents || o.Status != cart.Applied || held.ID == "":
			case cancels:
				noted = cart.AgentCanceled
			default:
				noted = before.Since() + "|" + held.Moment()
				if before.ID == "" {
					noted = held.Moment() + "|" + held.Moment()
				}
			}
			if read, err := store.Load(t.Context(), ref); err != nil || held.Agent != noted || read.Agent != noted {
				r.Fatalf("the list answers %q, and the cart has %q, %v, want %q", held.Agent, read.Agent, err, noted)
			}
		}
	})
}

func onBothRedises(t *testing.T, check func(*testing.T, *rapid.T, *redisstore.Store)) {
	small := redisstore.New(redisstore.Config{Client: dial(t, "redis://"+miniredis.RunT(t).Addr()), TTL: usualTTLs})
	for name, store := range map[string]*redisstore.Store{"Redis": openStore(t), "miniredis": small} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(r *rapid.T) { check(t, r, store) })
		})
	}
}

func drawRule(t *rapid.T) cart.Rule {
	switch rapid.IntRange(0, 5).Draw(t, "what") {
	case 0:
		return cart.Remove(cart.Item{ID: rapid.SampledFrom(twinLines).Draw(t, "item").ID})
	case 1:
		return cart.SetCodes(rapid.SampledFrom([][]string{nil, {"TEN"}, {"FIVE", "SIX"}}).Draw(t, "codes")...)
	case 2:
		return cart.SetMetadata(drawMetadata(t))
	}
	return cart.Add(drawNewLine(t))
}

func drawMetadata(t *rapid.T) cart.Metadata {
	changes := rapid.SampledFrom([]cart.Metadata{nil, nil, nil, {"a": "x"}, {"a": ""}, {"a": "né", "1": "y"}, {"b.c": "", "a": "xyz"}}).Draw(t, "metadata")
	if from := rapid.IntRange(0, 40).Draw(t, "many names"); from < 4 {
		changes = cart.Metadata{}
		for i := range 14 {
			changes[fmt.Sprintf("n%d", 10*from+i)] = rapid.SampledFrom([]string{"", "1", "1", "1"}).Draw(t, "value")
		}
	}
	return changes
}

// twinLines are the lines that there may be. Product 12 begins like product 1.
var twinLines = []cart.NewLine{
	{ID: "1"},
	{ID: "1.p1"},
	{ID: "1.p2"},
	{ID: "12"},
	{ID: cart.NewLineID(2, 0, []cart.FieldValue{{Name: "a", Value: "xyz"}}), Fields: []cart.FieldValue{{Name: "a", Value: "xyz"}}},
	{ID: cart.NewLineID(2, 0, []cart.FieldValue{{Name: "a", Value: "w"}}), Fields: []cart.FieldValue{{Name: "a", Value: "w"}}},
	{ID: cart.NewLineID(2, 3, []cart.FieldValue{{Name: "a", Value: "é"}}), Fields: []cart.FieldValue{{Name: "a", Value: "é"}}},
}

func drawNewLine(t *rapid.T) cart.NewLine {
	l := rapid.SampledFrom(twinLines).Draw(t, "line")
	l.Quantity = rapid.Int64Range(1, 4).Draw(t, "quantity")
	l.Price = money.Amount(rapid.Int64Range(0, 3).Draw(t, "price"))
	l.Notice = rapid.SampledFrom([]string{"", "", "n", "né", "note"}).Draw(t, "notice")
	l.Metadata = drawMetadata(t)
	l.Bounds = drawBounds(t)
	return l
}

func drawBounds(t *rapid.T) cart.Bounds {
	return cart.Bounds{
		Stock: rapid.SampledFrom([]int64{-1, -1, -1, 0, 1, 3, 5, 6, 8}).Draw(t, "stock"),
		Min:   rapid.SampledFrom([]int64{1, 1, 1, 2, 3}).Draw(t, "min"),
		Max:   rapid.SampledFrom([]int64{2, 4, 6, 9, 9}).Draw(t, "max"),

		PerCart: rapid.SampledFrom([]int64{0, 0, 0, 1, 4, 7}).Draw(t, "maximum per cart"),
		Step:    rapid.SampledFrom([]int64{0, 0, 1, 2, 3}).Draw(t, "step"),
	}
}
