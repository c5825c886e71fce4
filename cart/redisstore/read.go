package redisstore

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

	"github.com/redis/go-redis/v9"

	"commerce/cart"
	"commerce/cart/redisstore/layout"
)

// Stored is what is stored for a reference. The zero value means nothing is.
type Stored struct {
	layout.Hash

	// Merged is the report of the latest merge within cart.ReportLife; nil for none.
	Merged *cart.MergeReport

	// roomForKeys is how many idempotency keys at least can be added before the oldest must leave; 0 if that is not known.
	roomForKeys int
	oldestKeys  []string // all, if the room was too small when the cart was read; otherwise nil
}

// Load reads a cart with one HGETALL, and renews its TTL if 1/cart.Renewals of it has passed. It
// creates nothing: if there is no cart, it returns the zero Stored.
func (s *Store) Load(ctx context.Context, ref Ref) (Stored, error) {
	at, err := s.masterOf(ctx, ref.CartKey())
	if err != nil {
		return Stored{}, cart.Unavailable("find master", err)
	}
	hashes, err := s.ask(ctx, at, nil, []string{ref.CartKey()})
	if err != nil {
		return Stored{}, cart.Unavailable("read cart", err)
	}
	return s.loaded(ctx, at, ref, hashes[0])
}

// ask reads the hashes of keys, and runs other commands that only read, in one round trip to a
// master, which other callers may share. It returns the commands that have read the hashes, for
// membersOf. If the master cannot be reached or refuses a command, ask repeats all of them through
// the client, which knows where the cart is now; except for first, which run before the hashes are
// read: without a key, they may reach another server. An error means that there is no reply; otherwise
// each command has its own result.
func (s *Store) ask(ctx context.Context, at located, first []redis.Cmder, keys []string, others ...redis.Cmder) (hashes []redis.Cmder, err error) {
	cmds := make([]redis.Cmder, 0, len(first)+len(keys)+len(others))
	cmds = append(cmds, first...)
	for _, key := range keys {
		// One allocation for all members. go-redis neither redirects nor repeats what it does not read.
		cmds = append(cmds, redis.NewRawCmd(ctx, "hgetall", key))
	}
	cmds = append(cmds, others...)
	err = at.reads.send(ctx, at.client, reading{s.alone, !s.clustered()}, cmds...)
	hashes = cmds[len(first):][:len(keys)]
	if err == nil {
		return hashes, nil
	}
	if ctx.Err() != nil || !s.clustered() && !isReply(err) { // the client has already tried again
		return nil, err
	}
	for i, key := range keys {
		hashes[i] = redis.NewMapStringStringCmd(ctx, "hgetall", key)
	}
	for _, cmd := range others {
		cmd.SetErr(nil)
	}
	for _, cmd := range first {
		cmd.SetErr(err)
	}
	exec(ctx, s.Client, !s.clustered(), cmds[len(first):])
	return hashes, nil
}

// read reads all that changes are decided by, and what is stored under the idempotency keys of the members.
func (s *Store) read(ctx context.Context, at located, ref Ref, members []*member) (Stored, error) {
	sent := s.clock()
	clock := redis.NewTimeCmd(ctx, "time")
	var others []redis.Cmder
	for _, m := range members {
		if m.Key != "" {
			others = append(others, redis.NewStringCmd(ctx, "hget", ref.KeysKey(), m.Key))
		}
	}
	kept := redis.NewIntCmd(ctx, "hlen", ref.KeysKey())
	if len(others) > 0 {
		others = append(others, kept)
	}
	hashes, err := s.ask(ctx, at, []redis.Cmder{clock}, []string{ref.CartKey()}, others...)
	if err == nil {
		err = firstFailure(others)
	}
	if err != nil {
		return Stored{}, err
	}
	if clock.Err() == nil {
		at.learn(clock.Val().UnixMilli(), sent, s.clock())
	}
	stored, err := s.parsed.parse(ref, hashes[0])
	if err == nil && len(others) > 0 {
		stored.roomForKeys = max(0, cart.KeysKept-int(kept.Val()))
		if keys := len(others) - 1; keys > stored.roomForKeys {
			stored.oldestKeys, err = s.oldestKeys(ctx, ref)
		}
	}
	i := 0
	for _, m := range members {
		if m.Key != "" {
			m.used = others[i].(*redis.StringCmd).Val()
			i++
		}
	}
	return stored, err
}

// loaded parses a cart that was read from a master, and renews its TTL if needed.
func (s *Store) loaded(ctx context.Context, at located, ref Ref, hash redis.Cmder) (Stored, error) {
	stored, err := s.parsed.parse(ref, hash)
	if err != nil {
		return Stored{}, cart.Unavailable("read cart", err)
	}
	if stored.Number == "" {
		return Stored{}, nil
	}
	redisNow, err := at.redisNow(ctx)
	if err != nil {
		return Stored{}, cart.Unavailable("ask time", err)
	}
	stored.Merged = stored.mergedSince(redisNow)
	left := time.Duration(stored.Expires*1000-redisNow) * time.Millisecond
	if stored.renewedAt(left, s.ttlOf(ref)) {
		if renewed, err := s.renew(ctx, ref); err == nil {
			return renewed, nil
		}
		// A Redis that refuses writes can still be read. The estimate of its clock may be wrong.
		if left, err = s.Client.PTTL(ctx, ref.CartKey()).Result(); err != nil {
			return Stored{}, cart.Unavailable("read TTL", err)
		}
	}
	return stored.expiring(left, s.Now()), nil
}

