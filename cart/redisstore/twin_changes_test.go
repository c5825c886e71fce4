package redisstore_test

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"commerce/cart"
	"commerce/cart/money"
	"commerce/cart/redisstore"
)

// change makes a change of a cart. The twin takes over what that has left: only merges are compared.
func (w *twins) change(t *rapid.T, ref redisstore.Ref, on redisstore.Conditions, rule cart.Rule) {
	t.Helper()
	own := w.carts[ref]
	with := redisstore.Attempt{CartID: w.newID(), Ignore: own.underWay, Limits: allRoom}
	if _, err := w.store.Change(w.ctx, ref, on, with, cart.Change{Rule: rule}); err != nil {
		t.Fatal(err)
	}
	found, left := w.observe(ref)
	own.Record, own.lapses = found, time.Time{}
	if left >= 0 {
		own.lapses = w.clock.Add(left)
	}
}

// remembersMuch sometimes begins with as many keys and stamps as are kept, or more. The
// stamps are numbered from first.
func (w *twins) remembersMuch(t *rapid.T, ref redisstore.Ref, first int) {
	switch rapid.IntRange(0, 7).Draw(t, "much to remember") {
	case 0:
		w.manyKeys(t, ref)
	case 1, 2:
		for i := range cart.StampsKept + rapid.IntRange(-1, 2).Draw(t, "stamps") {
			stamp := fmt.Sprintf("stmp%02d", first+i)
			w.change(t, ref, redisstore.Conditions{Stamp: stamp}, cart.SetCoupon(stamp))
		}
	}
}

// manyKeys lays what as many changes with a key leave as are kept.
func (w *twins) manyKeys(t *rapid.T, ref redisstore.Ref) {
	var fields []any
	own := w.carts[ref]
	for i := range KeysKept {
		key, at := fmt.Sprintf("k%d", i+1), w.clock.Add(-time.Duration(i+1)*3*time.Minute)
		own.Memory.Keys = putIn(own.Memory.Keys, key, cart.KeyUse{At: at, Fingerprint: "f1"})
		fields = append(fields, key, fmt.Sprintf("%d f1", at.Add(-w.passed).UnixMilli()))
	}
	pipe := w.client.Pipeline()
	pipe.HSet(w.ctx, ref.KeysKey(), fields...)
	pipe.PExpire(w.ctx, ref.KeysKey(), KeyLife)
	if _, err := pipe.Exec(w.ctx); err != nil {
		t.Fatal(err)
	}
}

func (w *twins) reserve(t *rapid.T, customer, guest redisstore.Ref, note string, b cart.Reservation, limits cart.Limits) {
	w.step(customer, func() any {
		switch err := w.store.Reserve(w.ctx, customer, guest, note, b, limits); err {
		case nil:
			return nil
		case cart.ErrNoRoom, cart.ErrCrowded:
			return err.Error()
		default:
			t.Fatal(err)
			return nil
		}
	}, func(r Record, _ time.Time) becomes {
		r, err := r.Reserve(note, b, limits)
		if err != nil {
			return becomes{r, err.Error(), false}
		}
		return becomes{r, nil, true}
	})
}

func (w *twins) forget(t *rapid.T, customer redisstore.Ref, note string) {
	w.step(customer, func() any {
		if err := w.store.Forget(w.ctx, customer, note); err != nil {
			t.Fatal(err)
		}
		return nil
	}, func(r Record, _ time.Time) becomes { return becomes{r.Forget(note), nil, true} })
}

func drawNote(t *rapid.T) string {
	return rapid.SampledFrom([]string{"m1", "m2", "m3", "m4"}).Draw(t, "note")
}

func drawRule(t *rapid.T) cart.Rule {
	switch rapid.IntRange(0, 5).Draw(t, "what") {
	case 0:
		return cart.Remove(cart.Item{ID: rapid.SampledFrom(twinLines).Draw(t, "item").ID})
	case 1:
		return cart.SetCoupon(rapid.SampledFrom([]string{"", "TEN", "FIVE"}).Draw(t, "coupon"))
	case 2:
		return cart.SetMetadata(drawMetadata(t))
	}
	return cart.Add(drawNewLine(t))
}

func drawConditions(t *rapid.T) (on redisstore.Conditions) {
	switch rapid.SampledFrom([]string{"key", "stamp", "neither"}).Draw(t, "repeats are known by") {
	case "key":
		on.Key, on.Fingerprint = rapid.SampledFrom([]string{"k1", "k2", "k3", "k256", "k257", "k258"}).Draw(t, "key"), "f1"
	case "stamp":
		on.Stamp = rapid.SampledFrom([]string{"stmp01", "stmp02", "stmp03", "stmp17", "stmp18"}).Draw(t, "stamp")
	}
	return on
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
