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
	"time"

	"github.com/klauspost/compress/flate"

	"commerce/auth/script"
	"commerce/cart"
)

// Keyed is one attempt of an agent's keyed call. lua/attempt.lua says how results are kept.
type Keyed struct {
	Result []byte // of an earlier attempt; nil if this one is to run, until EndKeyed
	First  bool   // nothing was stored here before
	Again  bool   // an earlier attempt has ended without a result, and may have changed the cart

	key, fingerprint, last string
}

var (
	// ErrKeyReused means that the key belongs to another request, or that the first result is gone.
	ErrKeyReused = errors.New("redisstore: another call has used the key")

	// ErrKeyBusy means that another attempt is running.
	ErrKeyBusy = errors.New("redisstore: another attempt of the call is running")

	// ErrKeyUnstored means that the call would store the first key here, which it must not.
	ErrKeyUnstored = errors.New("redisstore: the call may not store anything")
)

// BeginKeyed begins an attempt that ends within life, or returns the result of an earlier one. mayStore
// allows the first key under the reference.
func (s *Store) BeginKeyed(ctx context.Context, ref Ref, key, fingerprint string, life time.Duration, mayStore bool) (Keyed, error) {
	k := Keyed{key: digest96(key), fingerprint: digest96(fingerprint)}
	word, text, err := s.attempt(ctx, ref, k, max(life.Milliseconds(), 1), mayStore)
	switch {
	case err != nil:
		return Keyed{}, err
	case word == "kept":
		k.Result, err = unpack(text)
		return k, err
	case word == "conflict":
		return Keyed{}, ErrKeyReused
	case word == "busy":
		return Keyed{}, ErrKeyBusy
	case word == "rate_limited":
		return Keyed{}, ErrKeyUnstored
	}
	k.First, k.Again, k.last = word == "first", word == "again", text
	return k, nil
}

// FindKeyed returns the result of a keyed call that creates a cart under a reference; nil if nothing
// is stored there. ErrKeyReused also means that there is a cart, and no result.
func (s *Store) FindKeyed(ctx context.Context, ref Ref, key, fingerprint string) ([]byte, error) {
	word, text, err := s.attempt(ctx, ref, Keyed{key: digest96(key), fingerprint: digest96(fingerprint)}, 0, false)
	switch {
	case err != nil || word == "none":
		return nil, err
	case word == "kept":
		return unpack(text)
	case word == "busy":
		return nil, ErrKeyBusy
	}
	return nil, ErrKeyReused
}

func (s *Store) attempt(ctx context.Context, ref Ref, k Keyed, life int64, mayStore bool) (word, text string, err error) {
	reply, err := s.scripts["attempt"].Run(ctx, s.Client, script.Once, []string{ref.resultsKey(), ref.cartKey()},
		k.key, k.fingerprint, life, mayStore).StringSlice()
	if err != nil {
		return "", "", cart.Unavailable("begin keyed call", err)
	}
	return reply[0], append(reply, "")[1], nil
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

// pack compresses a result: a cart in JSON says the same of each line. nil stays empty.
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

// digest96 returns 96 bits of a text's digest, in 16 characters.
func digest96(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}
