package redisstore_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"commerce/auth/limit"
	"commerce/auth/problem"
	"commerce/auth/sealed"
	"commerce/cart/redisstore"
	"commerce/cart/service"
	"commerce/cart/ucp/agent"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// instance returns another instance of the service, with keys of its own; "" for none.
func (d *desk) instance(current, previous string) *agent.Carts {
	c := d.Config
	c.Keys = assert.Must(sealed.New(strings.Repeat(current, 32), strings.Repeat(previous, 32)))(d.t)
	c.Redis = redisstore.New(redisstore.Config{Client: d.client, TTL: usualTTLs, Now: d.now})
	return agent.New(service.New(c))
}

func fingerprint(body string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(body))) }

// keyed makes a keyed call of an agent, whose result is what do returns and the number of the run.
type keyed struct {
	carts *agent.Carts
	runs  atomic.Int64
}

func (k *keyed) call(ctx context.Context, v *agent.Visit, key, body string, do func(context.Context, service.Conditions) (agent.Cart, error)) (string, error) {
	body = fingerprint(body)
	result, err := k.carts.Once(ctx, v, key, body, func(ctx context.Context) ([]byte, error) {
		made, err := do(ctx, service.Conditions{Key: key, Fingerprint: body})
		if errors.Is(err, agent.ErrChangedUnseen) {
			err = nil
		}
		if err != nil {
			return nil, err
		}
		return fmt.Appendf(nil, "%s %s, run %d\x00\n", made.ID, linesOf(made.Cart), k.runs.Add(1)), nil
	})
	return string(result), err
}

func (k *keyed) create(d *desk, key, lines string) (string, error) {
	v := k.carts.NewVisit(d.agent(), key)
	return k.call(d.t.Context(), v, key, lines, func(ctx context.Context, on service.Conditions) (agent.Cart, error) {
		return k.carts.Create(ctx, v, on, wants(lines))
	})
}

func (k *keyed) replace(d *desk, id, key string, r agent.Replacement) (string, error) {
	v, _ := k.carts.Visit(d.agent(), id)
	return k.call(d.t.Context(), v, key, fmt.Sprint(r), func(ctx context.Context, on service.Conditions) (agent.Cart, error) {
		return k.carts.Replace(ctx, v, on, r)
	})
}

// Attempts of one key at two instances: all that get a result get the same one, and the cart has changed once.
func TestOnce_OneKeyHasOneResultAndOneChange(t *testing.T) {
	t.Parallel()
	for round := range 20 {
		d := openDesk(t, "", "")
		instances := []*keyed{{carts: d.agents}, {carts: d.instance("k", "p")}}
		race := func(attempt func(*keyed) (string, error)) string {
			results := make([]string, 8)
			var all sync.WaitGroup
			for i := range results {
				all.Go(func() {
					for {
						result, err := attempt(instances[i%2])
						if results[i] = result; !isProblem(err, problem.Unavailable) {
							assert.NoError(t, err)
							return
						}
					}
				})
			}
			all.Wait()
			for _, result := range results {
				assert.Equal(t, result, results[0], "round %d", round)
			}
			return results[0]
		}
		result := race(func(k *keyed) (string, error) { return k.create(d, "create", "1×1 2×2") })
		id, _, _ := strings.Cut(result, " ")
		made, _ := d.read(d.by(id))
		assert.Equal(t, fmt.Sprint(linesOf(made), made.Version), "1×1 2×21", "created")
		again := race(func(k *keyed) (string, error) { return k.replace(d, id, "replace", wants("1×5", shownAs(id, made))) })
		now, _ := d.read(d.by(id))
		assert.Equal(t, fmt.Sprint(linesOf(now), now.Version), "1×52", "replaced")
		// Refused calls have a result too.
		d.add(d.by(id), 3, 1)
		refused := race(func(k *keyed) (string, error) { return k.replace(d, id, "refused", wants("1×9", shownAs(id, made))) })
		assert.Equal(t, race(func(k *keyed) (string, error) { return k.replace(d, id, "refused", wants("1×9", shownAs(id, made))) }), refused, "refused again")
		assert.Equal(t, race(func(k *keyed) (string, error) { return k.replace(d, id, "replace", wants("1×5", shownAs(id, made))) }), again, "replaced again")
		assert.Equal(t, race(func(k *keyed) (string, error) { return k.create(d, "create", "1×1 2×2") }), result, "created again")
		d.wantLines(d.by(id), "1×5 3×1")
		assert.Equal(t, instances[0].runs.Load()+instances[1].runs.Load(), int64(3), "runs")
	}
}

// The Redis client sends a change with a key again when its reply is lost.
func TestOnce_AChangeThatIsSentTwiceIsNoConflict(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "")
	k := &keyed{carts: d.agents}
	v := d.agents.NewVisit(d.agent(), "create")
	result, err := k.call(t.Context(), v, "create", "1×1", func(ctx context.Context, on service.Conditions) (agent.Cart, error) {
		assert.Must(d.agents.Create(ctx, v, on, wants("1×1")))(t)
		return d.agents.Create(ctx, v, on, wants("1×1"))
	})
	assert.That(t, err == nil && strings.Contains(result, "1×1, run 1"), "%q, %v", result, err)
}

