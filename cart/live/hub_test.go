package live_test

import (
	"context"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/live"
	"commerce/cart/redisstore"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// sees waits for the next sighting of a listener, and compares it with a tag; "" for gone.
func sees(t *testing.T, l *live.Listener, want string) {
	t.Helper()
	got := next(t, l)
	if want == "" {
		assert.Equal(t, got, live.Sighting{Tag: "0.0.0", Gone: true}, "sighting")
	} else {
		assert.That(t, got.Tag == want && !got.Gone, "sighting %+v, want %s", got, want)
	}
}

func next(t *testing.T, l *live.Listener) live.Sighting {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ephemeral.Patience(20*time.Second))
	defer cancel()
	return assert.Must(await(ctx, l))(t)
}

func await(ctx context.Context, l *live.Listener) (live.Sighting, error) {
	woken := make(chan struct{}, 1)
	l.Wake(func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	})
	for {
		if s, ok, err := l.Next(); ok || err != nil {
			return s, err
		}
		select {
		case <-woken:
		case <-ctx.Done():
			return live.Sighting{}, ctx.Err()
		}
	}
}

func briefly(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), ephemeral.Patience(time.Second))
	t.Cleanup(cancel)
	return ctx
}

func reaches(t *testing.T, l *live.Listener, tag string) {
	t.Helper()
	for got := next(t, l); got.Tag != tag; got = next(t, l) {
		assert.Require(t, !got.Gone, "the cart is gone before %s", tag)
	}
}

func (c carts) listen(ref redisstore.Ref) *live.Listener {
	c.t.Helper()
	began := time.Now()
	for {
		l, err := c.Listen(c.t.Context(), ref)
		if err == nil {
			c.t.Cleanup(l.Close)
			return l
		}
		assert.Require(c.t, time.Since(began) < ephemeral.Patience(20*time.Second), "listen: %v", err) // on a busy machine
	}
}

// listening returns a cart and a listener that has been told of it.
func listening(t *testing.T, url string) (carts, redisstore.Ref, *live.Listener) {
	t.Helper()
	r := open(t, url)
	ref := r.filled()
	l := r.listen(ref)
	next(t, l)
	return r, ref, l
}

func TestListen_SeesEachChange(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{
		"single": ephemeral.Redis(t), "cluster": ephemeral.Cluster(t), "miniredis": "redis://" + miniredis.RunT(t).Addr(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, other := open(t, asService(t, url)), open(t, url)
			ref := newRef()
			_, err := r.Listen(t.Context(), ref)
			assert.ErrorIs(t, err, live.ErrNoCart, "listen to nothing")
			first := r.add(ref).Tag()
			a, b := r.listen(ref), other.listen(ref)
			sees(t, a, first)
			sees(t, b, first)
			for range 3 {
				tag := r.add(ref).Tag()
				sees(t, a, tag)
				sees(t, b, tag)
			}
			a.Close()
			assert.Equal(t, r.Listeners(), 0, "listeners")
			sees(t, b, other.add(ref).Tag())
			assert.NoError(t, r.client.Del(t.Context(), keyOf(ref)).Err())
			sees(t, b, "")
		})
	}
}

func TestListen_DropsAListenerThatIsBehind(t *testing.T) {
	t.Parallel()
	r := open(t, ephemeral.Redis(t))
	ref := r.filled()
	l := r.listen(ref)
	for range 600 {
		r.add(ref)
	}
	_, _, err := l.Next()
	assert.ErrorIs(t, err, live.ErrBehind, "next")
}

// Before an upgrade, users.conf had no rights to announce or to subscribe.
func TestListen_NeedsRights(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t)
	users := string(assert.Must(os.ReadFile("../../deploy/redis/users.conf"))(t))
	for name, missing := range map[string][]string{
		"before":     {" &cart:*", " +publish +spublish +subscribe +ssubscribe +unsubscribe +sunsubscribe"},
		"channels":   {" &cart:*"},
		"subscribes": {" +subscribe +ssubscribe +unsubscribe +sunsubscribe"},
	} {
		limited := users
		for _, rights := range missing {
			assert.Require(t, strings.Contains(limited, rights), "users.conf does not have %s", rights)
			limited = strings.ReplaceAll(limited, rights, "")
		}
		limited = strings.ReplaceAll(limited, "user commerce", "user "+name)
		var failures atomic.Int64
		old, all := open(t, ephemeral.AsUser(t, server.URL, limited, name)), open(t, server.URL)
		old = openOn(t, redisstore.Config{Client: old.Client, PublishFailed: func() { failures.Add(1) }}, old.client)
		ref := old.filled()
		_, err := old.Listen(t.Context(), ref)
		assert.That(t, isProblem(err, problem.Unavailable), "%s: %v", name, err)
		old.add(ref)
		assert.Equal(t, failures.Load(), int64(0), "%s: failures while nobody listens", name)
		l := all.listen(ref)
		next(t, l)
		tag := old.add(ref).Tag()
		sees(t, l, tag) // a sync finds it
		assert.Equal(t, failures.Load() > 0, name != "subscribes", "%s: failures", name)
	}
}

