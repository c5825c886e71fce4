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
	key, expires := ref.shareKey(codes[0]), int64(0)
	status, err := s.listShare(ctx, ref, cartID, "?", codes...) // first, or a late repeat that dies could leave what was deleted
	if err == nil && status != "deleted" {
		expires, err = s.scripts["share"].Run(ctx, s.Client, script.Repeatable, []string{key}, args...).Int64()
		if err == nil {
			status, err = s.listShare(ctx, ref, cartID, fmt.Sprint(expires), codes...)
		}
	}
	if err == nil && status != "listed" {
		err = s.Client.Del(ctx, key).Err()
	}
	switch {
	case err != nil:
		return time.Time{}, cart.Unavailable("keep share", err)
	case status == "full":
		return time.Time{}, cart.ErrTooManyShares
	case status == "deleted":
		return time.Time{}, cart.ErrNoCode
	}
	return time.Unix(expires, 0), nil
}

// Shared returns what is kept under a code, with the ID of the cart that has shared it; otherwise cart.ErrNoCode.
func (s *Store) Shared(ctx context.Context, ref Ref, code string) (cart.Cart, error) {
	stored, err := parseMembers(membersOf(s.Client.HGetAll(ctx, ref.shareKey(code)), nil))
	switch {
	case err != nil:
		return cart.Cart{}, cart.Unavailable("read share", err)
	case stored.ID == "":
		return cart.Cart{}, cart.ErrNoCode
	}
	stored.ExpiresAt = time.Unix(stored.Expires, 0)
	return stored.Cart, nil
}

// Unshare deletes a share of a cart, or of one that was merged into it. If there is none with this code, and the cart
// has deleted none earlier, it returns cart.ErrNoCode.
func (s *Store) Unshare(ctx context.Context, ref Ref, cartID, code string) error {
	status, err := s.listShare(ctx, ref, cartID, "-", code) // first, or a late repeat could share again
	if err == nil && status != "deleted" {
		var shared cart.Cart
		if shared, err = s.Shared(ctx, ref, code); err != nil {
			return err
		}
		var merged int64
		if merged, err = s.Client.Exists(ctx, ref.offeredKey(shared.ID)).Result(); err == nil && merged == 0 && shared.ID != cartID {
			return cart.ErrNoCode
		}
	}
	if err == nil {
		err = s.Client.Del(ctx, ref.shareKey(code)).Err()
	}
	if err != nil {
		return cart.Unavailable("delete share", err)
	}
	return nil
}

func (s *Store) listShare(ctx context.Context, ref Ref, cartID, value string, codes ...string) (string, error) {
	args := []any{value, shareLife.Milliseconds()}
	for _, code := range codes {
		args = append(args, auth.CartToken(code).Digest())
	}
	return s.scripts["shares"].Run(ctx, s.Client, script.Repeatable, []string{ref.sharesKey(cartID)}, args...).Text()
}
