package redisstore

import (
	"context"
	"fmt"
	"time"

	"commerce/auth"
	"commerce/auth/script"
	"commerce/cart"
)

const shareLife = 30 * 24 * time.Hour

// KeepShare keeps a cart's lines under the first code, lists it, and returns when it expires. What is kept already
// stays as it is. Errors: cart.ErrTooManyShares, and cart.ErrNoCode if the cart has deleted a share with one of the codes.
func (s *Store) KeepShare(ctx context.Context, ref Ref, cartID string, lines []cart.Line, codes ...string) (time.Time, error) {
	args := []any{shareLife.Milliseconds(), cartID}
	for i, l := range lines {
		args = append(args, string(l.ID), fmt.Sprintf("%d %d 0", l.Quantity, i))
		if len(l.Fields) > 0 {
			args = append(args, string(l.ID)+":f", encodeFields(l.Fields))
		}
	}
	key := ref.shareKey(digestOf(codes[0]))
	expires, err := s.scripts["share"].Run(ctx, s.Client, script.Repeatable, []string{key}, args...).Int64()
	if err != nil {
		return time.Time{}, cart.Unavailable("keep share", err)
	}
	status, err := s.listShare(ctx, ref, cartID, fmt.Sprint(expires), codes...)
	if err == nil && status != "listed" {
		if err = s.Client.Del(ctx, key).Err(); err != nil {
			return time.Time{}, cart.Unavailable("drop share", err)
		}
		err = cart.ErrTooManyShares
		if status == "deleted" {
			err = cart.ErrNoCode
		}
	}
	return time.Unix(expires, 0), err
}

// Shared returns what is kept under a code, with the ID of the cart that has shared it. If nothing is, it returns
// cart.ErrNoCode.
func (s *Store) Shared(ctx context.Context, ref Ref, code string) (cart.Cart, error) {
	flat, err := membersOf(s.Client.HGetAll(ctx, ref.shareKey(digestOf(code))), nil)
	if err != nil {
		return cart.Cart{}, cart.Unavailable("read share", err)
	}
	stored, err := parseCart(flat)
	switch {
	case err != nil:
		return cart.Cart{}, cart.Unavailable("read share", err)
	case stored.ID == "":
		return cart.Cart{}, cart.ErrNoCode
	}
	stored.ExpiresAt = time.UnixMilli(stored.expires)
	return stored.Cart, nil
}

// Unshare deletes a share of a cart, or of one that was merged into it. If it has none with this code, and has deleted
// none earlier, it returns cart.ErrNoCode.
func (s *Store) Unshare(ctx context.Context, ref Ref, cartID, code string) error {
	shared, err := s.Shared(ctx, ref, code)
	switch {
	case cartID == "":
		return cart.ErrNoCode
	case err == cart.ErrNoCode:
		if status, err := s.listShare(ctx, ref, cartID, "", code); err != nil || status == "deleted" {
			return err
		}
		return cart.ErrNoCode
	case err != nil:
		return err
	case shared.ID == cartID: // first the list, or a repeat of the share's request could keep it again
		_, err = s.listShare(ctx, ref, cartID, fmt.Sprint(shared.ExpiresAt.Unix())+" -", code)
	default:
		var merged int64
		if merged, err = s.Client.Exists(ctx, ref.offeredKey(shared.ID)).Result(); err == nil && merged == 0 {
			return cart.ErrNoCode
		}
	}
	if err == nil {
		err = s.Client.Del(ctx, ref.shareKey(digestOf(code))).Err()
	}
	if err != nil {
		return cart.Unavailable("delete share", err)
	}
	return nil
}

// listShare runs lua/shares.lua, and returns its status.
func (s *Store) listShare(ctx context.Context, ref Ref, cartID, value string, codes ...string) (string, error) {
	args := []any{value, shareLife.Milliseconds()}
	for _, code := range codes {
		args = append(args, digestOf(code))
	}
	status, err := s.scripts["shares"].Run(ctx, s.Client, script.Repeatable, []string{ref.sharesKey(cartID)}, args...).Text()
	if err != nil {
		return "", cart.Unavailable("list share", err)
	}
	return status, nil
}

// digestOf returns the digest of a code, which is as secret as a token.
func digestOf(code string) string { return auth.CartToken(code).Digest() }
