package redisstore

import (
	"context"
	"reflect"
	"time"

	"commerce/cart"

	"github.com/redis/go-redis/v9"
)

// Exports for the tests in package redisstore_test, which also import package service.

const (
	NoteGrace          = noteGrace
	ReplicasRemembered = replicasRemembered
	MaxBatch           = maxBatch
)

var (
	ParseCart = parseCart
	ParseHash = parseHash
	Texts     = texts
	RefOf     = refOf
)

func (r Ref) CartKey() string                      { return r.cartKey() }
func (r Ref) ClaimedKey() string                   { return r.claimedKey() }
func (r Ref) KeysKey() string                      { return r.keysKey() }
func (r Ref) OfferedKey(guestCartID string) string { return r.offeredKey(guestCartID) }
func (r Ref) IsGuest() bool                        { return r.guest }

// ScriptNames maps the digests of all scripts to their names.
func ScriptNames() map[string]string {
	names := map[string]string{}
	v := reflect.ValueOf(newScripts())
	for i := range v.NumField() {
		names[v.Field(i).FieldByName("sha").String()] = v.Type().Field(i).Name
	}
	return names
}

// LoadScripts loads all scripts into Redis, so that EVAL is never needed.
func LoadScripts(ctx context.Context, client redis.UniversalClient) error {
	v := reflect.ValueOf(newScripts())
	for i := range v.NumField() {
		if err := client.ScriptLoad(ctx, v.Field(i).FieldByName("source").String()).Err(); err != nil {
			return err
		}
	}
	return nil
}

// Instance returns a copy of a store, as another instance of the service would have. It
// has seen one replica of its client's master.
func (s *Store) Instance(durable bool, minReplicas int, now func() time.Time) *Store {
	other := *s
	other.durable, other.minReplicas, other.now = durable, minReplicas, now
	other.masters = newMasters(now)
	other.masters.at(s.client.(*redis.Client).Options().Addr).maxReplicas(1)
	return &other
}

// Survives reports whether the last write on conn would survive a failover.
func (s *Store) Survives(ctx context.Context, conn *redis.Conn) bool {
	at := s.masters.at(s.client.(*redis.Client).Options().Addr)
	return s.awaitReplicas(ctx, conn, at, replicaWait).survivesFailover()
}

// Conn is one connection to a single Redis.
func (s *Store) Conn() *redis.Conn { return s.client.(*redis.Client).Conn() }

// ClearAt runs the script that clears a cart, with a deadline in Redis' time.
func (s *Store) ClearAt(ctx context.Context, ref Ref, deadline int64) ([]any, error) {
	return s.scripts.clear.run(ctx, s.client, once, []string{ref.cartKey()},
		1000, "ID", "", "", "", "", "", deadline).Slice()
}

// ClaimAt runs the script that claims a guest's cart, with a deadline in Redis' time.
func (s *Store) ClaimAt(ctx context.Context, customer, guest Ref, note string, b cart.Reservation, deadline int64) ([]any, error) {
	return s.scripts.claim.run(ctx, s.client, repeatable,
		[]string{guest.cartKey(), guest.claimedKey(), guest.keysKey()},
		customer.tag(), 1000, note, deadline, cut(b.CartID), b.Lines, b.Text).Slice()
}

// MistakeClock makes the store assume that the clock of a cart's master is ahead by that
// much.
func (s *Store) MistakeClock(ctx context.Context, ref Ref, ahead time.Duration) error {
	at, err := s.masterOf(ctx, ref.cartKey())
	if err == nil {
		at.clock = redisClock{ahead: ahead.Milliseconds(), known: true}
	}
	return err
}

// ChangeAt sends a change once, with a deadline in Redis' time, and returns its outcome.
func (s *Store) ChangeAt(ctx context.Context, ref Ref, on Conditions, with Attempt, c Change, deadline time.Time) (Outcome, error) {
	reply, err := c.script(s.scripts).run(ctx, s.client, once, []string{ref.cartKey(), ref.keysKey()}, append([]any{
		s.ttlOf(ref).Milliseconds(), with.CartID, on.IfMatch, on.Key, on.Fingerprint, on.Stamp, with.PassBy.members(), deadline.UnixMilli(),
	}, c.args...)...).Slice()
	if err != nil {
		return Outcome{}, err
	}
	held, err := s.replied(reply[3], reply[4])
	return Outcome{
		Word: Word(reply[0].(string)), A: reply[1].(int64), B: reply[2].(int64), Held: held,
		Moved: cart.LineID(reply[6].(string)),
	}, err
}

// ClaimedBehind is a claimed cart as it comes from a Redis whose clock is behind that of
// the customer's Redis.
func (s *Store) ClaimedBehind(ctx context.Context, customer Ref, c Claimed, by time.Duration) (Claimed, error) {
	at, err := s.masterOf(ctx, customer.cartKey())
	if err != nil {
		return c, err
	}
	ahead, err := at.ahead(ctx)
	c.master = &master{now: s.now, clock: redisClock{ahead: ahead - by.Milliseconds(), known: true}}
	return c, err
}