// An attempt that has died after its change has no result: the next one finds the change, and makes none.
func TestOnce_AnAttemptThatDiedIsTakenUp(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]*desk{
		"Redis":     openDesk(t, "", ""),
		"a cluster": openDeskOn(t, dial(t, ephemeral.Cluster(t)), time.Now),
		"miniredis": openDeskOn(t, dial(t, "redis://"+miniredis.RunT(t).Addr()), time.Now),
	} {
		t.Run(name, func(t *testing.T) { takesUp(t, d) })
	}
}

func takesUp(t *testing.T, d *desk) {
	k := &keyed{carts: d.agents}
	dies := func(v *agent.Visit, key, body string, do func(service.Conditions) (agent.Cart, error)) {
		body = fingerprint(body)
		_, err := d.agents.Once(t.Context(), v, key, body, func(context.Context) ([]byte, error) {
			assert.Must(do(service.Conditions{Key: key, Fingerprint: body}))(t)
			return []byte("lost"), errors.New("dead")
		})
		assert.That(t, err != nil && err.Error() == "dead", "died with %v", err)
	}
	v := d.agents.NewVisit(d.agent(), "create")
	dies(v, "create", "1×1", func(on service.Conditions) (agent.Cart, error) {
		return d.agents.Create(t.Context(), v, on, wants("1×1"))
	})
	result := assert.Must(k.create(d, "create", "1×1"))(t)
	assert.Equal(t, result, v.ID+" 1×1, run 1\x00\n", "created")

	now, _ := d.read(d.by(v.ID))
	dies(d.opens(v.ID), "cancel", "", func(on service.Conditions) (agent.Cart, error) {
		return d.agents.Cancel(t.Context(), d.opens(v.ID), on, agent.Element{ID: shownID(shownAs(v.ID, now), "1")})
	})
	canceled := d.opens(v.ID)
	assert.Must(k.call(t.Context(), canceled, "cancel", "", func(ctx context.Context, on service.Conditions) (agent.Cart, error) {
		return d.agents.Cancel(ctx, canceled, on, agent.Element{ID: shownID(shownAs(v.ID, now), "1")})
	}))(t)
}

func TestOnce_AnotherRequestUnderAKeyIsAConflict(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "")
	k := &keyed{carts: d.agents}
	created := assert.Must(k.create(d, "key", "1×1"))(t)
	id, _, _ := strings.Cut(created, " ")
	made, _ := d.read(d.by(id))
	replaced := assert.Must(k.replace(d, id, "other", wants("1×2", shownAs(id, made))))(t)
	conflicts := func(name string, err error) {
		t.Helper()
		assert.That(t, isProblem(err, problem.IdempotencyConflict), "%s: %v", name, err)
		d.wantLines(d.by(id), "1×2")
	}
	_, err := k.create(d, "key", "1×2")
	conflicts("another body", err)
	_, err = k.replace(d, id, "other", wants("1×3", shownAs(id, made)))
	conflicts("another replacement", err)
	time.Sleep(2 * redisstore.Tolerance) // then it is certain that those that follow began later
	key := redisstore.GuestRef(d.store.ID, d.opens(id).Token).BesideKey("results")
	assert.NoError(t, d.client.Rename(t.Context(), key, key+"-elsewhere").Err())
	_, err = k.create(d, "key", "1×1")
	conflicts("a cart whose first result is gone", err)
	_, err = k.replace(d, id, "other", wants("1×2", shownAs(id, made)))
	conflicts("a replacement whose first result is gone", err)
	assert.NoError(t, d.client.Rename(t.Context(), key+"-elsewhere", key).Err())
	assert.Equal(t, assert.Must(k.create(d, "key", "1×1"))(t), created, "the first result")

	d.pass(24*time.Hour - time.Minute)
	assert.Equal(t, assert.Must(k.replace(d, id, "other", wants("1×2", shownAs(id, made))))(t), replaced, "after nearly a day")
	assert.Must(k.replace(d, id, "later", wants("1×2")))(t) // it keeps the others in Redis for another day
	d.pass(2 * time.Minute)
	_, err = k.create(d, "key", "1×1")
	conflicts("a cart whose first result is a day old", err)
	refused := assert.Must(k.replace(d, id, "other", wants("1×2", shownAs(id, made))))(t)
	assert.That(t, refused != replaced, "a day later, the key is forgotten, and the IDs are of a former version")

	other := d.agent()
	other.Profile += "2"
	assert.That(t, d.agents.NewVisit(other, "key").ID != id, "another platform's key opens the cart")
	assert.That(t, d.agents.NewVisit(d.agent(), "key").ID == id, "the key opens another cart")
}

