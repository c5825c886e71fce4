package agent

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
	"commerce/cart/redisstore"
)

// attempt is one attempt of an agent's keyed call.
type attempt struct {
	Result []byte // of an earlier attempt; nil if this one is to run
	First  bool   // nothing was stored here before
	Again  bool   // an earlier attempt has ended without a result, and may have changed the cart

	Began int64 // when this one began, in ms by Redis' clock

	key, fingerprint, last string
}

var (
	// errKeyReused means that the key belongs to another request, or that the first result is gone.
	errKeyReused = errors.New("agent: another call has used the key")

	errKeyBusy = errors.New("agent: another attempt of the call is running")

	// errKeyUnstored means that the call may not store the first key under the reference.
	errKeyUnstored = errors.New("agent: the call may not store anything")
)

// Stored describes what this package stores, for erasure.
func Stored() []redisstore.Beside {
	return []redisstore.Beside{{Part: resultsPart, Kind: kindResults}}
}

// Summary says in words what a Holding is; "" for what another package stores.
func Summary(h redisstore.Holding) string {
	if h.Kind != kindResults {
		return ""
	}
	return fmt.Sprintf("results of an agent's calls: %d (carts as they were shown to the agent)", h.Entries)
}

const kindResults redisstore.HoldingKind = "results of an agent's calls"

const resultsPart = "results"

// The results of an agent's keyed calls under one ID are a hash:
//
//	<digest of the key>   "<ms> <fingerprint> <result>": when the call got this result; or if it has none
//	                      yet, until when its attempt may run
//	o                     the digests, in the order in which their calls began
const (
	resultsKept = 256 // of an ID, the newest
	resultLife  = 24 * time.Hour
	digestSize  = 16 // characters
)

// member is what the hash has under the key of a call.
type member struct {
	at                  int64 // ms
	fingerprint, result string
}

func (k *attempt) member(found *redisstore.Slot) (m member, counts bool) {
	value := found.Get(0, k.key)
	ms, rest, _ := strings.Cut(value, " ")
	m.at, _ = strconv.ParseInt(ms, 10, 64)
	m.fingerprint, m.result, _ = strings.Cut(rest, " ")
	return m, value != "" && found.Now.UnixMilli()-m.at < resultLife.Milliseconds()
}

// beginAttempt begins an attempt that ends within life, or returns the result of an earlier one. mayStore allows the
// first key under the reference. With a life of 0 it only looks: then errKeyReused also means that there is a cart
// without a result.
func (s *Carts) beginAttempt(ctx context.Context, ref redisstore.Ref, key, fingerprint string, life time.Duration, mayStore bool) (attempt, error) {
	k := attempt{key: digest96(key), fingerprint: digest96(fingerprint)}
	packed := ""
	err := s.carts.Redis.Edit(ctx, "begin keyed call", []string{ref.BesideKey(resultsPart), ref.CartKey()}, func(found *redisstore.Slot) (*redisstore.Edit, error) {
		held, again := k.member(found)
		used := again || found.Get(0, "o") != "" || found.Exists(1)
		switch {
		case again && held.fingerprint != k.fingerprint:
			return nil, errKeyReused
		case again && held.result != "":
			packed = held.result
			return nil, nil
		case again && found.Now.UnixMilli() < held.at:
			return nil, errKeyBusy
		case life == 0 && used:
			return nil, errKeyReused
		case life == 0:
			return nil, nil
		case !used && !mayStore:
			return nil, errKeyUnstored
		}
		this := attempt{First: !used, Again: again, Began: found.Now.UnixMilli(), key: k.key, fingerprint: k.fingerprint}
		this.last = strconv.FormatInt(this.Began+life.Milliseconds(), 10)
		e := this.begin(found)
		e.Made = func() { k = this }
		return e, nil
	})
	if err == nil && packed != "" {
		k.Result, err = unpack(packed)
	}
	return k, err
}

// unfinished is what the hash has while the attempt runs.
func (k *attempt) unfinished() string { return k.last + " " + k.fingerprint + " " }

func (k *attempt) begin(found *redisstore.Slot) *redisstore.Edit {
	e := &redisstore.Edit{Life: resultLife, OnlyFirst: k.First}
	order := found.Get(0, "o")
	if found.Get(0, k.key) == "" {
		if order += k.key; len(order) > resultsKept*digestSize {
			e.Remove = []any{order[:digestSize]}
			order = order[digestSize:]
		}
	}
	e.Set = []any{"o", order, k.key, k.unfinished()}
	return e
}

// endKeyed keeps the result of the attempt, for a day; nil for none, so that another attempt may run. It returns the kept
// result, of the first attempt that ended with one, or the given one if none is kept.
func (s *Carts) endKeyed(ctx context.Context, ref redisstore.Ref, k attempt, result []byte) ([]byte, error) {
	packed, err := pack(result)
	if err != nil {
		return nil, err
	}
	kept := ""
	err = s.carts.Redis.Edit(ctx, "keep result", []string{ref.BesideKey(resultsPart)}, func(found *redisstore.Slot) (*redisstore.Edit, error) {
		held, _ := k.member(found)
		if kept = ""; held.fingerprint != k.fingerprint {
			return nil, nil
		}
		kept = held.result
		unfinished := found.Get(0, k.key) == k.unfinished()
		if kept != "" || packed == "" && !unfinished { // without a result, another attempt may run on
			return nil, nil
		}
		return &redisstore.Edit{
			Set: []any{k.key, fmt.Sprintf("%d %s %s", found.Now.UnixMilli(), k.fingerprint, packed)}, Life: resultLife,
			Made: func() { kept = packed },
		}, nil
	})
	if err != nil {
		return nil, err
	}
	if kept == "" || kept == packed {
		return result, nil
	}
	return unpack(kept)
}

// dropKeyed forgets an attempt that has stored nothing else. After the First one, nothing is left under the reference.
func (s *Carts) dropKeyed(ctx context.Context, ref redisstore.Ref, k attempt) error {
	return s.carts.Redis.Edit(ctx, "drop keyed call", []string{ref.BesideKey(resultsPart), ref.KeysKey()}, func(found *redisstore.Slot) (*redisstore.Edit, error) {
		if found.Get(0, k.key) != k.unfinished() {
			return nil, nil // another attempt has followed, because this one took too long
		}
		order := found.Get(0, "o")
		switch alone := order == k.key; { // no other call has begun meanwhile
		case alone && k.First:
			return &redisstore.Edit{Delete: 2}, nil
		case alone:
			return &redisstore.Edit{Delete: 1}, nil
		}
		return &redisstore.Edit{Remove: []any{k.key}, Set: []any{"o", without(order, k.key)}, Life: resultLife}, nil
	})
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
