package share

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/redisstore"
	"commerce/cart/redisstore/layout"
)

// A share is a copy of a cart. The list of a cart's shares is in another slot. So a share is stored for a minute, in which nothing opens
// it: the cart's ID is its member s. Then it is listed, and kept if it is still listed: the ID becomes its member i.
const (
	shareLife = 30 * 24 * time.Hour
	unlisted  = time.Minute // how long a share is stored that is not listed yet
)

// The kinds of what is stored: a list leads to its shares.
const (
	KindCopy redisstore.HoldingKind = "share"
	KindList redisstore.HoldingKind = "shares of a cart"
)

const listPart = "shares"

// Stored describes what this package stores, for erasure.
func Stored() []redisstore.Beside {
	return []redisstore.Beside{{Part: listPart, Kind: KindList, Led: KindCopy, Leads: copyKey}}
}

// Summary says in words what a Holding is; "" for what another package stores.
func Summary(h redisstore.Holding) string {
	switch h.Kind {
	case KindCopy:
		return fmt.Sprintf("a shared copy, lines: %d", len(h.Cart.Lines))
	case KindList:
		return fmt.Sprintf("digests of the codes of shared copies: %d", h.Entries)
	}
	return ""
}

// copyKey is the key of a share in the store of a cart, by the digest of its code.
func copyKey(of redisstore.Ref, digest string) string { return of.OtherKey("s", digest) }

func digestOf(code string) string { return auth.CartToken(code).Digest() }

