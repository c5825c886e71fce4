package redisstore_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/redisstore"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

type pair struct {
	t               *testing.T
	master, replica *ephemeral.Server
}

func startPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{t: t, master: ephemeral.StartRedis(t), replica: ephemeral.StartRedis(t)}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(p.master.URL, "redis://"))
	assert.NoError(t, err)
	assert.NoError(t, p.replica.Admin().ReplicaOf(t.Context(), host, port).Err())
	p.await(func() bool {
		conn := p.master.Admin().Conn()
		defer conn.Close()
		return conn.Set(t.Context(), "probe", 1, time.Second).Err() == nil && conn.Wait(t.Context(), 1, time.Second).Val() == 1
	})
	return p
}

func (p *pair) await(condition func() bool) {
	p.t.Helper()
	ephemeral.Eventually(p.t, "the condition", condition)
}

func (p *pair) drop() {
	p.t.Helper()
	p.await(func() bool {
		return strings.Contains(p.master.Admin().Info(p.t.Context(), "replication").Val(), "connected_slaves:0")
	})
}

func (p *pair) survives(r *redisstore.Store) bool {
	p.t.Helper()
	conn := r.Conn()
	defer conn.Close()
	assert.NoError(p.t, conn.Set(p.t.Context(), "cart:{written}", 1, time.Minute).Err())
	return r.Survives(p.t.Context(), conn)
}

func TestReplication_CountsAReplicaThatTheMasterForgot(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	r := redisstore.New(redisstore.Config{Client: dial(t, p.master.URL), Now: now})
	p.await(func() bool { return p.survives(r) })                                       // the replica confirms
	if err := p.replica.Admin().ReplicaOf(t.Context(), "no", "one").Err(); err != nil { // removed on purpose
		t.Fatal(err)
	}
	p.drop()
	assert.That(t, !p.survives(r), "safe right after the replica disconnected")
	ahead.Store(int64(redisstore.ReplicasRemembered))
	assert.That(t, p.survives(r), "still unsafe ten minutes after the replica disconnected")
}

func TestReplication_CountsConfiguredAndListedReplicas(t *testing.T) {
	t.Parallel()
	p := &pair{t: t, master: ephemeral.StartRedis(t)}
	list := func(n int) func(context.Context, time.Duration) (int, error) {
		return func(context.Context, time.Duration) (int, error) { return n, nil }
	}
	for name, test := range map[string]struct {
		by   redisstore.Config
		want bool
	}{
		"no replica": {redisstore.Config{}, true},
		"REDIS_MIN_REPLICAS=1 and none connected":    {redisstore.Config{MinReplicas: 1}, false},
		"the sentinels list one, and none connected": {redisstore.Config{Sentinels: list(1)}, false},
		"the sentinels list none":                    {redisstore.Config{Sentinels: list(0)}, true},
	} {
		test.by.Client = dial(t, p.master.URL)
		assert.Equal(t, p.survives(redisstore.New(test.by)), test.want, "%s: safe", name)
	}
}

// The sentinels may be unreachable while the master and its replica are not.
func TestReplication_IsConfirmedWhileTheSentinelsHang(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	hang := func(ctx context.Context, _ time.Duration) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	client := dial(t, p.master.URL)
	p.await(func() bool { // each with a store that has not asked the sentinels yet
		return p.survives(redisstore.New(redisstore.Config{Client: client, Sentinels: hang, MinReplicas: 1}))
	})
}

func TestReplication_AWriteToAReplicaIsUnsafe(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	r := redisstore.New(redisstore.Config{Client: dial(t, p.replica.URL)})
	conn := r.Conn()
	defer conn.Close()
	assert.That(t, !r.Survives(t.Context(), conn), "a replica was taken for a master without replicas")
}

func (p *pair) waits() int64 { return p.calls("wait") }

func (p *pair) calls(command string) int64 {
	p.t.Helper()
	_, after, _ := strings.Cut(p.master.Admin().Info(p.t.Context(), "commandstats").Val(), "cmdstat_"+command+":calls=")
	digits, _, _ := strings.Cut(after, ",")
	n, _ := strconv.ParseInt(digits, 10, 64)
	return n
}

// Logins with a replica that hangs: the first one waits for it, and then one in each second.
func TestReplication_OneWriteASecondWaitsForAReplicaThatHangs(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	var ahead atomic.Int64
	start := time.Now()
	d := openDeskOn(t, dial(t, p.master.URL), func() time.Time { return start.Add(time.Duration(ahead.Load())) })
	claimed := func(name string) bool { // until the replica has confirmed the merge
		key := redisstore.GuestRef(d.store.ID, tokenOf(name)).ClaimedKey()
		return p.master.Admin().Exists(t.Context(), key).Val() > 0
	}
	login := func(name string) {
		t.Helper()
		d.add(d.as("", tokenOf(name)), 1, 1)
		d.wantLines(d.as(name, tokenOf(name)), "1×1")
	}
	p.await(func() bool { // a busy machine may be too slow for the first ones
		ahead.Add(int64(time.Second))
		name := rand.Text()
		login(name)
		return !claimed(name)
	})
	before := p.waits()
	p.replica.Freeze()
	for i := range 20 {
		login(fmt.Sprintf("c%d", i))
	}
	n := p.waits() - before
	assert.That(t, n == 1, "20 logins waited %d times, want 1", n)
	scripts := p.calls("evalsha")
	d.wantLines(d.as("c0", ""), "1×1")
	d.wantLines(d.as("c0", tokenOf("c0")), "1×1")
	n = p.calls("evalsha") - scripts
	assert.That(t, n == 0, "reads of what is merged have run %d scripts", n)
	if changed := d.add(d.as("c0", tokenOf("c0")), 1, 1); changed == nil || p.waits()-before != 1 {
		t.Errorf("a change got the report %v, and there were %d waits", changed, p.waits()-before)
	}
	ahead.Add(int64(time.Second))
	login("later")
	login("again")
	n = p.waits() - before
	assert.That(t, n == 2, "after a second there were %d waits, want 2", n)
	p.replica.Thaw()
	ahead.Add(int64(time.Second))
	p.await(func() bool { // each probe takes a new second
		ahead.Add(int64(time.Second))
		d.read(d.as("c0", ""))
		return !claimed("c0")
	})
	d.wantLines(d.as("c0", tokenOf("c0")), "1×2")
}

