package redisstore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth"
	"commerce/cart"
	"commerce/cart/money"
)

// Resting is a cart with lines that nobody has used for a while.
type Resting struct {
	Owner                   // zero for a guest's
	Lines     []RestingLine `json:"lines"`
	Value     money.Amount  `json:"value"` // of all lines, at UnitPrice
	Version   int64         `json:"version"`
	IdleSince time.Time     `json:"idle_since"` // or up to 1/720 of the TTL later: see TTLs
}

// Owner is a customer, as the key of the cart names it: by the ID, or by a digest of it.
type Owner struct {
	Customer       string `json:"customer,omitempty"`
	CustomerDigest string `json:"customer_digest,omitempty"`
}

// NewOwner returns the ID, and also the digest if keys have that instead.
func NewOwner(customer string) Owner {
	digest, hashed := strings.CutPrefix(auth.CustomerKey(customer), "~")
	if !hashed {
		digest = ""
	}
	return Owner{customer, digest}
}

type RestingLine struct {
	ItemID    cart.LineID  `json:"item_id"`
	ProductID int64        `json:"product_id"`
	PlanID    *int64       `json:"plan_id"`
	Quantity  int64        `json:"quantity"`
	UnitPrice money.Amount `json:"unit_price"` // when the line was added
}

// Rest says which carts of a store are at rest: those that were idle for a time from Idle up to Within.
type Rest struct {
	Store        int64
	Now          time.Time // by Redis' clock
	Idle, Within time.Duration
}

// RestBatch is what one step of a walk over carts at rest finds.
type RestBatch struct {
	Carts      []Resting
	Unreadable int    // carts that this release cannot read
	Newer      int    // carts that expire later than the TTLs allow, so it is unknown since when they are idle
	Next       uint64 // cursor of the next step; 0 after the last one
}

// RestStep is the minimum number of keys that AtRest visits.
const RestStep = 100

// clocksApart is more than the clocks of this process and of Redis differ.
const clocksApart = time.Hour

// AtRest visits the next keys of one master, from a cursor that is 0 at first. A walk sees every cart that
// exists during all of it, and may see one twice while Redis resizes its table of keys.
func (s *Store) AtRest(ctx context.Context, master redis.Cmdable, r Rest, cursor uint64) (found RestBatch, err error) {
	keys, next, err := master.Scan(ctx, cursor, beforeTag+strconv.FormatInt(r.Store, 10)+":[cg]:*"+afterTag, RestStep).Result()
	if err != nil {
		return found, fmt.Errorf("look for carts: %w", err)
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	found.Next = next
	hashes, err := master.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, key := range keys {
			p.HGetAll(ctx, key)
		}
		return nil
	})
	for i, hash := range hashes {
		if err := cmp.Or(hash.Err(), err); err != nil && !isReply(err) { // of each: that of one must not hide a lost connection
			return found, fmt.Errorf("read carts: %w", err)
		}
		stored, err := parseStored(membersOf(hash, nil))
		ref := refOf(keys[i])
		since := time.Unix(stored.Expires, 0).Add(-s.ttlOf(ref))
		idle := r.Now.Sub(since)
		switch {
		case err != nil:
			found.Unreadable++
		case len(stored.Lines) == 0:
		case since.After(s.Now().Add(clocksApart)):
			found.Newer++
		case r.Idle <= idle && idle <= r.Within:
			found.Carts = append(found.Carts, resting(ref, stored, since.UTC()))
		}
	}
	return found, nil
}

func resting(ref Ref, stored Stored, since time.Time) Resting {
	r := Resting{Version: stored.Version, IdleSince: since}
	for _, l := range stored.Lines {
		line := RestingLine{l.ID, l.ID.Product(), nil, l.Quantity, l.AddedPrice}
		if plan := l.ID.Plan(); plan != 0 {
			line.PlanID = &plan
		}
		r.Lines = append(r.Lines, line)
		r.Value += money.Amount(l.Quantity) * l.AddedPrice
	}
	if _, customer, found := strings.Cut(ref.tag(), ":c:"); found {
		var hashed bool
		if r.CustomerDigest, hashed = strings.CutPrefix(customer, "~"); !hashed {
			r.Owner = Owner{Customer: customer}
		}
	}
	return r
}

