package figures

import (
	"context"
	"errors"
	"math/big"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"commerce/auth/problem"
	"commerce/deploy/assert"
	"commerce/subscriptions"
)

// totals is a source of totals that can be slow or down. The store's number of active
// subscriptions is the number of runs.
type totals struct {
	Source
	mu     sync.Mutex
	takes  time.Duration
	broken error
	runs   int
	now    int // concurrent runs
	most   int // maximum of now
}

func (s *totals) Totals(ctx context.Context, _ int64) ([]Total, error) {
	s.mu.Lock()
	s.runs++
	s.now++
	s.most = max(s.most, s.now)
	result := Total{
		Status: subscriptions.Active, Currency: "SAR", Duration: "monthly", Count: int64(s.runs), Prices: big.NewInt(100),
	}
	takes, err := s.takes, s.broken
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now--
	}()
	select {
	case <-time.After(takes):
		return []Total{result}, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *totals) behave(takes time.Duration, broken error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takes, s.broken = takes, broken
}

func (s *totals) count() (runs, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs, s.most
}

// inBubble runs a test with a clock of its own.
func inBubble(t *testing.T, test func(t *testing.T, source *totals, s *runs[*Summary])) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := &totals{}
		test(t, source, newSummaries(source, time.Now))
		time.Sleep(runPatience + runTimeout) // let pending runs end
	})
}

// wantRun checks that a store's summary is that of a run, and takes no longer than within.
func wantRun(t *testing.T, s *runs[*Summary], store int64, run int64, within time.Duration) {
	t.Helper()
	began := time.Now()
	got, err := s.get(t.Context(), store)
	took := time.Since(began)
	assert.That(t, err == nil && got.ByStatus[subscriptions.Active] == run && took <= within,
		"store %d: %+v, %v after %v; want run %d within %v", store, got, err, took, run, within)
	assert.That(t, err != nil || time.Since(got.AsOf) <= time.Minute, "store %d: %+v is old", store, got)
}

// wantUnavailable checks that there is no summary, and that this is known after exactly took.
func wantUnavailable(t *testing.T, s *runs[*Summary], store int64, took time.Duration) {
	t.Helper()
	began := time.Now()
	got, err := s.get(t.Context(), store)
	known, ok := errors.AsType[*problem.Error](err)
	assert.That(t, ok && known.Code == problem.Unavailable && time.Since(began) == took,
		"store %d: %+v, %v after %v, want unavailable after %v", store, got, err, time.Since(began), took)
}

func TestSummaries_CallersOfAStoreShareARun(t *testing.T) {
	inBubble(t, func(t *testing.T, source *totals, s *runs[*Summary]) {
		source.behave(time.Second, nil)
		var callers sync.WaitGroup
		for i := range 50 {
			callers.Go(func() {
				time.Sleep(time.Duration(i) * 25 * time.Millisecond) // the last ones find it kept
				wantRun(t, s, 1, 1, time.Second)
			})
		}
		callers.Wait()
		runs, _ := source.count()
		assert.That(t, runs == 1, "%d runs for 50 callers, want 1", runs)
	})
}

func TestSummaries_AreAtMostAMinuteOld(t *testing.T) {
	inBubble(t, func(t *testing.T, source *totals, s *runs[*Summary]) {
		source.behave(time.Second, nil)
		wantRun(t, s, 1, 1, time.Second) // begun a second ago
		for range 57 {
			time.Sleep(time.Second)
			wantRun(t, s, 1, 1, 0)
		}
		time.Sleep(time.Second)
		wantRun(t, s, 1, 1, 0)
		time.Sleep(time.Millisecond)
		wantRun(t, s, 1, 2, time.Second)
		source.behave(0, subscriptions.Unavailable(errors.New("down")))
		time.Sleep(time.Minute)
		wantUnavailable(t, s, 1, 0) // rather than an old one
		source.behave(0, nil)
		wantRun(t, s, 1, 4, 0) // a failure is not kept
	})
}

func TestSummaries_ALateRunServesTheNextCaller(t *testing.T) {
	inBubble(t, func(t *testing.T, source *totals, s *runs[*Summary]) {
		source.behave(runTimeout-time.Second, nil)
		wantUnavailable(t, s, 1, runPatience)
		gone, leave := context.WithCancel(t.Context())
		leave()
		_, err := s.get(gone, 1)
		assert.That(t, err != nil, "a caller that is gone has a summary")
		time.Sleep(runTimeout - runPatience - 2*time.Second)
		wantRun(t, s, 1, 1, time.Second)
		wantRun(t, s, 1, 1, 0)
	})
}

func TestSummaries_ARunOutlivesItsCaller(t *testing.T) {
	inBubble(t, func(t *testing.T, source *totals, s *runs[*Summary]) {
		source.behave(time.Second, nil)
		ctx, leave := context.WithTimeout(t.Context(), time.Millisecond)
		defer leave()
		_, err := s.get(ctx, 1)
		assert.That(t, errors.Is(err, context.DeadlineExceeded), "got %v, want the end of the context", err)
		time.Sleep(time.Second)
		wantRun(t, s, 1, 1, 0)
	})
}

func TestSummaries_LimitTheirRunsInAll(t *testing.T) {
	inBubble(t, func(t *testing.T, source *totals, s *runs[*Summary]) {
		source.behave(runTimeout+time.Hour, nil) // a database that hangs
		var callers sync.WaitGroup
		for store := range int64(50) {
			callers.Go(func() { wantUnavailable(t, s, store, runPatience) })
		}
		callers.Wait()
		runs, most := source.count()
		assert.That(t, runs == maxSummaries && most == maxSummaries, "%d runs, %d at the same time, want %d", runs, most, maxSummaries)
		wantUnavailable(t, s, 99, runPatience)
		time.Sleep(runTimeout)
		source.behave(time.Millisecond, nil)
		for store := range int64(50) {
			callers.Go(func() {
				_, err := s.get(t.Context(), store)
				assert.Succeeds(t, err, "get")
			})
		}
		callers.Wait()
		_, most = source.count()
		assert.That(t, most == maxSummaries, "%d runs at the same time, want %d", most, maxSummaries)
	})
}

// The figures of a month that has ended are no longer those of the running one.
func TestMetrics_AreKeptForAnHourOfTheirLastMonth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Date(2025, 11, 30, 22, 30, 0, 0, time.UTC)
		source := &movements{}
		m := newMetrics(source, func() time.Time { return now })
		for _, step := range []struct {
			passes time.Duration
			runs   int
		}{{0, 1}, {time.Hour, 1}, {time.Microsecond, 2}, {30*time.Minute - 2*time.Microsecond, 2}, {time.Microsecond, 3}} {
			now = now.Add(step.passes)
			got, err := m.get(t.Context(), 1)
			assert.That(t, err == nil && got.Last == MonthOf(now) && source.runs == step.runs, "at %s: %+v, %v after %d runs, want %d", now, got, err, source.runs, step.runs)
		}
	})
}

// movements is a source of no movements that counts its calls.
type movements struct {
	Source
	runs int
}

func (s *movements) Movements(context.Context, int64) ([]Movement, error) {
	s.runs++
	return nil, nil
}

func TestSummaries_LimitTheirMemory(t *testing.T) {
	t.Parallel()
	s := newSummaries(&totals{}, time.Now)
	for store := range int64(2 * maxKept) {
		assert.Must(s.get(t.Context(), store))(t)
	}
	assert.Equal(t, s.kept.Len(), maxKept, "kept")
}
