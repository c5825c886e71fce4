package redisstore

import (
	"context"

	"commerce/cart"
)

// Moved is w-move's; this file goes when its branch is here.
func (s *Store) Moved(ctx context.Context, guest Ref) (to Ref, moved bool, err error) {
	tag, err := s.Client.HGet(ctx, guest.key+":moved", "t").Result()
	switch {
	case isMissing(err):
		return Ref{}, false, nil
	case err != nil:
		return Ref{}, false, cart.Unavailable("look where the cart has moved", err)
	case tag == "-":
		return Ref{}, true, nil
	}
	return tagged(tag, true), true, nil
}
