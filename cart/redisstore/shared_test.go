package redisstore_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/redisstore"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// badProxy is a proxy before Redis that splits what it passes on, and delays, stalls and cuts
// connections, each after another number of bytes. Some dials fail.
type badProxy struct {
	net.Listener
	target string
	n      atomic.Int64 // connections so far
	calm   atomic.Bool
	all    sync.WaitGroup
}

func startBadProxy(t *testing.T, url string) *badProxy {
	t.Helper()
	p := &badProxy{Listener: assert.Must(net.Listen("tcp", "127.0.0.1:0"))(t), target: strings.TrimPrefix(url, "redis://")}
	p.all.Go(func() {
		for {
			conn, err := p.Accept()
			if err != nil {
				return
			}
			p.all.Go(func() { p.serve(conn) })
		}
	})
	t.Cleanup(func() { p.Close(); p.all.Wait() })
	return p
}

func (p *badProxy) dials(o *redis.UniversalOptions) {
	o.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
		if !p.calm.Load() && rand.N(10) == 0 {
			return nil, &net.OpError{Op: "dial", Net: network, Err: io.ErrUnexpectedEOF}
		}
		return new(net.Dialer).DialContext(ctx, network, p.Addr().String())
	}
}

// serve cuts the connection number n after n bytes of requests, or of replies, or much later.
func (p *badProxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		client.Close()
		return
	}
	n, far := p.n.Add(1), func() int64 { return rand.N[int64](120 << 10) }
	requests, replies := far(), far()
	switch n % 4 {
	case 0:
		requests = n / 4
	case 1:
		replies = n / 4
	}
	cut := sync.OnceFunc(func() { client.Close(); server.Close() })
	p.all.Go(func() { defer cut(); p.pass(server, client, requests) })
	defer cut()
	p.pass(client, server, replies)
}

// pass passes a number of bytes on, in pieces.
func (p *badProxy) pass(to, from net.Conn, left int64) {
	buffer := make([]byte, 64<<10)
	for {
		size := int64(len(buffer))
		if rand.N(4) == 0 {
			size = 1 + rand.N[int64](700)
		}
		if !p.calm.Load() {
			size = min(size, left)
		}
		n, err := from.Read(buffer[:size])
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
		switch left -= int64(n); {
		case p.calm.Load():
		case left <= 0:
			return
		case rand.N(500) == 0:
			time.Sleep(300 * time.Millisecond) // longer than any caller waits
		case rand.N(10) == 0:
			time.Sleep(time.Duration(rand.N(3000)) * time.Microsecond)
		}
	}
}

// shopper adds pieces of its own product to its own cart, and knows what the cart must hold.
type shopper struct {
	ref     redisstore.Ref
	line    cart.NewLine
	keyed   bool
	made    int64 // changes that certainly were
	unknown int64 // changes that may have been
	last    int64 // quantity in the latest reply
	refused int64 // 503s
}

// newShopper returns the shopper number i, of whom every other one sends idempotency keys.
func newShopper(i int) *shopper {
	const many = 1_000_000
	return &shopper{
		ref: redisstore.GuestRef(newStoreID(), tokenOf("t")), keyed: i%2 == 0,
		line: cart.NewLine{ID: cart.LineID(fmt.Sprint(i + 1)), Quantity: 1, Price: 100, Bounds: cart.Bounds{Max: many, PerCart: many, Stock: -1}},
	}
}

// add adds a piece until it knows the outcome, or the outcome is unknown.
func (s *shopper) add(ctx context.Context, r *redisstore.Store, n int) error {
	on := redisstore.Conditions{}
	if s.keyed {
		on.Key, on.Fingerprint = fmt.Sprintf("%s.%d", s.line.ID, n), fmt.Sprint("f", n)
	}
	for {
		limited, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		o, err := r.Change(limited, s.ref, on, redisstore.Attempt{CartID: string(s.line.ID), Limits: carttest.Limits}, redisstore.Only(cart.Add(s.line)))
		cancel()
		switch {
		case err == nil:
			s.made++
			return s.check(o)
		case isProblem(err, problem.OutcomeUnknown) && !s.keyed:
			s.unknown++
			return nil
		case !isProblem(err, problem.Unavailable):
			return fmt.Errorf("keyed %v: %w", s.keyed, err)
		}
		s.refused++
	}
}

