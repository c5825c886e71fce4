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
	"strings"
	"time"

	"github.com/klauspost/compress/flate"

	"commerce/cart"
)

// Keyed is one attempt of an agent's keyed call.
type Keyed struct {
	Result []byte // of an earlier attempt; nil if this one is to run
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

// The results of an agent's keyed calls under one ID are a hash:
//
//	<digest of the key>   "<ms> <fingerprint> <result>": when the call got this result; or if it has none
//	                      yet, until when its attempt may run
//	o                     the digests, in the order in which their calls began
//	n, t                  as in a cart
const (
	resultsKept = 256 // of an ID, the newest
	resultLife  = 24 * time.Hour
	digestSize  = 16 // characters
)

// attempt is what the hash has under the key of a call.
type attempt struct {
	at                  int64 // ms
	fingerprint, result string
}

func (k *Keyed) attempt(found *slot) (a attempt, counts bool) {
	value := found.get(0, k.key)
	ms, rest, _ := strings.Cut(value, " ")
	a.at, _ = strconv.ParseInt(ms, 10, 64)
	a.fingerprint, a.result, _ = strings.Cut(rest, " ")
	return a, value != "" && found.now.UnixMilli()-a.at < resultLife.Milliseconds()
}

// BeginKeyed begins an attempt that ends within life, or returns the result of an earlier one. mayStore allows the
// first key under the reference. With a life of 0 it only looks: then ErrKeyReused also means that there is a cart
// without a result.
func (s *Store) BeginKeyed(ctx context.Context, ref Ref, key, fingerprint string, life time.Duration, mayStore bool) (Keyed, error) {
	k := Keyed{key: digest96(key), fingerprint: digest96(fingerprint)}
	packed := ""
	_, err := s.step(ctx, "begin keyed call", []string{ref.resultsKey(), ref.cartKey()}, 0, func(found *slot) (*commit, error) {
		held, again := k.attempt(found)
		used := again || found.get(0, "o") != "" || len(found.hashes[1]) > 0
		switch {
		case again && held.fingerprint != k.fingerprint:
			return nil, ErrKeyReused
		case again && held.result != "":
			packed = held.result
			return nil, nil
		case again && found.now.UnixMilli() < held.at:
			return nil, ErrKeyBusy
		case life == 0 && used:
			return nil, ErrKeyReused
		case life == 0:
			return nil, nil
		case !used && !mayStore:
			return nil, ErrKeyUnstored
		}
		this := Keyed{First: !used, Again: again, Began: found.now.UnixMilli(), key: k.key, fingerprint: k.fingerprint}
		this.last = strconv.FormatInt(this.Began+life.Milliseconds(), 10)
		c := this.begin(found)
		c.made = func() { k = this }
		return c, nil
	})
	if err == nil && packed != "" {
		k.Result, err = unpack(packed)
	}
	return k, err
}

// unfinished is what the hash has while the attempt runs.
func (k *Keyed) unfinished() string { return k.last + " " + k.fingerprint + " " }

func (k *Keyed) begin(found *slot) *commit {
	c := found.commit()
	if k.First {
		c.check(found.keys[1], "l", "")
	}
	order := found.get(0, "o")
	if found.get(0, k.key) == "" {
		if order += k.key; len(order) > resultsKept*digestSize {
			c.write("HDEL", found.keys[0], order[:digestSize])
			order = order[digestSize:]
		}
	}
	return found.fenced(c, resultLife, "o", order, k.key, k.unfinished())
}

// EndKeyed keeps the result of the attempt, for a day; nil for none, so that another attempt may run. It returns the kept
// result, of the first attempt that ended with one, or the given one if none is kept.
func (s *Store) EndKeyed(ctx context.Context, ref Ref, k Keyed, result []byte) ([]byte, error) {
	packed, err := pack(result)
	if err != nil {
		return nil, err
	}
	kept := ""
	_, err = s.step(ctx, "keep result", []string{ref.resultsKey()}, 0, func(found *slot) (*commit, error) {
		held, _ := k.attempt(found)
		if kept = ""; held.fingerprint != k.fingerprint {
			return nil, nil
		}
		kept = held.result
		unfinished := found.get(0, k.key) == k.unfinished()
		if kept != "" || packed == "" && !unfinished { // without a result, another attempt may run on
			return nil, nil
		}
		c := found.fenced(found.commit(), resultLife, k.key, fmt.Sprintf("%d %s %s", found.now.UnixMilli(), k.fingerprint, packed))
		c.made = func() { kept = packed }
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	if kept == "" || kept == packed {
		return result, nil
	}
	return unpack(kept)
}

// DropKeyed forgets an attempt that has stored nothing else. After the First one, nothing is left under the reference.
func (s *Store) DropKeyed(ctx context.Context, ref Ref, k Keyed) error {
	_, err := s.step(ctx, "drop keyed call", []string{ref.resultsKey(), ref.keysKey()}, 0, func(found *slot) (*commit, error) {
		if found.get(0, k.key) != k.unfinished() {
			return nil, nil // another attempt has followed, because this one took too long
		}
		c := found.commit()
		order := found.get(0, "o")
		switch alone := order == k.key; { // no other call has begun meanwhile
		case alone && k.First:
			c.delete(found.keys[0])
			c.delete(found.keys[1])
		case alone:
			c.delete(found.keys[0])
		default:
			c.write("HDEL", found.keys[0], k.key)
			found.fenced(c, resultLife, "o", without(order, k.key))
		}
		return c, nil
	})
	return err
}

// without cuts a digest out of their order.
func without(order, digest string) string {
	var left strings.Builder
	for ; len(order) >= digestSize; order = order[digestSize:] {
		if order[:digestSize] != digest {
			left.WriteString(order[:digestSize])
		}
	}
	return left.String()
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
