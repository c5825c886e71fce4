package redisstore

import (
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/bounded"
)

// parsedCarts remembers carts with the replies that they were parsed from. Most reads are of a cart that
// has not changed since its last one, and parsing takes longer than comparing. Its carts are shared:
// nothing changes them.
type parsedCarts struct {
	known *bounded.Cache[string, parsedCart]
	clock func() time.Time
}

type parsedCart struct {
	reply  string
	stored Stored
	text   int64     // bytes, if there is no reply, which has them
	at     time.Time // when it was the cart
	shared bool      // whether others have changed the cart since this instance saw it first
}

// sharedLife is for how long a cart that others change, too, is worth deciding from: later, it is likely to be another one, and
// if the reply is lost then, the fence no longer tells whether the commit was made.
const sharedLife = time.Second

// newParsedCarts returns parsedCarts for about 10,000 carts with five lines.
func newParsedCarts(clock func() time.Time) parsedCarts {
	const overhead, copies = 512, 3 // the texts of a cart share the memory of a reply
	return parsedCarts{clock: clock, known: bounded.New(32<<20, func(_ string, c parsedCart) uint32 {
		return uint32(overhead + max(copies*len(c.reply), 96*len(c.stored.Lines)+copies*int(c.text)))
	})}
}

// parse parses the reply of a command of ask; the zero Stored if there is no cart.
func (p parsedCarts) parse(ref Ref, hash redis.Cmder) (Stored, error) {
	var room [128]string // on the stack, for most carts
	raw, ok := hash.(*redis.RawCmd)
	if !ok || raw.Err() != nil {
		return parseStored(membersOf(hash, room[:0]))
	}
	if known, ok := p.known.Get(ref.key); ok && known.reply == string(raw.Val()) {
		return known.stored, nil
	}
	reply := string(raw.Val())
	stored, err := parseStored(parseHash(room[:0], reply))
	if err == nil && stored.Number != "" {
		known, ok := p.known.Get(ref.key)
		same := ok && known.stored.Fence == stored.Fence
		if same { // a key's use changes the fence
			stored.roomForKeys = known.stored.roomForKeys
		}
		p.known.Put(ref.key, parsedCart{reply: reply, stored: stored, at: p.clock(), shared: known.shared || ok && !same})
	}
	return stored, err
}

// last returns the cart that was seen last under a reference, if it is known and likely to be still the same.
func (p parsedCarts) last(ref Ref) (Stored, bool) {
	known, ok := p.known.Get(ref.key)
	return known.stored, ok && !(known.shared && p.clock().Sub(known.at) > sharedLife)
}

// keep remembers a cart, which was not parsed from a reply: as it was read, or as this instance has made it.
func (p parsedCarts) keep(ref Ref, stored Stored, made bool) {
	if stored.Number == "" {
		return
	}
	stored.oldestKeys = nil
	known, ok := p.known.Get(ref.key)
	same := ok && stored.Fence != "" && known.stored.Fence == stored.Fence
	kept := parsedCart{stored: stored, at: p.clock(), shared: known.shared || ok && !same && !made}
	if same {
		kept.reply = known.reply
	}
	if kept.reply == "" {
		kept.text = stored.StoredText()
	}
	p.known.Put(ref.key, kept)
}
