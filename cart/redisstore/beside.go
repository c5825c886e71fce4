package redisstore

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/cart"
	"commerce/cart/redisstore/layout"
)

// Packages beside the core keep hashes of their own, next to carts (see Ref.BesideKey) or elsewhere (see Ref.OtherKey). They
// change them as carts are changed: by commits, each of which is made once or not at all.

// Beside describes hashes next to carts, for Holdings and Erase.
type Beside struct {
	Part string // of their keys
	Kind HoldingKind

	// Leads returns the key elsewhere to which a member leads, of a hash in the layout of a cart. nil: members lead nowhere.
	Leads func(of Ref, member string) (key string)
	Led   HoldingKind // of what Leads returns; it sorts before Kind, so that Erase can be repeated
}

// keys returns the keys to which members lead.
func (b *Beside) keys(of Ref, members []string) []string {
	all := []string{}
	for _, member := range members {
		if !ofCommit(member) {
			all = append(all, b.Leads(of, member))
		}
	}
	return all
}

// Edit is what a step makes of a hash.
type Edit struct {
	Set    []any         // members with their values, in turn
	Remove []any         // members
	Life   time.Duration // after which the hash expires, from now on

	OnlyFirst bool // only if the second hash, which is a cart, does not exist
	Delete    int  // instead, delete so many of the hashes

	Made func() // called once it is certain that the edit was made; nil: nothing is called
}

// Edit reads hashes of one slot, and makes what decide returns of the first; nil for nothing. If that hash has changed since it was
// read, Edit reads and decides again. doing is for errors: those of decide are returned unchanged, others are
// problem.Unavailable.
func (s *Store) Edit(ctx context.Context, doing string, keys []string, decide func(*Slot) (*Edit, error)) error {
	_, err := s.step(ctx, doing, keys, 0, func(found *Slot) (*commit, error) {
		e, err := decide(found)
		if e == nil || err != nil {
			return nil, err
		}
		c := found.commit()
		c.made = e.Made
		for _, key := range found.keys[:e.Delete] {
			c.delete(key)
		}
		if e.Delete > 0 {
			return c, nil
		}
		if e.OnlyFirst {
			c.check(found.keys[1], "l", "")
		}
		c.change(c.keys[0], layout.Members{Set: append([]any{"n", c.nextFence()}, e.Set...), Gone: e.Remove})
		c.write("PEXPIRE", c.keys[0], e.Life.Milliseconds())
		return c, nil
	})
	return err
}

// Members returns the members of a hash, by its number from 0, without those of commits.
func (s *Slot) Members(hash int) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		flat := s.hashes[hash]
		for i := 0; i+1 < len(flat); i += 2 {
			if !ofCommit(flat[i]) && !yield(flat[i], flat[i+1]) {
				return
			}
		}
	}
}

// Exists reports whether a hash exists, by its number from 0.
func (s *Slot) Exists(hash int) bool { return len(s.hashes[hash]) > 0 }

// ofCommit reports whether a member of a hash is the fence, or somebody's turn.
func ofCommit(member string) bool { return member == "n" || member == "t" }

// Delete deletes hashes, whatever they are.
func (s *Store) Delete(ctx context.Context, doing string, keys ...string) error {
	if err := s.Client.Del(ctx, keys...).Err(); err != nil {
		return cart.Unavailable(doing, err)
	}
	return nil
}

// MasterOf returns a client of the master that has a cart.
func (s *Store) MasterOf(ctx context.Context, ref Ref) (*redis.Client, error) {
	at, err := s.masterOf(ctx, ref.CartKey())
	return at.client, err
}

// AwaitMove waits a while, after an error of a cart's master, until another one can be found if the cart is there.
func (s *Store) AwaitMove(ctx context.Context, ref Ref) { _, _ = s.locateAgain(ctx, ref.CartKey()) }

// ReadCopy reads a copy of a cart; the zero Cart if there is none.
func (s *Store) ReadCopy(ctx context.Context, doing, key string) (cart.Cart, error) {
	stored, err := parseStored(membersOf(s.Client.HGetAll(ctx, key), nil))
	if err != nil {
		return cart.Cart{}, cart.Unavailable(doing, err)
	}
	if stored.ID != "" {
		stored.ExpiresAt = time.Unix(stored.Expires, 0)
	}
	return stored.Cart, nil
}

// WasMerged reports whether a guest's cart with an ID was merged into a cart, as far as that is still known.
func (s *Store) WasMerged(ctx context.Context, ref Ref, cartID string) (bool, error) {
	n, err := s.Client.Exists(ctx, ref.offeredKey(cartID)).Result()
	if err != nil {
		return false, cart.Unavailable(fmt.Sprintf("look for merge of %s", cartID), err)
	}
	return n > 0, nil
}

// Channel is where changes of a cart are announced, in the cart's slot.
func (r Ref) Channel() string { return r.key + ":live" }

// announce adds a message to those who listen to a cart, if anyone does, as the last write.
func (c *commit) announce(to cart.Listening, ref Ref, text string) {
	if to.By != "" {
		c.writes = append(c.writes, to.By, 0, 2, ref.Channel(), text)
	}
}

// Announce makes changes of a cart announced on its channel by a command, for a time, and returns the cart's tag; "" for no cart. A
// message is the tag after a change, or another text if the cart has moved. A repeat in the first half of the time writes nothing.
func (s *Store) Announce(ctx context.Context, ref Ref, command string, during time.Duration) (tag string, err error) {
	_, err = s.step(ctx, "listen to cart", []string{ref.CartKey()}, 0, func(found *Slot) (*commit, error) {
		held, err := layout.Parse(found.hashes[0])
		if tag = ""; err != nil || held.ID == "" {
			return nil, err
		}
		tag = held.Tag()
		left := held.Listened.Until - found.Now.Unix()
		if held.Listened.By == command && left >= int64(during.Seconds())/2 {
			return nil, nil
		}
		c := found.commit() // who listens does not keep the cart from expiring
		c.write("HSET", found.keys[0], "n", c.nextFence(), "w", layout.EncodeListening(cart.Listening{Until: found.Now.Add(during).Unix(), By: command}))
		return c, nil
	})
	return tag, err
}
