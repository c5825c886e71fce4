package redisstore_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"commerce/cart/live"
)

// A follower is an instance of the service with a stream of a cart. As package live does it, it subscribes to the cart's channel,
// asks what the cart is, and waits for a reply on the subscription. It does this again now and then.
type follower struct {
	live.View
	who        caller
	key        string // of the cart
	subscribed bool
	inbox      []string        // announced, but on its way
	seen       []live.Sighting // by the stream
	gone       bool            // the stream has ended

	syncedAt time.Time // by the clock of the cart's Redis: when the last sync began; zero if the subscription was lost since
	cut      bool      // by a failover since then
}

func (*follower) String() string { return "follower" }

const (
	markLife    = 2 * time.Minute  // of the mark because of which changes are announced
	marksRenews = 50 * time.Second // a sync leaves a mark that is valid for longer than this
)

// follow makes a sync. Any failure loses the subscription.
func (a *request) follow(ctx context.Context) error {
	f, s := a.op.follower, a.schedule
	ref := a.who.ref(s.world)
	f.key = ref.CartKey()
	began, told := s.memory.now(a.who.shard()), f.Told()
	var err error
	if !f.subscribed {
		err = a.service.redis.Client.Do(ctx, "ssubscribe", ref.Channel(), f).Err()
	}
	tag := ""
	if err == nil {
		tag, err = a.service.redis.Announce(ctx, ref, "spublish", markLife)
	}
	if err == nil {
		err = a.service.redis.Client.Do(ctx, "ping", f).Err()
	}
	if err != nil || !f.subscribed || a.dead {
		f.lose()
		return err
	}
	now := live.SightingOf(tag)
	news, err := f.IsNews(now, told)
	if err != nil {
		return a.follow(ctx)
	}
	if news {
		f.tell(now)
	}
	f.syncedAt, f.cut = began, false
	return nil
}

func (f *follower) lose() {
	f.subscribed, f.inbox, f.syncedAt = false, nil, time.Time{}
}

func (f *follower) tell(s live.Sighting) {
	if s = f.Tell(s); !f.gone {
		f.seen, f.gone = append(f.seen, s), s.Gone
	}
}

// hear takes the next announcement, and hearAll all of them.
func (f *follower) hear() {
	s := live.SightingOf(f.inbox[0])
	if f.inbox = f.inbox[1:]; s != f.Last {
		f.tell(s)
	}
}

func (f *follower) hearAll() {
	for len(f.inbox) > 0 {
		f.hear()
	}
}

func (m *memory) publish(channel, text string) {
	for _, f := range m.followers {
		if f.subscribed && channel == f.key+":live" {
			f.inbox = append(f.inbox, text)
		}
	}
}

// changed notes that a commit has changed a cart, and announced a text, or "". A follower whose last sync is recent must get it.
func (m *memory) changed(key string, before hash, announced string) {
	for _, f := range m.followers {
		if f.key != key || f.gone {
			continue
		}
		after, of := m.at(key)
		was, now := tagOf(before), tagOf(after)
		switch {
		case was == now || was == "" || cartOf(live.SightingOf(was)) != cartOf(f.Last):
		case f.cut:
			m.tried["changes that a failover keeps from followers"]++
		case f.syncedAt.IsZero() || m.now(of).Sub(f.syncedAt) > marksRenews:
		case announced == "" || live.SightingOf(announced) != live.SightingOf(now):
			m.wrong = append(m.wrong, fmt.Sprintf("%s has become %q, and its followers were told %q", key, now, announced))
		default:
			m.tried["changes followed"]++
		}
	}
}

func tagOf(h hash) string {
	id, _ := h.get("i")
	version, _ := h.get("v")
	return strings.TrimSuffix(id+"."+version, ".")
}

// checkFollowers checks that each stream shows the last version, after another sync.
func (s *schedule) checkFollowers() (wrong []string) {
	for _, f := range s.memory.followers {
		if len(f.seen) == 0 {
			continue
		}
		s.inPeace("end", f.who, operation{verb: follows, follower: f})
		h, _ := s.memory.at(f.key)
		now, last := live.SightingOf(tagOf(h)), f.seen[len(f.seen)-1]
		if back := s.failedOver() && last.Gone; last != now && !back && (!last.Gone || cartOf(now) == cartOf(f.seen[0])) {
			wrong = append(wrong, fmt.Sprintf("a stream of %s ends with %v, the cart is %v", f.key, last, now))
		}
		older := func(a, b live.Sighting) int { return cmp.Compare(a.Version, b.Version) }
		if shown := slices.DeleteFunc(slices.Clone(f.seen), func(s live.Sighting) bool { return s.Gone }); !s.failedOver() && !slices.IsSortedFunc(shown, older) {
			wrong = append(wrong, fmt.Sprintf("a stream of %s goes back: %v", f.key, f.seen))
		}
	}
	return append(wrong, s.memory.wrong...)
}

// cartOf is the ID of the cart of a sighting.
func cartOf(s live.Sighting) string {
	id, _, _ := strings.Cut(s.Tag, ".")
	return id
}

func (p *plan) drawFollower(c cast) {
	who := c.caller().owner()
	p.add(&operation{verb: follows, tries: []caller{who, who, who}[:1+c.IntN(3)]}, c)
}
