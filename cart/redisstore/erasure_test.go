package redisstore_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth"
	"commerce/cart/redisstore"
	"commerce/cart/share"
	"commerce/cart/ucp/agent"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// keysOf are the keys that a shopper may have, by the function that builds them.
func keysOf(shopper redisstore.Ref) map[string]string {
	return map[string]string{
		"CartKey":    shopper.CartKey(),
		"KeysKey":    shopper.KeysKey(),
		"claimedKey": shopper.ClaimedKey(),
		"movedKey":   shopper.MovedKey(),
		"cameKey":    shopper.CameKey(),
		"offeredKey": shopper.OfferedKey("IHC2CEN3UINNEVCRMTWP"),
		"BesideKey":  shopper.BesideKey("shares:IHC2CEN3UINNEVCRMTWP"),
		"OtherKey":   shopper.OtherKey("s", shopper.TokenDigest()),
	}
}

func TestErase_DeletesEachKindOfKey(t *testing.T) {
	t.Parallel()
	store := newStoreID()
	guest := redisstore.GuestRef(store, auth.CartToken(strings.Repeat("g", 22)))
	other := redisstore.GuestRef(store, auth.CartToken(strings.Repeat("h", 22)))
	for name, shopper := range map[string]redisstore.Ref{"guest": other, "customer": redisstore.CustomerRef(store, "1001")} {
		for _, url := range []string{ephemeral.Redis(t), ephemeral.Cluster(t)} {
			r := newReader(t, url)
			keys := keysOf(shopper)
			keys["merging"] = guest.ClaimedKey() // of the guest who is becoming this shopper
			others := keysOf(redisstore.CustomerRef(store, "10011"))
			maps.Copy(others, map[string]string{
				"another store's": redisstore.CustomerRef(newStoreID(), "1001").CartKey(),
				"another guest's": redisstore.GuestRef(store, auth.CartToken(strings.Repeat("o", 22))).ClaimedKey(),
			})
			put(t, r.client, keys, shopper)
			put(t, r.client, others, redisstore.CustomerRef(store, "10011"))
			_, err := r.Erase(t.Context(), shopper)
			assert.Require(t, err == nil, "%s: %v", name, err)
			for of, key := range keys {
				n, err := r.client.Exists(t.Context(), key).Result()
				assert.That(t, n == 0 && err == nil, "%s: %s is still stored: %s", name, of, key)
			}
			for of, key := range others {
				n, err := r.client.Exists(t.Context(), key).Result()
				assert.That(t, n != 0 && err == nil, "%s: %s of someone else was deleted: %s", name, of, key)
			}
		}
	}
}

// put stores a hash under each key. If it is taken for a claimed cart, it belongs to owner, and if for a list of shares,
// it has that of keysOf.
func put(t *testing.T, client redis.UniversalClient, keys map[string]string, owner redisstore.Ref) {
	t.Helper()
	for _, key := range keys {
		assert.NoError(t, client.HSet(t.Context(), key, "i", "ID", "9001", "1 1 500", "o", owner.String()+" m1", owner.TokenDigest(), "1 1 500").Err())
		client.Expire(t.Context(), key, time.Minute)
	}
}

// failing lets the last member of each pipeline that reads members fail, as if its node were away.
type failing struct{}

func (failing) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (failing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		_ = next(ctx, cmds)
		if last := cmds[len(cmds)-1]; last.Name() == "hget" {
			last.SetErr(io.ErrUnexpectedEOF)
		}
		return redis.Nil // go-redis returns the first error, here that of a missing member
	}
}

// A cart whose name could not be read may be the shopper's.
func TestErase_FailsIfOneOfSeveralNodesDoes(t *testing.T) {
	t.Parallel()
	store := newStoreID()
	shopper := redisstore.CustomerRef(store, "1001")
	guest := redisstore.GuestRef(store, auth.CartToken(strings.Repeat("g", 22)))
	for _, url := range []string{ephemeral.Redis(t), ephemeral.Cluster(t)} {
		client := dial(t, url)
		put(t, client, map[string]string{"merging": guest.ClaimedKey()}, shopper)
		client.AddHook(failing{})
		_, err := redisstore.New(redisstore.Config{Client: client}).Erase(t.Context(), shopper)
		assert.That(t, errors.Is(err, io.ErrUnexpectedEOF), "erase: %v", err)
	}
}

// A new kind of key must be erased too.
func TestErase_KnowsEachFunctionThatBuildsAKey(t *testing.T) {
	t.Parallel()
	source := assert.Must(os.ReadFile("keys.go"))(t)
	var builders []string
	for _, method := range regexp.MustCompile(`(?m)^func \(.*?\) (\w+Key)\(`).FindAllStringSubmatch(string(source), -1) {
		builders = append(builders, method[1])
	}
	slices.Sort(builders)
	known := slices.Sorted(maps.Keys(keysOf(redisstore.CustomerRef(1, "1001"))))
	assert.That(t, slices.Equal(builders, known), "keys.go builds keys with %v, and the test of Erase has keys of %v", builders, known)
}

// then is a hook that runs once, after the first command that it is to follow.
type then struct {
	follows func(redis.Cmder, error) bool
	run     func()
	ran     atomic.Bool
}

func (*then) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *then) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if h.follows(cmd, err) && h.ran.CompareAndSwap(false, true) {
			h.run()
		}
		return err
	}
}

func (h *then) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return h.follows(cmd, err) }) && h.ran.CompareAndSwap(false, true) {
			h.run()
		}
		return err
	}
}

// eraseUntilNothing repeats Erase as its doc says, with something else that happens during it.
func (d *desk) eraseUntilNothing(ref redisstore.Ref, during *then) {
	d.t.Helper()
	client := dial(d.t, ephemeral.Redis(d.t))
	client.AddHook(during)
	eraser := redisstore.New(redisstore.Config{Client: client, Beside: append(share.Stored(), agent.Stored()...)})
	for range 5 {
		if len(assert.Must(eraser.Erase(d.t.Context(), ref))(d.t)) == 0 {
			return
		}
	}
	d.t.Error("there is always something to erase")
}

// The customer's cart with the note has been erased, and the merge goes on.
func TestErase_FindsACartThatIsMergedMeanwhile(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "1×1")
	d.dieAfter(claimedStep, d.token)
	assert.NoError(t, d.client.Del(t.Context(), d.customer.CartKey()).Err())
	d.eraseUntilNothing(d.customer, &then{
		follows: func(cmd redis.Cmder, _ error) bool { return cmd.Name() == "scan" },
		run:     func() { d.read(d.as("c", d.token)) },
	})
	d.wantLines(d.as("c", ""), "")
}

func TestErase_FindsAShareThatIsMadeMeanwhile(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "1×1", "")
	d.share(d.as("c", ""), "first")
	var code string
	d.eraseUntilNothing(d.customer, &then{
		follows: func(cmd redis.Cmder, _ error) bool { return cmd.Name() == "hkeys" }, // the cart is still there
		run:     func() { code = d.share(d.as("c", ""), "second").Code },
	})
	assert.That(t, code != "", "nothing was shared")
	d.wantShared(code, "")
}
