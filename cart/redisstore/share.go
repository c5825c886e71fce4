package redisstore

import (
	"context"
	"fmt"
	"time"

	"commerce/auth"
	"commerce/auth/script"
	"commerce/cart"
)

// ShareLife is how long a share can be opened.
const ShareLife = 30 * 24 * time.Hour

// ShareStatus is what the list of a cart's shares says about a code.
type ShareStatus string

const (
	ShareListed  ShareStatus = "listed"
	ShareDeleted ShareStatus = "deleted"
	ShareFree    ShareStatus = "free" // not listed, and there is room
	ShareFull    ShareStatus = "full" // not listed, and there is no room
)

// Listing is the place of a share in the list of those that its cart has made.
type Listing struct {
	Status  ShareStatus
	Code    string    // that is listed or deleted; else the first of those looked up
	Expires time.Time // of a code that is listed or deleted
}

// FindShare looks codes up, of which the cart has listed one at most.
func (s *Store) FindShare(ctx context.Context, ref Ref, cartID string, codes ...string) (Listing, error) {
	return s.shares(ctx, ref, cartID, "", codes...)
}

// KeepShare keeps lines under a code, and then lists it. Lines that are kept already stay as they are. The status is
// that before it was listed: if there was no room, or it is deleted, nothing is kept.
func (s *Store) KeepShare(ctx context.Context, ref Ref, cartID, code string, lines []cart.Line) (Listing, error) {
	args := []any{ShareLife.Milliseconds(), cartID}
	for i, l := range lines {
		args = append(args, string(l.ID), fmt.Sprintf("%d %d 0", l.Quantity, i))
		if len(l.Fields) > 0 {
			args = append(args, string(l.ID)+":f", encodeFields(l.Fields))
		}
	}
	key := ref.shareKey(digestOf(code))
	expires, err := s.scripts["share"].Run(ctx, s.Client, script.Repeatable, []string{key}, args...).Int64()
	if err != nil {
		return Listing{}, cart.Unavailable("keep share", err)
	}
	listing, err := s.shares(ctx, ref, cartID, fmt.Sprint(expires), code)
	if listing.Status == ShareFull || listing.Status == ShareDeleted {
		return listing, s.dropShare(ctx, key)
	}
	listing.Expires = time.Unix(expires, 0)
	return listing, err
}

// Shared returns the lines under a code, with the ID of the cart that made the share. The zero Cart is none.
func (s *Store) Shared(ctx context.Context, ref Ref, code string) (cart.Cart, error) {
	flat, err := membersOf(s.Client.HGetAll(ctx, ref.shareKey(digestOf(code))), nil)
	var stored Stored
	if err == nil {
		stored, err = parseCart(flat)
	}
	if err != nil {
		return cart.Cart{}, cart.Unavailable("read share", err)
	}
	if stored.ID != "" {
		stored.ExpiresAt = time.UnixMilli(stored.expires)
	}
	return stored.Cart, nil
}

// Unshare deletes a share of a cart, or of one that was merged into it. It reports whether there was one, or the
// cart has deleted it earlier.
func (s *Store) Unshare(ctx context.Context, ref Ref, cartID, code string) (bool, error) {
	shared, err := s.Shared(ctx, ref, code)
	switch {
	case err != nil || cartID == "":
		return false, err
	case shared.ID == "":
		listing, err := s.shares(ctx, ref, cartID, "", code)
		return listing.Status == ShareDeleted, err
	case shared.ID == cartID: // first the list, or a repeat of the share's request could keep it again
		_, err = s.shares(ctx, ref, cartID, fmt.Sprint(shared.ExpiresAt.Unix())+" -", code)
	default:
		var merged int64
		merged, err = s.Client.Exists(ctx, ref.offeredKey(shared.ID)).Result()
		if err == nil && merged == 0 {
			return false, nil
		}
	}
	if err != nil {
		return false, cart.Unavailable("delete share", err)
	}
	return true, s.dropShare(ctx, ref.shareKey(digestOf(code)))
}

func (s *Store) dropShare(ctx context.Context, key string) error {
	if err := s.Client.Del(ctx, key).Err(); err != nil {
		return cart.Unavailable("delete share", err)
	}
	return nil
}

// shares runs lua/shares.lua.
func (s *Store) shares(ctx context.Context, ref Ref, cartID, value string, codes ...string) (Listing, error) {
	args := []any{value, ShareLife.Milliseconds()}
	for _, code := range codes {
		args = append(args, digestOf(code))
	}
	reply, err := s.scripts["shares"].Run(ctx, s.Client, script.Repeatable, []string{ref.sharesKey(cartID)}, args...).Slice()
	if err != nil {
		return Listing{}, cart.Unavailable("list share", err)
	}
	return Listing{ShareStatus(reply[0].(string)), codes[reply[1].(int64)], time.Unix(reply[2].(int64), 0)}, nil
}

// digestOf is the digest of a code, which is as secret as a token.
func digestOf(code string) string { return auth.CartToken(code).Digest() }
