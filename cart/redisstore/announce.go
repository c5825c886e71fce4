package redisstore

import (
	"context"
	"time"

	"commerce/cart"
)

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
		held, err := parseMembers(found.hashes[0], nil)
		if tag = ""; err != nil || held.ID == "" {
			return nil, err
		}
		tag = held.Tag()
		left := held.Listened.Until - found.Now.Unix()
		if held.Listened.By == command && left >= int64(during.Seconds())/2 {
			return nil, nil
		}
		c := found.commit() // who listens does not keep the cart from expiring
		c.write("HSET", found.keys[0], "n", c.nextFence(), "w", encodeListening(cart.Listening{Until: found.Now.Add(during).Unix(), By: command}))
		return c, nil
	})
	return tag, err
}
