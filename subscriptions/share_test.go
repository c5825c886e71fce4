package subscriptions

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A store that sends more than its connections can serve is refused early. Another store
// does not notice.
func TestShares_RefuseAStoreThatHasManyWaiting(t *testing.T) {
	t.Parallel()
	const size = 2
	all := newShares(size)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var leaves []func()
	for range size {
		leave, err := all.enter(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leave)
	}
	waited := make(chan error, size*maxWaiting)
	for range size * maxWaiting {
		go func() {
			leave, err := all.enter(ctx, 1)
			if err == nil {
				leave()
			}
			waited <- err
		}()
	}
	for began := time.Now(); all.users(1) < size*(1+maxWaiting); time.Sleep(time.Millisecond) {
		if time.Since(began) > 20*time.Second {
			t.Fatalf("%d requests hold or wait for a connection", all.users(1))
		}
	}
	if _, err := all.enter(ctx, 1); !errors.Is(err, errManyWait) {
		t.Errorf("a further request: %v", err)
	}
	if leave, err := all.enter(ctx, 2); err != nil {
		t.Errorf("another store: %v", err)
	} else {
		leave()
	}
	for _, leave := range leaves {
		leave()
	}
	for range size * maxWaiting {
		if err := <-waited; err != nil {
			t.Errorf("a request that had waited: %v", err)
		}
	}
	if leave, err := all.enter(ctx, 1); err != nil {
		t.Errorf("afterwards: %v", err)
	} else {
		leave()
	}
}

// users returns how many requests of a store hold or wait for a connection.
func (s *shares) users(store int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held := s.byStore[store]; held != nil {
		return held.users
	}
	return 0
}
