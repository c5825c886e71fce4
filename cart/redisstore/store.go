// Package redisstore stores carts in Redis: one hash per cart. A rule of package cart decides what a change makes of a cart,
// and one script writes that, if the cart is still the one that was decided from.
//
// It works with Redis 7.0 or later: single, Cluster or Sentinel.
package redisstore

import (
	"context"
	"crypto/rand"
	"io"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/script"
)

// Store stores carts. It is safe for concurrent use.
type Store struct {
	Config
	script   script.Script
	masterOf locator
	parsed   parsedCarts
	queues   *queues
	name     string // of this instance, random

	tolerance int64         // see the constant
	patience  time.Duration // see the constant

	// What a simulation decides itself.
	clock  func() time.Time // of this process, monotonic
	pause  func(context.Context, time.Duration) error
	random io.Reader

	alone     bool // each caller sends its own commands, and decides its own change
	remembers bool // whether a change may be decided from the cart that was seen last
}

// Config configures a Store. Client and TTL are required.
type Config struct {
	// Client follows redirections and may retry what does not opt out. The caller closes it.
	Client redis.UniversalClient
	TTL    TTLs

	// Durable makes changes wait for a time until all replicas confirm them, and report whether.
	Durable bool

	// MinReplicas is the minimum number of replicas of each master; 0 when it is not
	// known. A merge drops the guest's cart only after that many have confirmed it.
	MinReplicas int

	Undoable bool // merges into customers' carts can be undone

	// Beside describes what packages beside the core keep next to carts. Only Holdings and Erase need it.
	Beside []Beside

	// Sentinels returns how many replicas that were reachable within the given time
	// the sentinels list; nil without sentinels.
	Sentinels func(context.Context, time.Duration) (int, error)

	// PublishFailed is called when Redis has refused to announce a change to those who listen. It must not block.
	PublishFailed func()

	// ReplyLost is called when the reply of a commit was lost or slow, with what a read of its cart has told. It must not block.
	ReplyLost func(Settled)

	Now func() time.Time // default time.Now
}

// Settled is what is known of a change whose reply was lost.
type Settled string

const (
	SettledMade    Settled = "made"
	SettledNotMade Settled = "not_made" // it is decided again
	SettledUnknown Settled = "unknown"
)

// TTLs are how long after its last read or change a cart expires. Either renews the TTL only once
// 1/720 of it has passed (an hour of 30 days), because renewing is a write.
type TTLs struct {
	Guest    time.Duration
	Customer time.Duration
}

func New(c Config) *Store {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.PublishFailed == nil {
		c.PublishFailed = func() {}
	}
	if c.ReplyLost == nil {
		c.ReplyLost = func(Settled) {}
	}
	s := &Store{
		Config: c, script: script.New(ScriptName, commitLua), masterOf: newLocator(c.Client, newMasters(c.Now, time.Now)), parsed: newParsedCarts(time.Now), queues: newQueues(),
		remembers: true, tolerance: tolerance, patience: patience, clock: time.Now, pause: pause, random: rand.Reader,
	}
	s.name = s.newMark()
	return s
}

func (s *Store) ttlOf(ref Ref) time.Duration {
	if ref.guest {
		return s.TTL.Guest
	}
	return s.TTL.Customer
}