func TestListen_SurvivesLossWhileSubscribing(t *testing.T) {
	t.Parallel()
	r, ref, l := listening(t, ephemeral.Redis(t))
	l.LoseWhileSubscribing()
	reaches(t, l, r.add(ref).Tag())
	sees(t, l, r.add(ref).Tag()) // announced: no sync is due
}

// What one listener was told before the cart of another one began must not end that.
func TestListen_SurvivesALateReplyAboutTheCartBefore(t *testing.T) {
	t.Parallel()
	r := open(t, ephemeral.Redis(t))
	came, end := make(chan struct{}), make(chan struct{}) // the first reply is late
	r.afterFirstRead(func() { close(came); <-end })
	ref := newRef()
	first := make(chan struct{})
	go func() {
		defer close(first)
		if l, err := r.Listen(t.Context(), ref); err == nil {
			l.Close()
		}
	}()
	<-came // there is no cart
	tag := r.add(ref).Tag()
	l := r.listen(ref)
	sees(t, l, tag)
	close(end)
	<-first
	reaches(t, l, r.add(ref).Tag())
}

// A lost subscription must not take memory as long as another one follows.
func TestListen_FreesALostSubscription(t *testing.T) {
	t.Parallel()
	r, ref, l := listening(t, ephemeral.Redis(t))
	freed := l.Lose()
	reaches(t, l, r.add(ref).Tag())
	ephemeral.Eventually(t, "its memory is free", freed)
}

// A slot that migrates takes its listeners along.
func TestListen_FollowsASlot(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	cluster := ephemeral.StartCluster(t)
	r, ref, l := listening(t, cluster.URL)
	nodes := r.client.(*redis.ClusterClient)
	master := assert.Must(nodes.MasterForKey(t.Context(), keyOf(ref)))(t)
	var from, to *redis.Client
	for _, node := range cluster.Nodes[:3] {
		if admin := node.Admin(); admin.Options().Addr == master.Options().Addr {
			from = admin
		} else {
			to = admin
		}
	}
	do := func(node *redis.Client, args ...any) {
		t.Helper()
		assert.NoError(t, node.Do(t.Context(), args...).Err())
	}
	slot := from.ClusterKeySlot(t.Context(), keyOf(ref)).Val()
	fromID, toID := from.ClusterMyID(t.Context()).Val(), to.ClusterMyID(t.Context()).Val()
	do(to, "cluster", "setslot", slot, "importing", fromID)
	do(from, "cluster", "setslot", slot, "migrating", toID)
	sees(t, l, r.add(ref).Tag())
	host, port, _ := strings.Cut(to.Options().Addr, ":")
	do(from, "migrate", host, port, keyOf(ref), 0, 5000)
	reaches(t, l, r.add(ref).Tag())
	do(to, "cluster", "setslot", slot, "node", toID)
	do(from, "cluster", "setslot", slot, "node", toID)
	r.add(ref)
	reaches(t, l, r.add(ref).Tag())
	reachesAtOnce(t, l, r, ref)
}

// reachesAtOnce checks that a change shows before a sync would find it. The machine may be busy, so the best of some counts.
func reachesAtOnce(t *testing.T, l *live.Listener, r carts, ref redisstore.Ref) {
	t.Helper()
	fastest := time.Hour
	for try := 0; try < 10 && fastest >= 200*time.Millisecond; try++ {
		began := time.Now()
		reaches(t, l, r.add(ref).Tag())
		fastest = min(fastest, time.Since(began))
	}
	assert.That(t, fastest < 200*time.Millisecond, "announced after %v", fastest)
}

