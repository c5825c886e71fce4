package cart

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"
)

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func TestMaster_LearnsTheClockOfItsRedis(t *testing.T) {
	t.Parallel()
	m := newMasters(time.Now).at("a")
	sent := m.start.Add(1000 * time.Millisecond)
	for _, step := range []struct {
		redis, took int64 // ms
		want        int64 // by which Redis is ahead
		why         string
	}{
		{6050, 100, 4949, "the lowest that is possible"},
		{6005, 10, 4994, "the estimate is too low now"},
		{6100, 200, 4994, "a slow answer tells nothing new"},
		{3005, 10, 1994, "Redis' clock was set back"},
		{9005, 10, 7994, "and forward"},
	} {
		m.learn(step.redis, sent, sent.Add(time.Duration(step.took)*time.Millisecond))
		if m.clock.ahead != step.want {
			t.Errorf("%s: %d ms ahead, want %d", step.why, m.clock.ahead, step.want)
		}
	}
}

// A Redis that stalls runs what it was sent once it goes on. The caller was told that
// the outcome is unknown, and may have sent the same again.
func TestChange_ThatBeginsAfterItsDeadlineChangesNothing(t *testing.T) {
	t.Parallel()
	d, token := setup(t, Sum, "", "1×1")
	ref := GuestRef(d.store.ID, token)
	r := *d.redis
	r.masters = newMasters(time.Now)
	_, m, err := r.masterOf(t.Context(), ref.cartKey())
	if err != nil {
		t.Fatal(err)
	}
	redisNow := time.Now().UnixMilli()
	reply, err := r.scripts.clear.run(t.Context(), r.client, once, []string{ref.cartKey()},
		1000, "ID", "", "", "", "", "", redisNow-1).Slice()
	if err != nil || reply[0] != late {
		t.Errorf("a script after its deadline: %v, %v", reply, err)
	}
	d.wantLines(d.as("", token), "1×1")

	// An instance that is wrong about Redis' clock finds out, and its callers notice nothing.
	m.clock = redisClock{ahead: -time.Hour.Milliseconds(), known: true}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if o, err := r.clear(ctx, ref, Conditions{}); err != nil || o.word != applied {
		t.Errorf("with a wrong clock: %+v, %v", o, err)
	}
	if _, err := r.clear(expired(t), ref, Conditions{}); err == nil || isUnknown(err) {
		t.Errorf("after the request's own end: %v", err)
	}
}

// A claim that comes late would set a cart aside under a note that is gone by then.
func TestClaim_ThatBeginsAfterItsDeadlineClaimsNothing(t *testing.T) {
	t.Parallel()
	d, token := setup(t, Sum, "", "1×1")
	customer, guest, w := CustomerRef(d.store.ID, "c"), GuestRef(d.store.ID, token), d.holds(tokenOf("t"))
	reply, err := d.redis.scripts.claim.run(t.Context(), d.client, repeatable,
		[]string{guest.cartKey(), guest.claimedKey(), guest.keysKey()},
		customer.tag, 1000, newNote(), time.Now().UnixMilli()-1, w.cut(), w.lines, w.text).Slice()
	if err != nil || reply[0] != late {
		t.Errorf("%v, %v", reply, err)
	}
	d.wantLines(d.as("", token), "1×1")
}

func expired(t *testing.T) context.Context {
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	t.Cleanup(cancel)
	return ctx
}

func isUnknown(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.code == CodeOutcomeUnknown
}