// renewedAt reports whether a read renews the TTL of a cart that has this much time left. It does if
// that is more than a TTL: the setting has changed, or the estimate of Redis' clock is wrong.
func (c *Stored) renewedAt(left, ttl time.Duration) bool {
	part := ttl / cart.Renewals
	return c.InUse() && (left <= ttl-part || left > ttl+part)
}

func (s *Store) renew(ctx context.Context, ref Ref) (renewed Stored, err error) {
	_, err = s.step(ctx, "renew cart", []string{ref.CartKey()}, 0, func(found *Slot) (*commit, error) {
		held, err := parseStored(found.hashes[0], nil)
		if err != nil {
			return nil, err
		}
		held.Merged = held.mergedSince(found.Now.UnixMilli())
		left := time.Unix(held.Expires, 0).Sub(found.Now)
		if renewed = held.expiring(left, s.Now()); !held.renewedAt(left, found.ttl) { // by a change meanwhile
			return nil, nil
		}
		c := found.commit()
		held.Hash, left = c.encode(&held.Hash, held.Cell, found.ttl, found.Now)
		renewed = held.expiring(left, s.Now())
		return c, nil
	})
	return renewed, err
}

// mergedSince returns Merged, at a time in ms by Redis' clock.
func (c *Stored) mergedSince(now int64) *cart.MergeReport {
	if c.Report == nil || now-c.Report.At.UnixMilli() > cart.ReportLife.Milliseconds() {
		return nil
	}
	return c.Report
}

// expiring sets ExpiresAt. If left is not positive, it stays zero.
func (c Stored) expiring(left time.Duration, now time.Time) Stored {
	if c.ID != "" && left > 0 {
		c.ExpiresAt = now.Add(left)
	}
	return c
}

// oldestKeys returns the digests of all keys, the oldest first.
func (s *Store) oldestKeys(ctx context.Context, ref Ref) ([]string, error) {
	all, err := s.Client.HGetAll(ctx, ref.KeysKey()).Result()
	if err != nil {
		return nil, err
	}
	ms := make(map[string]int64, len(all))
	for key, use := range all {
		at, _, _ := strings.Cut(use, " ")
		ms[key], _ = strconv.ParseInt(at, 10, 64)
	}
	return slices.SortedFunc(maps.Keys(ms), func(a, b string) int { return cmp.Or(cmp.Compare(ms[a], ms[b]), cmp.Compare(a, b)) }), nil
}

// excessKeys returns the oldest keys, which leave when others are added.
func (c *Stored) excessKeys(added map[string]cart.KeyUse) []string {
	isAdded := func(key string) bool { _, ok := added[key]; return ok }
	rest := slices.DeleteFunc(slices.Clone(c.oldestKeys), isAdded)
	return rest[:min(len(rest), max(0, len(rest)+len(added)-cart.KeysKept))]
}

func anyOf(texts []string) []any {
	all := make([]any, len(texts))
	for i := range texts {
		all[i] = texts[i]
	}
	return all
}

// parseStored parses the members of a cart that were read, if that succeeded; the zero Stored if there is none.
func parseStored(flat []string, err error) (Stored, error) {
	if err != nil {
		return Stored{}, err
	}
	hash, err := layout.Parse(flat)
	return Stored{Hash: hash}, err
}

// membersOf appends the reply of a command of ask to room: member, value, member, value, …
func membersOf(hash redis.Cmder, room []string) ([]string, error) {
	if raw, ok := hash.(*redis.RawCmd); ok {
		reply, err := raw.Result()
		if err != nil {
			return nil, err
		}
		return parseHash(room, string(reply))
	}
	members, err := hash.(*redis.MapStringStringCmd).Result()
	for member, value := range members {
		room = append(room, member, value)
	}
	return room, err
}

// errReply means that Redis replied with an error, or with something other than a hash.
var errReply = errors.New("redisstore: unexpected reply")

// isMissing reports whether Redis replied that there is no value. An error that only wraps
// redis.Nil is a failure: no sentinel knows the master.
func isMissing(err error) bool { return err == redis.Nil }

func isReply(err error) bool {
	_, refused := errors.AsType[redis.Error](err)
	return refused || errors.Is(err, errReply)
}

// parseHash parses the reply of HGETALL, a list in RESP2 and a map in RESP3, and appends it to
// room. The texts share the memory of reply.
func parseHash(room []string, reply string) ([]string, error) {
	n, rest, ok := cutLength(reply, '*')
	if pairs, after, isMap := cutLength(reply, '%'); isMap {
		n, rest, ok = 2*pairs, after, true
	}
	if !ok {
		return nil, fmt.Errorf("%w: %.40q", errReply, reply)
	}
	flat := slices.Grow(room, n)[:len(room)+n]
	for i := len(room); i < len(flat); i++ {
		size, text, ok := cutLength(rest, '$')
		if !ok || size > len(text)-len("\r\n") {
			return nil, fmt.Errorf("%w: %.40q", errReply, rest)
		}
		flat[i], rest = text[:size], text[size+len("\r\n"):]
	}
	return flat, nil
}

// cutLength cuts the first line off a reply: its kind and a length. A length that exceeds the
// reply is not valid.
func cutLength(reply string, kind byte) (n int, rest string, ok bool) {
	if reply == "" || reply[0] != kind {
		return 0, "", false
	}
	i := 1
	for ; i < len(reply) && '0' <= reply[i] && reply[i] <= '9' && n <= len(reply); i++ {
		n = 10*n + int(reply[i]-'0')
	}
	rest, ended := strings.CutPrefix(reply[i:], "\r\n")
	return n, rest, i > 1 && ended && n <= len(reply)
}

func texts(list []any) []string {
	flat := make([]string, len(list))
	for i := range list {
		flat[i], _ = list[i].(string)
	}
	return flat
}