// check says whether a reply is of the shopper's cart, right after the change.
func (s *shopper) check(o redisstore.Outcome) error {
	if o.Status != cart.Applied && !(o.Status == cart.Replayed && s.keyed) {
		return fmt.Errorf("status %s", o.Status)
	}
	if o.ID != string(s.line.ID) || len(o.Lines) != 1 || o.Lines[0].ID != s.line.ID || o.Version != o.Lines[0].Quantity {
		return fmt.Errorf("the cart of %s is %s with %+v in version %d", s.line.ID, o.ID, o.Lines, o.Version)
	}
	held := o.Lines[0].Quantity
	if held <= s.last || held < s.made || held > s.made+s.unknown {
		return fmt.Errorf("the cart holds %d, after %d, %d changes and %d unknown ones", held, s.last, s.made, s.unknown)
	}
	s.last = held
	return nil
}

// What is sent once must not be sent again with the others when a connection breaks, what has a
// key must count, and each caller must get its own reply.
func TestChanges_ThatShareRoundTripsCountOnceOverABadLine(t *testing.T) {
	t.Parallel()
	total := 200_000
	if testing.Short() {
		total = 4_000
	}
	server := ephemeral.StartRedis(t)
	proxy := startBadProxy(t, server.URL)
	r := newReader(t, server.URL, proxy.dials)
	shoppers := make([]*shopper, 64)
	var all sync.WaitGroup
	for i := range shoppers {
		s := newShopper(i)
		shoppers[i] = s
		all.Go(func() {
			for n := range total / len(shoppers) {
				if err := s.add(t.Context(), r.Store, n); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	_, trips, most := r.sent.take()
	time.Sleep(400 * time.Millisecond) // what the proxy holds back arrives
	var unknown, run, refused int64
	for _, s := range shoppers {
		held := assert.Must(redisstore.New(redisstore.Config{Client: r.client, TTL: usualTTLs}).Load(t.Context(), s.ref))(t)
		assert.Require(t, len(held.Lines) == 1, "the cart holds %+v", held.Lines)
		q := held.Lines[0].Quantity
		assert.That(t, q >= s.made && q <= s.made+s.unknown, "keyed %v: %d changes and %d unknown ones made %d", s.keyed, s.made, s.unknown, q)
		unknown, run, refused = unknown+s.unknown, run+q-s.made, refused+s.refused
	}
	assert.That(t, most > 1 && proxy.n.Load() > 10, "%d commands at most shared a round trip, %d connections", most, proxy.n.Load())
	t.Logf("%d changes in %d round trips over %d connections: %d unknown, of which %d were made; %d were refused",
		total, trips, proxy.n.Load(), unknown, run, refused)
}

// together makes a change of each cart, of which the first runs by itself and the others share few
// round trips. It returns the statuses, or "not made" and "unknown".
func (r reader) together(refs []redisstore.Ref, change func(i int) (redisstore.Conditions, redisstore.Change)) []string {
	r.t.Helper()
	return r.within(ephemeral.Patience(2*time.Second), refs, change)
}

// within does what together does, for callers that wait no longer than limit.
func (r reader) within(limit time.Duration, refs []redisstore.Ref, change func(i int) (redisstore.Conditions, redisstore.Change)) []string {
	results := make([]string, len(refs))
	open := r.sent.holdBack()
	var all sync.WaitGroup
	for i, ref := range refs {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(r.t.Context(), limit)
			defer cancel()
			on, c := change(i)
			switch o, err := r.Change(ctx, ref, on, redisstore.Attempt{CartID: "ID", Limits: carttest.Limits}, c); {
			case err == nil:
				results[i] = strings.TrimSpace(string(o.Status) + " " + o.Durability)
			case isProblem(err, problem.OutcomeUnknown):
				results[i] = "unknown"
			default:
				results[i] = "not made"
			}
		})
	}
	time.Sleep(ephemeral.Patience(50 * time.Millisecond)) // until all have begun
	open()
	all.Wait()
	return results
}

// sharing makes changes together, of which Redis refuses the middle one: Go begins with the last.
type sharing struct {
	prepare       func(r reader, refused redisstore.Ref)
	change        redisstore.Change // the one that Redis refuses; default an add
	key           string            // of the same
	want          string
	others        redisstore.Change // default an add
	wantOfAnother cart.Status       // default Applied
}

func (s sharing) run(r reader, refs []redisstore.Ref) {
	r.t.Helper()
	refused := len(refs) / 2
	if s.prepare != nil {
		s.prepare(r, refs[refused])
	}
	r.Unhurried()
	got := r.together(refs, func(i int) (redisstore.Conditions, redisstore.Change) {
		if i != refused {
			return redisstore.Conditions{}, s.others
		}
		return redisstore.Conditions{Key: s.key, Fingerprint: "f"}, s.change
	})
	names, _, most := r.sent.take()
	for i, result := range got {
		assert.That(r.t, i == refused || result == string(s.wantOfAnother), "cart %d: %s", i, result)
	}
	assert.Equal(r.t, got[refused], s.want, "the change that is refused")
	scripts := names["evalsha"] + names["eval"] // at most 8 more than changes: only the one is tried again
	assert.That(r.t, most > len(refs)/4 && scripts <= len(refs)+8, "%d scripts, at most %d in one round trip", scripts, most)
}

// What Redis refuses of one caller, it does for the others.
func TestChanges_ARefusalOfOneDoesNotTouchOthers(t *testing.T) {
	t.Parallel()
	add, absent := addOf("1"), redisstore.Only(cart.SetQuantity(cart.Item{ID: "9"}, 1, cart.Bounds{Max: 1}, ""))
	for name, test := range map[string]sharing{
		"without the script": {change: redisstore.Only(cart.SetCodes("TEN")), want: "applied", others: add, wantOfAnother: cart.Applied},
		"with a key of another type": {
			prepare: func(r reader, of redisstore.Ref) { r.client.Set(t.Context(), of.CartKey(), "text", 0) },
			change:  add, want: "not made", others: add, wantOfAnother: cart.Applied,
		},
		"that is full": {
			prepare: func(r reader, _ redisstore.Ref) { r.client.ConfigSet(t.Context(), "maxmemory", "1") },
			change:  add, want: "not made", others: absent, wantOfAnother: cart.Refused,
		},
		"that is a replica now": {
			prepare: func(r reader, _ redisstore.Ref) { r.client.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1") },
			change:  add, want: "not made", others: absent, wantOfAnother: "not made",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReader(t, ephemeral.StartRedis(t).URL)
			refs := newRefs(30)
			r.together(refs[:1], func(int) (redisstore.Conditions, redisstore.Change) { return redisstore.Conditions{}, absent }) // loads the script
			r.add(r.filled())
			test.run(r, refs)
		})
	}
}

func addOf(line cart.LineID) redisstore.Change {
	return redisstore.Only(cart.Add(cart.NewLine{ID: line, Quantity: 1, Price: 100, Bounds: cart.Bounds{Max: 100, Stock: -1}}))
}

// One slot moves while changes of others share its round trips.
func TestChanges_AMovingSlotDoesNotTouchOthers(t *testing.T) {
	ephemeral.Slow(t)
	t.Parallel()
	add := addOf("1")
	for name, test := range map[string]struct {
		moved bool
		sharing
	}{
		"ASK":      {false, sharing{want: "applied"}},
		"MOVED":    {true, sharing{want: "applied"}},
		"TRYAGAIN": {false, sharing{key: "k", want: "not made", prepare: func(r reader, of redisstore.Ref) { r.add(of) }}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := ephemeral.StartCluster(t)
			r := newReader(t, cluster.URL)
			from, to := cluster.Nodes[0].Admin(), cluster.Nodes[1].Admin()
			refs := r.on(from.Options().Addr, 30)
			if test.prepare != nil {
				test.prepare(r, refs[len(refs)/2])
			}
			r.add(refs[0])
			slot := r.client.ClusterKeySlot(t.Context(), refs[len(refs)/2].CartKey()).Val()
			setSlot := func(node *redis.Client, args ...any) {
				assert.NoError(t, node.Do(t.Context(), append([]any{"CLUSTER", "SETSLOT", slot}, args...)...).Err())
			}
			idOf := func(node *redis.Client) string { return node.Do(t.Context(), "CLUSTER", "MYID").Val().(string) }
			setSlot(to, "IMPORTING", idOf(from))
			setSlot(from, "MIGRATING", idOf(to))
			if test.moved {
				setSlot(to, "NODE", idOf(to))
				setSlot(from, "NODE", idOf(to))
			}
			test.prepare, test.change, test.others, test.wantOfAnother = nil, add, add, cart.Applied
			test.run(r, refs)
		})
	}
}

// on returns carts on a node of a cluster, in different slots.
func (r reader) on(addr string, n int) (refs []redisstore.Ref) {
	for len(refs) < n {
		ref := redisstore.GuestRef(newStoreID(), tokenOf("t"))
		master := assert.Must(r.client.(*redis.ClusterClient).MasterForKey(r.t.Context(), ref.CartKey()))(r.t)
		if master.Options().Addr == addr {
			refs = append(refs, ref)
		}
	}
	return refs
}

// A pool that opens no connection: nothing is sent, and nothing later, also for a caller that
// disconnected long before its deadline.
func TestChanges_OfCallersThatLeaveBeforeTheyAreSentAreNeverMade(t *testing.T) {
	t.Parallel()
	url := ephemeral.Redis(t)
	opened := make(chan struct{})
	r := newReader(t, url, func(o *redis.UniversalOptions) {
		o.DialTimeout, o.PoolTimeout = time.Minute, time.Minute
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			<-opened
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	})
	ref := redisstore.GuestRef(newStoreID(), tokenOf("t"))
	assert.NoError(t, r.MistakeClock(t.Context(), ref, time.Duration(time.Now().UnixMilli())*time.Millisecond))
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			time.AfterFunc(100*time.Millisecond, cancel)
			_, err := r.Change(ctx, ref, redisstore.Conditions{}, redisstore.Attempt{CartID: "ID", Limits: carttest.Limits}, addOf("1"))
			assert.That(t, isProblem(err, problem.Unavailable), "caller %d: %v", i, err)
		})
	}
	all.Wait()
	close(opened)
	time.Sleep(100 * time.Millisecond)
	assert.Equal(t, r.client.Exists(t.Context(), ref.CartKey()).Val(), 0, "carts that were created later")
}

