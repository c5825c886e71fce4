package limit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"commerce/auth/limit"
	"commerce/deploy/assert"
)

// A store that sends more than its share is refused early. Another store does not notice.
func TestSlots_RefuseAKeyThatHasManyWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const each, waiting = 2, 32
		all := limit.NewSlots[int](limit.SlotsConfig{Each: each, Waiting: waiting})
		leaves := enterAll(t, all, each, 1)
		waited := make(chan error, waiting)
		for range waiting {
			go func() {
				leave, err := all.Enter(t.Context(), 1)
				if err == nil {
					leave()
				}
				waited <- err
			}()
		}
		synctest.Wait()
		_, err := all.Enter(t.Context(), 1)
		assert.That(t, errors.Is(err, limit.ErrBusy), "one more: %v", err)
		leaves = append(leaves, enterAll(t, all, 1, 2)...)
		for _, leave := range leaves {
			leave()
		}
		for range waiting {
			assert.Succeeds(t, <-waited, "one that had waited")
		}
		enterAll(t, all, each, 1)
	})
}

func TestSlots_LimitAllKeysTogether(t *testing.T) {
	t.Parallel()
	all := limit.NewSlots[string](limit.SlotsConfig{All: 3, Each: 2})
	leaves := enterAll(t, all, 2, "a")
	_, err := all.Enter(t.Context(), "a")
	assert.That(t, errors.Is(err, limit.ErrBusy), "a third of one key: %v", err)
	enterAll(t, all, 1, "b")
	_, err = all.Enter(t.Context(), "c")
	assert.That(t, errors.Is(err, limit.ErrBusy), "a fourth of all: %v", err)
	leaves[0]()
	enterAll(t, all, 1, "c")
}

func TestSlots_WhoeverStopsWaitingTakesNone(t *testing.T) {
	t.Parallel()
	all := limit.NewSlots[int](limit.SlotsConfig{Each: 1, Waiting: 1})
	leave := enterAll(t, all, 1, 1)[0]
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := all.Enter(ctx, 1)
	assert.That(t, errors.Is(err, context.Canceled), "without a free slot after the end of the context: %v", err)
	leave()
	enterAll(t, all, 1, 1)
}

func enterAll[K comparable](t *testing.T, s *limit.Slots[K], n int, key K) (leaves []func()) {
	t.Helper()
	for i := range n {
		leave, err := s.Enter(t.Context(), key)
		assert.Require(t, err == nil, "slot %d of %v: %v", i, key, err)
		leaves = append(leaves, leave)
	}
	return leaves
}