// A repeat writes nothing new, and since Redis 7.2 a connection that has written nothing waits for no replica.
func TestReplication_ARepeatWaitsForWhatItRepeats(t *testing.T) {
	t.Parallel()
	p, id := startPair(t), newStoreID()
	customer, guest, undone := redisstore.CustomerRef(id, "c"), redisstore.GuestRef(id, tokenOf("t")), redisstore.GuestRef(id, tokenOf("u"))
	change := func(on redisstore.Conditions, c redisstore.Change) func(*redisstore.Store) bool {
		return func(s *redisstore.Store) bool {
			o := assert.Must(s.Change(t.Context(), guest, on, redisstore.Attempt{CartID: "CART", Limits: carttest.Limits}, c))(t)
			return o.Durability == redisstore.Confirmed
		}
	}
	one := cart.NewLine{ID: "1", Quantity: 1, Bounds: cart.Bounds{Stock: -1, Min: 1, Max: 99}}
	p.replica.Freeze()
	defer p.replica.Thaw()
	for name, confirmed := range map[string]func(*redisstore.Store) bool{
		"with a key":           change(redisstore.Conditions{Key: "key", Fingerprint: "f"}, redisstore.Only(cart.Add(one))),
		"that changes no more": change(redisstore.Conditions{}, redisstore.Only(cart.SetCodes("TEN"))),
		"with a stamp":         change(redisstore.Conditions{Stamp: "stamps"}, redisstore.Only(cart.SetCodes("ELF"))),
		"of an undo's first step": func(s *redisstore.Store) bool {
			return s.BeginUndone(t.Context(), customer, undone, cart.Cart{ID: "UNDONE", Coupons: []string{"TEN"}}) == nil
		},
	} {
		for try := range 2 {
			s := redisstore.New(redisstore.Config{Client: dial(t, p.master.URL), TTL: usualTTLs, Durable: true})
			assert.That(t, !confirmed(s), "a request %s, try %d: confirmed by a replica that hangs", name, try+1)
		}
	}
}

func versions(t *testing.T, url string, guest redisstore.Ref, n int) []string {
	t.Helper()
	s := redisstore.New(redisstore.Config{Client: dial(t, url), TTL: usualTTLs})
	var tags []string
	for range n {
		add := redisstore.Only(cart.Add(cart.NewLine{ID: "1", Quantity: 1, Bounds: cart.Bounds{Stock: -1, Min: 1, Max: 99}}))
		o, err := s.Change(t.Context(), guest, redisstore.Conditions{}, redisstore.Attempt{CartID: "CART", Limits: carttest.Limits}, add)
		assert.Require(t, err == nil && o.Status == cart.Applied, "%v %v", o, err)
		tags = append(tags, o.Cart.Tag())
	}
	return tags
}

func wantOtherMarks(t *testing.T, lost, made []string) {
	t.Helper()
	for i := range lost {
		assert.That(t, lost[i] != made[i], "version %d has the tag %s twice", i+2, lost[i])
	}
}

// A replica that has never run a script becomes master, without the latest changes. Its own random
// numbers would begin like those of its master did.
func TestMark_OfAVersionThatAFailoverLostIsNotGivenAgain(t *testing.T) {
	t.Parallel()
	p, guest := startPair(t), redisstore.GuestRef(newStoreID(), tokenOf("t"))
	versions(t, p.master.URL, guest, 1)
	p.await(func() bool { return p.replica.Admin().Exists(t.Context(), guest.CartKey()).Val() == 1 })
	assert.NoError(t, p.replica.Admin().ReplicaOf(t.Context(), "no", "one").Err())
	wantOtherMarks(t, versions(t, p.master.URL, guest, 4), versions(t, p.replica.URL, guest, 4))
}

func TestMark_OfAVersionThatABackupTookBackIsNotGivenAgain(t *testing.T) {
	t.Parallel()
	redis, guest := ephemeral.StartRedis(t), redisstore.GuestRef(newStoreID(), tokenOf("t"))
	versions(t, redis.URL, guest, 1)
	backup := redis.Admin().Dump(t.Context(), guest.CartKey()).Val()
	lost := versions(t, redis.URL, guest, 4)
	assert.NoError(t, redis.Admin().RestoreReplace(t.Context(), guest.CartKey(), time.Hour, backup).Err())
	wantOtherMarks(t, lost, versions(t, redis.URL, guest, 4))
}