// A WAIT covers all writes of its connection, so one is enough for a batch.
func TestChanges_ThatShareRoundTripsWaitOnceForReplicas(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	r := newReader(t, p.master.URL)
	r.Durable = true
	r.add(r.filled()) // Redis has the script then
	refs := newRefs(40)
	all := func() map[string]int {
		r.sent.take()
		return count(r.together(refs, func(int) (redisstore.Conditions, redisstore.Change) { return redisstore.Conditions{}, addOf("1") }))
	}
	p.await(func() bool { return all()["applied confirmed"] == len(refs) }) // on a busy machine, replicas may be late
	names, _, _ := r.sent.take()
	assert.That(t, names["wait"] > 1 && names["wait"] < len(refs)/2, "%d changes sent %v", len(refs), names)
	p.replica.Freeze()
	defer p.replica.Thaw()
	assert.Equal(t, all(), map[string]int{"applied unconfirmed": len(refs)}, "while the replica hangs")
}

func newRefs(n int) []redisstore.Ref {
	refs := make([]redisstore.Ref, n)
	for i := range refs {
		refs[i] = redisstore.GuestRef(newStoreID(), tokenOf("t"))
	}
	return refs
}

func count(all []string) map[string]int {
	times := map[string]int{}
	for _, each := range all {
		times[each]++
	}
	return times
}