func seconds(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

func parseSeconds(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// keeping is a request of a cart to share its lines under the first code.
type keeping struct {
	store  *redisstore.Store
	cart   redisstore.Ref
	cartID string
	lines  []cart.Line
	codes  []string
}

// keep keeps the share, lists it, and returns when it expires. What is kept already stays as it is. Errors: errTooMany,
// cart.ErrNoCode if the cart has deleted a share with one of the codes, and cart.ErrEmpty if it has moved.
func (k *keeping) keep(ctx context.Context) (expires time.Time, err error) {
	expires, err = k.keepWhereRoom(ctx)
	if errors.Is(err, errTooMany) {
		freed, failed := k.forgetLost(ctx)
		if failed != nil {
			return time.Time{}, failed
		}
		if freed {
			return k.keepWhereRoom(ctx)
		}
	}
	return expires, err
}

func (k *keeping) keepWhereRoom(ctx context.Context) (expires time.Time, err error) {
	const doing = "keep share"
	key := copyKey(k.cart, digestOf(k.codes[0]))
	err = k.store.Edit(ctx, doing, []string{key}, func(found *redisstore.Slot) (*redisstore.Edit, error) {
		if found.Exists(0) {
			return nil, nil
		}
		switch status, err := k.list(ctx, look, time.Time{}); {
		case err != nil:
			return nil, err
		case status == deleted:
			return nil, cart.ErrNoCode
		case status == listFull:
			return nil, errTooMany
		}
		members := layout.CopyOf(k.lines, found.Now.Add(unlisted))
		return &redisstore.Edit{Set: append(members, "s", k.cartID), Life: unlisted}, nil
	})
	if err != nil {
		return time.Time{}, err
	}
	status := notListed
	err = k.store.Edit(ctx, doing, []string{key}, func(found *redisstore.Slot) (*redisstore.Edit, error) {
		if !found.Exists(0) {
			if status, err = k.list(ctx, look, time.Time{}); err == nil && status != deleted {
				err = cart.Unavailable(doing, errLost)
			}
			return nil, err
		}
		ends, isKept := found.Now.Add(shareLife).Truncate(time.Second), found.Get(0, "s") == ""
		if isKept {
			ends = time.Unix(parseSeconds(found.Get(0, "x")), 0)
		}
		// Between the look and the commit: if the share is deleted meanwhile, its fence is gone, and the commit fails. It is not
		// deleted before: the list would say so, or the cart would have moved.
		if status, err = k.list(ctx, add, ends); err != nil || status != listed {
			return nil, err
		}
		if expires = ends; isKept {
			return nil, nil
		}
		return &redisstore.Edit{
			Remove: []any{"s"}, Set: []any{"i", k.cartID, "x", seconds(ends)}, Life: ends.Sub(found.Now), Made: func() { expires = ends },
		}, nil
	})
	if err == nil && status == deleted {
		err = drop(ctx, k.store, key)
	}
	switch { // what is not listed expires: to drop it late would delete what a repeat has kept
	case err != nil:
		return time.Time{}, err
	case status == listFull:
		return time.Time{}, errTooMany
	case status == cartMoved:
		return time.Time{}, cart.ErrEmpty
	case status == deleted:
		return time.Time{}, cart.ErrNoCode
	}
	return expires, nil
}

var (
	errLost    = errors.New("share: a failover has lost the share")
	errTooMany = problem.New(problem.ValidationFailed, "", locale.Text{
		locale.En: "A cart can have at most 10 shared links. Please delete one first.",
		locale.Ar: "لا يمكن أن يكون للسلة أكثر من 10 روابط مشاركة. يُرجى حذف أحدها أولًا.",
	})
)

func drop(ctx context.Context, store *redisstore.Store, key string) error {
	return store.Delete(ctx, "delete share", key)
}

// load returns what is kept under a code, with the ID of the cart that has shared it; otherwise cart.ErrNoCode.
func load(ctx context.Context, store *redisstore.Store, of redisstore.Ref, code string) (cart.Cart, error) {
	shared, err := store.ReadCopy(ctx, "read share", copyKey(of, digestOf(code)))
	if err == nil && shared.ID == "" {
		err = cart.ErrNoCode
	}
	return shared, err
}

// remove deletes a share of a cart, or of one that was merged into it. If there is none with the code, and the cart has deleted none
// earlier, it returns cart.ErrNoCode.
func remove(ctx context.Context, store *redisstore.Store, of redisstore.Ref, cartID, code string) error {
	k := keeping{store: store, cart: of, cartID: cartID, codes: []string{code}}
	status, err := k.list(ctx, unlist, time.Time{}) // first, or a late repeat could share again
	if err != nil {
		return err
	}
	if status != deleted {
		shared, err := load(ctx, store, of, code)
		if err != nil {
			return err
		}
		if err := k.removeFrom(ctx, shared.ID); err != nil {
			return err
		}
	}
	return drop(ctx, store, copyKey(of, digestOf(code)))
}

// removeFrom marks a share that the cart's list lacks as deleted, so that a repeat is told the same. The list lacks it if it was merged
// with the cart that has made it, or if a failover has lost that it was listed; otherwise the error is cart.ErrNoCode.
func (k *keeping) removeFrom(ctx context.Context, madeBy string) error {
	if madeBy != k.cartID {
		merged, err := k.store.WasMerged(ctx, k.cart, madeBy)
		if err == nil && !merged {
			err = cart.ErrNoCode
		}
		if err != nil {
			return err
		}
	}
	_, err := k.list(ctx, unlistLost, time.Time{})
	return err
}

// The list of the shares that a cart has made is a hash: digest of the code -> when the share expires, in seconds, with " -"
// behind it if it is deleted, so that a late repeat of its request does not share again.
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
	cartMoved listing = "moved" // the cart has moved: its new owner deletes shares without this list
)

// action is what list does with a share.
type action int

const (
	look action = iota
	add
	unlist     // marks it as deleted if it is listed
	unlistLost // also if it is not, because a failover has lost that
)

// list does something with the share of the first code. expires is for add, by Redis' clock. The status is deleted if the share of any
// of the codes is.
func (k *keeping) list(ctx context.Context, do action, expires time.Time) (status listing, err error) {
	err = k.store.Edit(ctx, "list share", k.listKeys(), func(found *redisstore.Slot) (*redisstore.Edit, error) {
		all := parseList(found)
		over := all.over(found.Now.Unix())
		digest := digestOf(k.codes[0])
		value := seconds(expires)
		status = all.status(k.codes)
		full := status == notListed && all.count(false) >= sharesListed
		switch {
		case do == look && full:
			status = listFull
			return nil, nil
		case do == look, status == deleted, status == notListed && do == unlist:
			return nil, nil
		case do != add:
			ends := cmp.Or(all[digest].expires, found.Now.Add(shareLife).Unix())
			status, value = deleted, strconv.FormatInt(ends, 10)+" -"
			over = append(over, all.excess()...)
		case found.Get(1, "i") != k.cartID:
			status = cartMoved
			return nil, nil
		case full:
			status = listFull
			return nil, nil
		case status == listed && expires.Unix() <= all[digest].expires:
			return nil, nil
		default:
			status = listed
		}
		return &redisstore.Edit{Remove: over, Set: []any{digest, value}, Life: shareLife}, nil
	})
	return status, err
}

// forgetLost removes the shares from the list that have no copy, and reports whether there were any: a request has died before it kept
// one, or a failover has lost it.
func (k *keeping) forgetLost(ctx context.Context) (forgotten bool, err error) {
	var listed shares
	lost := shares{}
	err = k.store.Edit(ctx, "read shares", k.listKeys(), func(found *redisstore.Slot) (*redisstore.Edit, error) {
		listed = parseList(found)
		return nil, nil
	})
	for _, digest := range slices.Sorted(maps.Keys(listed)) {
		if err != nil || listed[digest].deleted {
			continue
		}
		var found int64
		if found, err = k.store.Client.Exists(ctx, copyKey(k.cart, digest)).Result(); found == 0 {
			lost[digest] = listed[digest]
		}
	}
	if err != nil {
		return false, cart.AsUnavailable("look for shares", err)
	}
	err = k.store.Edit(ctx, "forget shares", k.listKeys(), func(found *redisstore.Slot) (*redisstore.Edit, error) {
		var gone []any
		all := parseList(found)
		for digest, share := range lost {
			if all[digest] == share { // otherwise a repeat has listed it again
				gone = append(gone, digest)
			}
		}
		if forgotten = len(gone) > 0; !forgotten {
			return nil, nil
		}
		return &redisstore.Edit{Remove: gone, Life: shareLife}, nil
	})
	return forgotten, err
}

func (k *keeping) listKeys() []string {
	return []string{k.cart.BesideKey(listPart + ":" + k.cartID), k.cart.CartKey()}
}

// shares are those of a list, by the digests of their codes.
type shares map[string]struct {
	expires int64
	deleted bool
}

func parseList(found *redisstore.Slot) shares {
	all := shares{}
	for digest, value := range found.Members(0) {
		text, gone := strings.CutSuffix(value, " -")
		share := all[digest]
		share.expires, share.deleted = parseSeconds(text), gone
		all[digest] = share
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
		share, ok := all[digestOf(code)]
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
