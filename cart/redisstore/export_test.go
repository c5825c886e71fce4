package redisstore

import (
	"context"
	"crypto/rand"
	"io"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/cart"
	"commerce/cart/redisstore/layout"
)

// Exports for the tests in package redisstore_test, which also import package service.

const (
	MaxBatch      = maxBatch
	MaxBatchBytes = maxBatchBytes
)

// BatchesOf returns how many shares of the given sizes go into each batch.
func BatchesOf(bytes []int) (batches []int) {
	b := &batcher{}
	for _, n := range bytes {
		b.waiting = append(b.waiting, &share{bytes: n})
	}
	for batch := b.next(); batch != nil; batch = b.next() {
		batches = append(batches, len(batch))
	}
	return batches
}

// Batched returns a function that reads, in batches with its concurrent calls.
func Batched(client *redis.Client) func(context.Context, redis.Cmder) error {
	b := &batcher{}
	return func(ctx context.Context, cmd redis.Cmder) error {
		return b.send(ctx, client, reading{}, cmd)
	}
}

var (
	ParseCart = layout.ParseAny
	ParseHash = parseHash
	RefOf     = refOf
)

func (r Ref) ClaimedKey() string                   { return r.claimedKey() }
func (r Ref) MovedKey() string                     { return r.movedKey() }
func (r Ref) CameKey() string                      { return r.cameKey() }
func (r Ref) OfferedKey(guestCartID string) string { return r.offeredKey(guestCartID) }
func (r Ref) IsGuest() bool                        { return r.guest }

// Only is a change by one rule.
func Only(rule cart.Rule) Change { return cart.Change{Rule: rule} }

// Listed is a list of changes.
func Listed(each bool, rules []cart.Rule) Change {
	return cart.Change{Rule: cart.List(each, rules), List: true}
}

// InstanceConfig is what distinguishes an instance of a simulation from its template.
type InstanceConfig struct {
	Durable     bool
	MinReplicas int
	Now, Clock  func() time.Time
	Random      io.Reader
	Remembers   bool          // see Store
	GuestsAhead time.Duration // how far the clock of the guests' Redis is ahead of the customers'
}

// Unhurried makes commits wait for their replies for a minute before the cart is read meanwhile, and lets their times differ
// from Redis' clock by a minute: the same happens however busy the machine is.
func (s *Store) Unhurried() { s.patience, s.tolerance = time.Minute, time.Minute.Milliseconds() }

// Instance returns a copy of a store, as another instance of the service would have. The
// guests' carts have another master than the customers'. It has seen one replica of each,
// and knows their clocks.
func (s *Store) Instance(c InstanceConfig) *Store {
	other := *s
	other.Durable, other.MinReplicas, other.Now = c.Durable, c.MinReplicas, c.Now
	other.Unhurried()
	other.alone = true
	other.clock, other.random, other.remembers = c.Clock, c.Random, c.Remembers
	other.pause = func(context.Context, time.Duration) error { return nil }
	other.parsed, other.queues, other.name = newParsedCarts(c.Clock), newQueues(), other.newMark()
	known := newMasters(c.Now, c.Clock)
	client := s.Client.(*redis.Client)
	guests, customers := located{known.at("guests"), client}, located{known.at("customers"), client}
	for _, at := range []located{guests, customers} {
		at.maxReplicas(1)
		at.clock = redisClock{ahead: known.start.UnixMilli(), known: true}
	}
	guests.clock.ahead += c.GuestsAhead.Milliseconds()
	other.masterOf = func(_ context.Context, key string) (located, error) {
		if refOf(key).guest {
			return guests, nil
		}
		return customers, nil
	}
	return &other
}

func (s *Store) Survives(ctx context.Context, conn *redis.Conn) bool {
	at, err := s.masterOf(ctx, "")
	return err == nil && s.awaitReplicas(ctx, conn, at.master, replicaWait).survivesFailover()
}

func (s *Store) Conn() *redis.Conn { return s.Client.(*redis.Client).Conn() }

// MistakeClock makes the store take the clock of a cart's master for ahead by that much.
func (s *Store) MistakeClock(ctx context.Context, ref Ref, ahead time.Duration) error {
	at, err := s.masterOf(ctx, ref.CartKey())
	if err == nil {
		at.clock = redisClock{ahead: ahead.Milliseconds(), known: true}
	}
	return err
}

// ClaimedBehind is a claimed cart from a Redis whose clock is behind the customer's.
func (s *Store) ClaimedBehind(ctx context.Context, customer Ref, c Claimed, by time.Duration) (Claimed, error) {
	at, err := s.masterOf(ctx, customer.CartKey())
	if err != nil {
		return c, err
	}
	ahead, err := at.ahead(ctx)
	c.master = &master{now: s.Now, clock: redisClock{ahead: ahead - by.Milliseconds(), known: true}}
	return c, err
}

// Commit is a commit that a test builds.
type Commit struct{ commit }

// NewCommit returns a commit to a cart with a fence, which may run from the first to the last ms by Redis' clock.
func NewCommit(ref Ref, fence string, first, last int64) *Commit {
	return &Commit{commit{keys: []string{ref.CartKey()}, time: first + tolerance, until: last, fence: fence, mark: anyMark()}}
}

func anyMark() string { return rand.Text()[:markSize] }

func (c *Commit) NextFence() string                      { return c.nextFence() }
func (c *Commit) Check(key, member, value string)        { c.check(key, member, value) }
func (c *Commit) Write(command, key string, args ...any) { c.write(command, key, args...) }
func (c *Commit) Announce(command, channel, text string) {
	c.writes = append(c.writes, command, 0, 2, channel, text)
}

// Committed is the reply to a commit.
type Committed struct {
	Word  string
	Now   int64
	Wait  time.Duration
	Cart  []string
	Found []any
}

// Commit sends one copy of a commit, which gives the store a turn if it fails.
func (s *Store) Commit(ctx context.Context, ref Ref, c *Commit, turn time.Duration) (Committed, error) {
	at, err := s.masterOf(ctx, ref.CartKey())
	if err != nil {
		return Committed{}, err
	}
	r, _, err := s.send(ctx, at, &c.commit, turn, 0)
	return Committed{r.word, r.now, r.wait, r.cart, r.found}, err
}

var (
	MayHaveRun = mayHaveRun
	CommitLua  = commitLua
)