func TestBatch_IsBoundedInNumberAndBytes(t *testing.T) {
	t.Parallel()
	const most = redisstore.MaxBatchBytes
	for _, test := range []struct{ bytes, want []int }{
		{[]int{1, 2, 3}, []int{3}},
		{make([]int, redisstore.MaxBatch+1), []int{redisstore.MaxBatch, 1}},
		{[]int{most, 1, most - 1, 1, 2 * most, 1}, []int{1, 2, 1, 1, 1}},
	} {
		assert.Equal(t, redisstore.BatchesOf(test.bytes), test.want, "batches of %v bytes", test.bytes)
	}
}

// A connection that breaks in the middle of the replies takes back none of those before. A change
// with a key is sent again while its caller waits.
func TestChanges_OfABrokenConnectionAreClearedUp(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	r := newReader(t, ephemeral.Redis(t), func(o *redis.UniversalOptions) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return &staller{Conn: conn, armed: &armed}, err
		}
	})
	r.add(r.filled())
	armed.Store(true)
	got := r.together(newRefs(40), func(i int) (redisstore.Conditions, redisstore.Change) {
		if i%2 == 0 {
			return redisstore.Conditions{}, addOf("1")
		}
		return redisstore.Conditions{Key: "k", Fingerprint: "f"}, addOf("1")
	})
	plain := map[string]int{}
	for i, result := range got {
		if i%2 == 0 {
			plain[result]++
		} else {
			assert.That(t, result == "applied" || result == "replayed", "change %d, with a key: %s", i, result)
		}
	}
	assert.Equal(t, plain, map[string]int{"applied": 20}, "without a key")
}