// Guests are the totals of guests' carts at rest. Nobody can write to a guest.
type Guests struct {
	Carts int64        `json:"carts"`
	Lines int64        `json:"lines"`
	Value money.Amount `json:"value"`
}

// Print writes customers' carts as lines of JSON, in one write, and counts those of guests unless that fails.
func (g *Guests) Print(w io.Writer, carts []Resting) error {
	var lines bytes.Buffer
	sum := *g
	for _, r := range carts {
		if r.Owner != (Owner{}) {
			if err := json.NewEncoder(&lines).Encode(r); err != nil {
				return err
			}
			continue
		}
		sum.Carts++
		sum.Lines += int64(len(r.Lines))
		sum.Value += r.Value
	}
	if _, err := lines.WriteTo(w); err != nil {
		return err
	}
	*g = sum
	return nil
}

// PrintTotals writes the last line.
func (g Guests) PrintTotals(w io.Writer) error {
	return json.NewEncoder(w).Encode(map[string]Guests{"guests": g})
}

// Masters are the masters of a Redis at a time, sorted.
type Masters struct {
	Clients []*redis.Client
	// ID changes when one of them is restarted or replaced, or when slots move between them. Cursors of
	// AtRest are then invalid, because each process orders keys in its own way. While a slot is being moved, each
	// call returns another one: its keys go to a master that may have been walked.
	ID   uint32
	Keys int64     // of all of them
	Now  time.Time // by the clock of one of them
}

// Masters asks the servers, which need the right to run INFO, and in a cluster CLUSTER NODES.
func (s *Store) Masters(ctx context.Context) (m Masters, err error) {
	var mu sync.Mutex
	var identity []string
	ask := func(ctx context.Context, master *redis.Client) error {
		info, err := master.InfoMap(ctx, "server", "keyspace").Result()
		var slots string
		if err == nil && s.clustered() {
			var nodes string
			nodes, err = master.ClusterNodes(ctx).Result()
			slots = slotsOfMyself(nodes)
		}
		if err != nil {
			return fmt.Errorf("ask %s: %w", ServerOf(master), err)
		}
		if strings.Contains(slots, "[") { // one is being moved
			slots = rand.Text()
		}
		mu.Lock()
		defer mu.Unlock()
		var keys int64
		_, _ = fmt.Sscanf(info["Keyspace"][fmt.Sprintf("db%d", master.Options().DB)], "keys=%d", &keys) // none if it is empty
		us, _ := strconv.ParseInt(info["Server"]["server_time_usec"], 10, 64)
		m.Clients, m.Keys, m.Now = append(m.Clients, master), m.Keys+keys, time.UnixMicro(us)
		identity = append(identity, master.Options().Addr+" "+info["Server"]["run_id"]+" "+slots)
		return nil
	}
	switch client := s.Client.(type) {
	case *redis.Client:
		err = ask(ctx, client)
	case *redis.ClusterClient:
		err = client.ForEachMaster(ctx, ask)
	}
	slices.SortFunc(m.Clients, func(a, b *redis.Client) int { return cmp.Compare(a.Options().Addr, b.Options().Addr) })
	slices.Sort(identity)
	m.ID = crc32.ChecksumIEEE([]byte(strings.Join(identity, "\n")))
	return m, err
}

// slotsOfMyself returns the slots of the node that printed CLUSTER NODES, as it prints them (see ReplicasOfMyself).
func slotsOfMyself(nodes string) string {
	for line := range strings.Lines(nodes) {
		if f := strings.Fields(line); len(f) > 8 && strings.Contains(f[2], "myself") {
			return strings.Join(f[8:], " ")
		}
	}
	return ""
}
