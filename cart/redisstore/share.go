package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"commerce/auth"
	"commerce/cart"
)

// A share is a hash in the layout of a cart, with only its lines and the ID of the cart that made it, and a member s until it is
// listed. Its cart's list of shares is in another slot. So the share is stored for a minute, listed, and kept if it is still
// listed: a late copy of a command restores a deleted share for at most a minute.
const (
	shareLife = 30 * 24 * time.Hour
	unlisted  = time.Minute // how long a share is stored that is not listed yet
)

// KeepShare keeps a cart's lines under the first code, lists it, and returns when it expires. What is kept already
// stays as it is. Errors: cart.ErrTooManyShares, and cart.ErrNoCode if the cart has deleted a share with one of the codes.
func (s *Store) KeepShare(ctx context.Context, ref Ref, cartID string, lines []cart.Line, codes ...string) (expires time.Time, err error) {
	key := ref.shareKey(codes[0])
	_, err = s.step(ctx, "keep share", []string{key}, 0, func(found *slot) (*commit, error) {
		if found.get(0, "i") != "" {
			return nil, nil
		}
		if status, err := s.list(ctx, ref, cartID, onlyLook, codes...); err != nil || status == deleted {
			return nil, cmp.Or(err, error(cart.ErrNoCode))
		}
		return found.fenced(found.commit(), unlisted, encodeShare(cartID, lines, found.now.Add(unlisted))...), nil
	})
	if err != nil {
		return time.Time{}, err
	}
	status := notListed
	_, err = s.step(ctx, "keep share", []string{key}, 0, func(found *slot) (*commit, error) {
		ends := time.Unix(parseSeconds(found.get(0, "x")), 0)
		isKept := found.get(0, "s") == ""
		if !isKept {
			ends = found.now.Add(shareLife).Truncate(time.Second)
		}
		// Between the look and the commit: if the share is deleted meanwhile, its fence is gone, and the commit fails.
		if status, err = s.list(ctx, ref, cartID, seconds(ends.Unix()), codes...); err != nil || status != listed {
			return nil, err
		}
		if found.get(0, "i") == "" {
			return nil, cart.Unavailable("keep share", errShareLost)
		}
		if expires = ends; isKept {
			return nil, nil
		}
		c := found.commit()
		c.write("HDEL", key, "s")
		c.made = func() { expires = ends }
		return found.fenced(c, ends.Sub(found.now), "x", seconds(ends.Unix())), nil
	})
	if err == nil && status != listed {
		err = s.dropShare(ctx, key)
	}
	switch {
	case err != nil:
		return time.Time{}, err
	case status == listFull:
		return time.Time{}, cart.ErrTooManyShares
	case status == deleted:
		return time.Time{}, cart.ErrNoCode
	}
	return expires, nil
}

var errShareLost = errors.New("redisstore: a failover has lost the share")

func encodeShare(cartID string, lines []cart.Line, expires time.Time) []any {
	args := []any{"i", cartID, "l", layout, "x", seconds(expires.Unix()), "s", "unlisted"}
	for i, l := range lines {
		args = append(args, string(l.ID), fmt.Sprintf("%d %d 0", l.Quantity, i))
		if len(l.Fields) > 0 {
			args = append(args, string(l.ID)+":f", encodeFields(l.Fields))
		}
	}
	return args
}

func (s *Store) dropShare(ctx context.Context, key string) error {
	if err := s.Client.Del(ctx, key).Err(); err != nil {
		return cart.Unavailable("delete share", err)
	}
	return nil
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
	status, err := s.list(ctx, ref, cartID, unlist, code) // first, or a late repeat could share again
	if err != nil {
		return err
	}
	if status != deleted {
		shared, err := s.Shared(ctx, ref, code)
		if err != nil {
			return err
		}
		merged, err := s.Client.Exists(ctx, ref.offeredKey(shared.ID)).Result()
		if err != nil {
			return cart.Unavailable("delete share", err)
		}
		if merged == 0 && shared.ID != cartID {
			return cart.ErrNoCode
		}
	}
	return s.dropShare(ctx, ref.shareKey(code))
}

// The list of the shares that a cart has made is a hash: digest of the code -> when the share expires, in seconds, with " -"
// behind it if it is deleted, so that a late repeat of its request does not share again; n and t as in a cart.
const (
	sharesListed  = 10
	sharesDeleted = 50 // at most: those that expire last
)

type listing string

const (
	notListed listing = ""
	listed    listing = "listed"
	deleted   listing = "deleted" // now or earlier
	listFull  listing = "full"
)

// What list may do instead of listing a share.
const (
	onlyLook = "?"
	unlist   = "-"
)

// list adds the share of the first code to the list. expires is in seconds by Redis' clock, or onlyLook, or unlist, which marks the
// share as deleted. The status is deleted if the share of any of the codes is.
func (s *Store) list(ctx context.Context, ref Ref, cartID, expires string, codes ...string) (status listing, err error) {
	_, err = s.step(ctx, "list share", []string{ref.sharesKey(cartID)}, 0, func(found *slot) (*commit, error) {
		all := parseShares(found.hashes[0])
		over := all.over(found.now.Unix())
		digest := auth.CartToken(codes[0]).Digest()
		value := seconds(all[digest].expires) + " -"
		switch status = all.status(codes); {
		case expires == onlyLook, status == deleted, status == notListed && expires == unlist,
			status == listed && expires != unlist && parseSeconds(expires) <= all[digest].expires:
			return nil, nil
		case expires == unlist:
			status = deleted
			over = append(over, all.excess()...)
		case status == notListed && all.count(false) >= sharesListed:
			status = listFull
			return nil, nil
		default:
			status, value = listed, expires
		}
		c := found.commit()
		c.write("HDEL", found.keys[0], over...)
		return found.fenced(c, shareLife, digest, value), nil
	})
	return status, err
}

type shares map[string]struct {
	expires int64
	deleted bool
}

func parseShares(flat []string) shares {
	all := shares{}
	for i := 0; i+1 < len(flat); i += 2 {
		if digest := flat[i]; digest != "n" && digest != "t" {
			text, gone := strings.CutSuffix(flat[i+1], " -")
			share := all[digest]
			share.expires, share.deleted = parseSeconds(text), gone
			all[digest] = share
		}
	}
	return all
}

// over removes the shares that have expired, and returns their digests.
func (all shares) over(now int64) (gone []any) {
	for digest, share := range all {
		if share.expires <= now {
			gone = append(gone, digest)
			delete(all, digest)
		}
	}
	return gone
}

func (all shares) status(codes []string) (status listing) {
	for i, code := range codes {
		share, ok := all[auth.CartToken(code).Digest()]
		switch {
		case ok && share.deleted:
			return deleted
		case ok && i == 0:
			status = listed
		}
	}
	return status
}

func (all shares) count(deleted bool) (n int) {
	for _, share := range all {
		if share.deleted == deleted {
			n++
		}
	}
	return n
}

// excess is the deleted share that is no longer remembered once there is another one.
func (all shares) excess() []any {
	if all.count(true) < sharesDeleted {
		return nil
	}
	first := ""
	for digest, share := range all {
		if share.deleted && (first == "" || share.expires < all[first].expires) {
			first = digest
		}
	}
	return []any{first}
}

func parseSeconds(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
