package redisstore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/klauspost/compress/flate"
	"github.com/redis/go-redis/v9"

	"commerce/auth/script"
	"commerce/cart"
)

// Keyed is one attempt of an agent's keyed call. lua/attempt.lua says how results are kept.
type Keyed struct {
	Result []byte // of an earlier attempt; nil if this one is to run, until EndKeyed
	First  bool   // nothing was stored here before
	Again  bool   // an earlier attempt has ended without a result, and may have changed the cart

	Began int64 // when this one began, in ms by Redis' clock

	key, fingerprint, last string
}

var (
	// ErrKeyReused means that the key belongs to another request, or that the first result is gone.
	ErrKeyReused = errors.New("redisstore: another call has used the key")

	ErrKeyBusy = errors.New("redisstore: another attempt of the call is running")

	// ErrKeyUnstored means that the call may not store the first key under the reference.
	ErrKeyUnstored = errors.New("redisstore: the call may not store anything")
)

// BeginKeyed begins an attempt that ends within life, or returns the result of an earlier one. mayStore allows the
// first key under the reference. With a life of 0 it only looks: then ErrKeyReused also means that there is a cart
// without a result.
func (s *Store) BeginKeyed(ctx context.Context, ref Ref, key, fingerprint string, life time.Duration, mayStore bool) (Keyed, error) {
	k := Keyed{key: digest96(key), fingerprint: digest96(fingerprint)}
	reply, err := s.scripts["attempt"].Run(ctx, s.Client, script.Once, []string{ref.resultsKey(), ref.cartKey()},
		k.key, k.fingerprint, life.Milliseconds(), mayStore).StringSlice()
	if err != nil {
		return Keyed{}, cart.Unavailable("begin keyed call", err)
	}
	switch reply[0] {
	case "kept":
		k.Result, err = unpack(reply[1])
		return k, err
	case "conflict", "used":
		return Keyed{}, ErrKeyReused
	case "busy":
		return Keyed{}, ErrKeyBusy
	case "rate_limited":
		return Keyed{}, ErrKeyUnstored
	case "none":
		return Keyed{}, nil
	}
	k.First, k.Again, k.last = reply[0] == "first", reply[0] == "again", reply[1]
	until, _ := strconv.ParseInt(k.last, 10, 64) // as the script has written it
	k.Began = until - life.Milliseconds()
	return k, nil
}

// EndKeyed keeps the result of the attempt, for a day; nil for none, so that another attempt may run. It returns the result
// that is kept, which is the one of the first attempt to end with one.
func (s *Store) EndKeyed(ctx context.Context, ref Ref, k Keyed, result []byte) ([]byte, error) {
	packed, err := pack(result)
	if err != nil {
		return nil, err
	}
	kept, err := s.scripts["result"].Run(ctx, s.Client, script.Repeatable, []string{ref.resultsKey()},
		k.key, k.fingerprint, k.last, packed).Text()
	if err != nil {
		return nil, cart.Unavailable("keep result", err)
	}
	if kept == "" || kept == packed {
		return result, nil
	}
	return unpack(kept)
}

// DropKeyed forgets an attempt that has stored nothing else. After the First one, nothing is left under the reference.
func (s *Store) DropKeyed(ctx context.Context, ref Ref, k Keyed) error {
	key := ref.resultsKey()
	var held, order *redis.StringCmd
	_, err := s.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		held, order = p.HGet(ctx, key, k.key), p.HGet(ctx, key, "o")
		return nil
	})
	switch {
	case errors.Is(err, redis.Nil) || err == nil && held.Val() != k.last+" "+k.fingerprint+" ":
		return nil // another attempt has followed, because this one took too long
	case err != nil:
	case k.First:
		err = s.Client.Del(ctx, key, ref.keysKey()).Err()
	case order.Val() == k.key:
		err = s.Client.HDel(ctx, key, k.key, "o").Err() // in one step, since another call may begin
	default:
		err = s.Client.HDel(ctx, key, k.key).Err()
	}
	if err != nil {
		return cart.Unavailable("drop keyed call", err)
	}
	return nil
}

// pack compresses a result, because each line in JSON repeats the same names. nil stays empty.
func pack(result []byte) (string, error) {
	if result == nil {
		return "", nil
	}
	var b bytes.Buffer
	if err := flate.StatelessDeflate(&b, result, true, nil); err != nil {
		return "", fmt.Errorf("compress result: %w", err)
	}
	return b.String(), nil
}

func unpack(packed string) ([]byte, error) {
	r := flate.NewReader(bytes.NewReader([]byte(packed)))
	result, err := io.ReadAll(r)
	if err = cmp.Or(err, r.Close()); err != nil {
		return nil, cart.Unavailable("read result", err)
	}
	return result, nil
}

func digest96(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}
