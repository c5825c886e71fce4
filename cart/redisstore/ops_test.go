package redisstore_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/redisstore"
	"commerce/deploy/assert"
)

func TestOps_MakesAListInOneStep(t *testing.T) {
	t.Parallel()
	store := openBench(t).store
	{
		ref := redisstore.CustomerRef(newStoreID(), "c")
		limits := cart.Limits{Lines: 3, Quantity: 9, LineText: 10, CartText: 20}
		add := func(id cart.LineID, quantity int64) redisstore.Change {
			return redisstore.Add(cart.NewLine{ID: id, Quantity: quantity, Price: 5, Bounds: cart.Bounds{Stock: 6, Min: 1, Max: 9}}, limits)
		}
		send := func(each bool, list ...redisstore.Change) redisstore.Outcome {
			on := redisstore.Conditions{Key: "k", Fingerprint: "f"}
			return assert.Must(store.Change(t.Context(), ref, on, redisstore.Attempt{CartID: "A"}, redisstore.Ops(each, list)))(t)
		}
		same := cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(redisstore.Stored{})}

		o := send(false, add("1", 2), add("2", 7))
		assert.That(t, o.Status == redisstore.Refused && o.Op == 1 && o.Refusal.Code == problem.InsufficientStock && o.ID == "", "%+v", o)
		list := []redisstore.Change{
			add("1", 2), redisstore.RefusedOp(problem.PlanUnavailable), add("2", 7), redisstore.Remove("3"), add("1.p1", 1), redisstore.Remove("2"),
			redisstore.SetMetadata(cart.Metadata{"a": "xyz", "b": ""}, limits), redisstore.SetQuantity("2", 1, cart.Bounds{Max: 9}, ""),
		}
		want := []redisstore.OpOutcome{
			{Line: "1"}, {Refusal: &cart.Refusal{Code: problem.PlanUnavailable}}, {Refusal: &cart.Refusal{Code: problem.InsufficientStock}},
			{}, {Line: "1.p1"}, {}, {}, {Refusal: &cart.Refusal{Code: problem.ItemNotFound}},
		}
		for _, status := range []redisstore.Status{redisstore.Applied, redisstore.Replayed} {
			o = send(true, list...)
			diff := cmp.Diff(want, o.Ops, same)
			assert.That(t, o.Status == status && o.Version == 1 && diff == "", "%s: %+v (-want +got)\n%s", status, o, diff)
			assert.Equal(t, o.Metadata["a"], "xyz", "metadata")
			assert.Equal(t, len(o.Lines), 2, "lines")
		}
	}
}