// An instance that has the next key, and one that has not, meet the same cart and result.
func TestOnce_ACreateIsFoundUnderThePreviousKey(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "")
	before, after := &keyed{carts: d.instance("1", "2")}, &keyed{carts: d.instance("2", "1")}
	for i, first := range []*keyed{before, after} {
		second := []*keyed{after, before}[i]
		key := fmt.Sprint("key ", i)
		result := assert.Must(first.create(d, key, "1×1"))(t)
		assert.Equal(t, assert.Must(second.create(d, key, "1×1"))(t), result, "at the other instance")
		id, _, _ := strings.Cut(result, " ")
		v, ok := second.carts.Visit(d.agent(), id)
		assert.That(t, ok && linesOf(assert.Must(second.carts.Read(t.Context(), v))(t).Cart) == "1×1", "the other instance does not open it")
		_, err := second.create(d, key, "1×2")
		assert.That(t, isProblem(err, problem.IdempotencyConflict), "another body: %v", err)
		d.client.Del(t.Context(), redisstore.GuestRef(d.store.ID, v.Token).BesideKey("results"))
		_, err = second.create(d, key, "1×1")
		assert.That(t, isProblem(err, problem.IdempotencyConflict), "without the first result: %v", err)
	}
	_, ok := d.instance("3", "2").Visit(d.agent(), d.instance("1", "").NewVisit(d.agent(), "").ID)
	assert.That(t, !ok, "an ID of a key that is gone is taken for one")
}

// While an attempt runs, another waits; but no longer than the first may take.
func TestOnce_OneAttemptRunsAtATime(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "")
	k := &keyed{carts: d.agents}
	id := d.agentCreates("1×1").ID
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	result := string(assert.Must(d.agents.Once(ctx, d.opens(id), "key", fingerprint(fmt.Sprint(wants("1×2"))), func(context.Context) ([]byte, error) {
		_, err := k.replace(d, id, "key", wants("1×2"))
		busy, ok := errors.AsType[*problem.Error](err)
		assert.That(t, ok && busy.Code == problem.Unavailable && busy.RetryAfter == time.Second, "while an attempt runs: %v", err)
		d.pass(62 * time.Second)
		assert.Must(k.replace(d, id, "key", wants("1×2")))(t)
		return []byte("late"), nil
	}))(t))
	assert.Equal(t, result, id+" 1×2, run 1\x00\n", "the first result")
}

// Made-up IDs and keys must not fill Redis, and one cart keeps only so many results.
func TestOnce_StoresNoMoreThanIsCounted(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "")
	c := d.Config
	c.Creation = limit.NewQuota(limit.Config{Name: "create", Rates: []limit.Rate{{Uses: 2, Per: time.Hour}}})
	k := &keyed{carts: agent.New(service.New(c))}
	result := assert.Must(k.create(d, "key 1", "1×1"))(t)
	assert.Must(k.create(d, "key 2", "1×1"))(t) // counted once, not for its result and for its cart
	before := len(d.keys())
	_, err := k.create(d, "key 3", "1×1")
	assert.That(t, isProblem(err, problem.RateLimited), "a third cart: %v", err)
	id, _, _ := strings.Cut(result, " ")
	_, err = k.replace(d, id[:4]+strings.Repeat("A", 26), "key", wants("1×1"))
	assert.That(t, isProblem(err, problem.RateLimited), "a made-up ID: %v", err)
	assert.Equal(t, len(d.keys()), before, "keys after refused calls")

	first := assert.Must(k.replace(d, id, "first", wants("1×9")))(t)
	time.Sleep(2 * time.Millisecond) // the cart's keys of one millisecond are forgotten in any order
	for i := range 254 {
		assert.Must(k.replace(d, id, fmt.Sprint(i), wants("1×9")))(t)
	}
	assert.Equal(t, assert.Must(k.replace(d, id, "first", wants("1×9")))(t), first, "of 256")
	assert.Must(k.replace(d, id, "one more", wants("1×9")))(t)
	_, err = d.agents.Once(t.Context(), d.opens(id), "and one more", fingerprint(fmt.Sprint(wants("1×9"))), func(context.Context) ([]byte, error) {
		return nil, errors.New("dead")
	})
	assert.That(t, err != nil, "an attempt without a result")
	assert.Must(k.replace(d, id, "and one more", wants("1×9")))(t) // the same call
	assert.That(t, assert.Must(k.replace(d, id, "first", wants("1×9")))(t) != first, "the oldest of 257 results is still kept")
	key := redisstore.GuestRef(d.store.ID, d.opens(id).Token).BesideKey("results")
	assert.Equal(t, d.client.HLen(t.Context(), key).Val(), int64(258), "members, with the order and the fence")
	assert.That(t, d.ttl(key) > 23*time.Hour && d.ttl(key) <= 24*time.Hour, "the results expire in %v", d.ttl(key))
}

// Redis refuses writes before anything is changed.
func TestOnce_RunsNothingThatItCannotKeep(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "")
	id := d.agentCreates("1×1").ID
	key := redisstore.GuestRef(d.store.ID, d.opens(id).Token).BesideKey("results")
	assert.NoError(t, d.client.Set(t.Context(), key, "of another type", time.Minute).Err())
	_, err := (&keyed{carts: d.agents}).replace(d, id, "key", wants("1×2"))
	assert.That(t, isProblem(err, problem.Unavailable), "%v", err)
	d.wantLines(d.by(id), "1×1")
}