// While Redis is away, or another server becomes master, listeners wait.
func TestListen_OutlivesRedis(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	cluster, sentinels := ephemeral.StartCluster(t), ephemeral.StartSentinels(t)
	single, frozen := ephemeral.StartRedis(t, "--appendonly", "yes"), ephemeral.StartRedis(t)
	for name, test := range map[string]struct {
		url         string
		away, again func(redisstore.Ref)
	}{
		"restart":   {single.URL, func(redisstore.Ref) { single.Kill() }, func(redisstore.Ref) { single.Restart() }},
		"freeze":    {frozen.URL, func(redisstore.Ref) { frozen.Freeze() }, func(redisstore.Ref) { frozen.Thaw() }},
		"sentinels": {sentinels.URL, func(redisstore.Ref) { sentinels.Master.Kill() }, func(redisstore.Ref) {}},
		"cluster": {cluster.URL, func(ref redisstore.Ref) {
			client := dial(t, cluster.URL).(*redis.ClusterClient)
			master := assert.Must(client.MasterForKey(t.Context(), keyOf(ref)))(t)
			for _, node := range cluster.Nodes[:3] {
				if strings.HasSuffix(node.URL, master.Options().Addr) {
					node.Kill()
				}
			}
		}, func(redisstore.Ref) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, ref, l := listening(t, test.url)
			sees(t, l, r.add(ref).Tag())
			assert.Must(r.client.Do(t.Context(), "wait", 1, 200).Result())(t)
			test.away(ref)
			time.Sleep(3 * time.Second)
			test.again(ref)
			for { // until Redis makes changes again
				change := redisstore.Change{Rule: cart.SetCodes(fmt.Sprint("C", time.Now().UnixNano()))}
				o, err := r.Change(briefly(t), ref, redisstore.Conditions{}, redisstore.Attempt{Limits: carttest.Limits}, change)
				if err == nil && o.Status == cart.Applied {
					reaches(t, l, o.Tag())
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			reachesAtOnce(t, l, r, ref)
			again := r.listen(ref)
			next(t, again)
		})
	}
}

// Under changes by several instances, each listener sees every version, and ends with the last one even if
// connections were lost.
func TestListen_MissesNothing(t *testing.T) {
	t.Parallel()
	for _, kills := range []bool{false, true} {
		t.Run(fmt.Sprint("kills ", kills), func(t *testing.T) {
			t.Parallel()
			server := ephemeral.StartRedis(t)
			admin := server.Admin()
			const instances, many, changes = 3, 4, 150
			refs := make([]redisstore.Ref, many)
			all := make([]carts, instances)
			for i := range all {
				all[i] = open(t, server.URL)
			}
			began := time.Now()
			listeners := map[*live.Listener]redisstore.Ref{}
			for i := range refs {
				refs[i] = all[0].filled()
				for _, r := range all {
					listeners[r.listen(refs[i])] = refs[i]
				}
			}
			var writers, readers sync.WaitGroup
			done := make(chan struct{})
			for _, r := range all {
				writers.Go(func() {
					for range changes {
						r.add(refs[mathrand.N(many)])
						time.Sleep(mathrand.N(4 * time.Millisecond))
					}
				})
			}
			readers.Go(func() { // each new listener asks what the cart is
				for ref := refs[0]; ; {
					select {
					case <-done:
						return
					default:
						if l, err := all[0].Listen(t.Context(), ref); err == nil {
							l.Close()
						}
					}
				}
			})
			if kills {
				readers.Go(func() {
					for {
						select {
						case <-done:
							return
						case <-time.After(mathrand.N(150 * time.Millisecond)):
							admin.Do(t.Context(), "client", "kill", "type", "pubsub")
						}
					}
				})
			}
			for l, ref := range listeners {
				readers.Go(func() {
					got := next(t, l)
					for ended := false; !ended || got.Tag != all[0].load(ref).Tag(); {
						ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
						more, err := await(ctx, l)
						cancel()
						select {
						case <-done:
							if ended = true; time.Since(began) > ephemeral.Patience(20*time.Second) {
								t.Errorf("%s is the last sighting of a cart that is %s", got.Tag, all[0].load(ref).Tag())
								return
							}
						default:
						}
						if err == nil {
							assert.That(t, kills && more.Version >= got.Version || more.Version == got.Version+1, "%s after %s", more.Tag, got.Tag)
							got = more
						}
					}
				})
			}
			writers.Wait()
			close(done)
			readers.Wait()
		})
	}
}