// A connection that stalls in the middle of the replies holds up no caller longer than its own time.
// The others read their carts meanwhile, and the next batch takes another connection.
func TestChanges_OfAConnectionThatStallsEndWithTheirCallers(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	stall := make(chan struct{})
	goOn := sync.OnceFunc(func() { close(stall) })
	defer goOn()
	r := newReader(t, startPair(t).master.URL, func(o *redis.UniversalOptions) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return &staller{Conn: conn, armed: &armed, stall: stall}, err
		}
	})
	r.Durable = true
	r.add(r.filled())
	armed.Store(true)
	limit := ephemeral.Patience(time.Second)
	time.AfterFunc(4*limit, goOn)
	began, refs := time.Now(), newRefs(2*redisstore.MaxBatch+10)
	results := count(r.within(limit, refs, func(int) (redisstore.Conditions, redisstore.Change) {
		return redisstore.Conditions{}, addOf("1")
	}))
	assert.That(t, time.Since(began) < 3*limit, "the callers took %v", time.Since(began))
	assert.That(t, results["applied unconfirmed"] > 0 && results["applied unconfirmed"]+results["applied confirmed"] == len(refs), "%v", results)
}

// staller is a connection that stalls or breaks after a few of the replies to the first batch of scripts.
type staller struct {
	net.Conn
	armed *atomic.Bool    // for one of all connections
	stall <-chan struct{} // until it is closed; nil to break
	left  int             // one more than the bytes until it stalls; 0 for never
}

func (s *staller) Write(p []byte) (int, error) {
	if bytes.Count(p, []byte("evalsha")) >= 2 && s.armed.CompareAndSwap(true, false) {
		s.left = 45
	}
	return s.Conn.Write(p)
}

func (s *staller) Read(p []byte) (int, error) {
	switch s.left {
	case 0:
		return s.Conn.Read(p)
	case 1:
		if s.stall == nil {
			s.Close()
			return 0, io.ErrUnexpectedEOF
		}
		<-s.stall
	}
	n, err := s.Conn.Read(p[:min(len(p), max(s.left-1, 1))])
	s.left = max(s.left-n, 1)
	return n, err
}

// go-redis leaves the commands of a pipeline without an error when Redis refuses the connection.
func TestChanges_WithoutAConnectionAreNotMade(t *testing.T) {
	t.Parallel()
	r := newReader(t, ephemeral.StartRedis(t).URL)
	refs := newRefs(30)
	assert.NoError(t, r.MistakeClock(t.Context(), refs[0], time.Duration(time.Now().UnixMilli())*time.Millisecond))
	assert.NoError(t, r.client.ConfigSet(t.Context(), "maxclients", "1").Err())
	got := count(r.together(refs, func(int) (redisstore.Conditions, redisstore.Change) { return redisstore.Conditions{}, addOf("1") }))
	assert.Equal(t, got, map[string]int{"not made": len(refs)}, "the changes")
}
