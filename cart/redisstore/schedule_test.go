package redisstore_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/schollz/progressbar/v3"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/redisstore"
	"commerce/cart/share"
	"commerce/deploy/assert"
)

// A schedule is one interleaving of the Redis commands of a few requests, with faults:
// requests stall or die, replies are lost, time passes, masters fail over. The service is real, Redis is simulated. A seed
// determines a random schedule. Its results are compared with a model.

var (
	schedules = flag.Int("schedules", 0, "how many random schedules to run; 0: as many as take a minute, and 10 seconds in short tests")
	firstSeed = flag.Uint64("seed", 1, "the seed of the first random schedule")
)

const enoughFailures = 5

func TestSchedules(t *testing.T) {
	t.Parallel()
	if *schedules == 0 {
		*schedules = 300_000
		if testing.Short() {
			*schedules = 30_000
		}
	}
	bar := progress(*schedules)
	seeds := make(chan uint64)
	run := newRuns(t)
	for range workers() {
		run.worker(func(w *scheduler) {
			for seed := range seeds {
				run.report(fmt.Sprintf("go test ./cart/redisstore -run 'TestSchedules$' -schedules 1 -seed %d -v", seed), w.random(seed, *schedules == 1), func() judged { return w.random(seed, true) })
				_ = bar.Add(1)
			}
		})
	}
	for seed := *firstSeed; seed < *firstSeed+uint64(*schedules) && !run.enough(); seed++ {
		seeds <- seed
	}
	close(seeds)
	run.Wait()
	_ = bar.Finish()
	t.Log(run)
}

func TestSchedules_OfOneSeedAreOneHistory(t *testing.T) {
	t.Parallel()
	one, other := newScheduler(t), newScheduler(t)
	defer one.threads.end()
	defer other.threads.end()
	for seed := range uint64(500) {
		first, again := one.random(seed, true).story(), other.random(seed, true).story()
		assert.Require(t, first == again, "seed %d has two histories:\n%s\nand\n%s", seed, first, again)
	}
}

// workers returns how many schedules run at once.
func workers() int { return runtime.GOMAXPROCS(0) }

func progress(n int) *progressbar.ProgressBar {
	if to, err := os.Stderr.Stat(); err != nil || to.Mode()&os.ModeCharDevice == 0 {
		return progressbar.DefaultSilent(int64(n))
	}
	return progressbar.NewOptions(n, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionShowCount(),
		progressbar.OptionShowIts(), progressbar.OptionThrottle(200*time.Millisecond), progressbar.OptionSetPredictTime(true))
}

type runs struct {
	sync.WaitGroup
	t        *testing.T
	began    time.Time
	failures atomic.Int64

	mu    sync.Mutex
	tried tried
}

func newRuns(t *testing.T) *runs {
	t.Helper()
	return &runs{t: t, began: time.Now(), tried: tried{}}
}

func (r *runs) enough() bool { return r.failures.Load() >= enoughFailures }

// worker runs do concurrently, with a scheduler that has a store of its own.
func (r *runs) worker(do func(*scheduler)) {
	w := newScheduler(r.t)
	r.Go(func() {
		defer w.threads.end()
		do(w)
	})
}

func (r *runs) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("schedules: %d, wrong: %d, %s, per second: %.0f", r.tried["schedules"], r.failures.Load(),
		r.tried, float64(r.tried["schedules"])/time.Since(r.began).Seconds())
}

// report notes the end of a schedule. If it is wrong, again runs it once more, and it tells its story.
func (r *runs) report(replay string, o judged, again func() judged) {
	r.mu.Lock()
	r.tried.add(o.tried)
	r.mu.Unlock()
	if len(o.wrong) > 0 {
		r.failures.Add(1)
		r.t.Errorf("%s\n  %s\n%s", replay, strings.Join(o.wrong, "\n  "), again().story())
	} else if *schedules == 1 {
		r.t.Log("\n" + o.story())
	}
}

type tried map[string]int

func (t tried) add(other tried) {
	t["schedules"]++
	for what, n := range other {
		t[what] += n
	}
}

func (t tried) String() string {
	var all []string
	for _, what := range []string{"requests", "replays", "merges", "carts taken", "undone", "cart full", "faults", "failovers", "clock jumps", "adds that a failover may lose", "claims that outlive their cart", "lines erased beside their undo", "shares that a failover may lose or restore", "changes followed", "changes that a failover keeps from followers"} {
		all = append(all, fmt.Sprintf("%s: %d", what, t[what]))
	}
	return strings.Join(all, ", ")
}

func (s *schedule) count() {
	for a := range s.requests() {
		s.tried["requests"]++
		if a.result.replayed {
			s.tried["replays"]++
		}
		if a.op.verb == takes && a.result.err == nil && !a.dead && !a.result.replayed {
			s.tried["carts taken"]++
		}
		if m := a.result.merge; m != nil && m.Code == problem.CartFull {
			s.tried["cart full"]++
		}
	}
}

// judged is a finished schedule with what is wrong about it.
type judged struct {
	*schedule
	wrong []string
}

type scheduler struct {
	ctx     context.Context
	client  redis.UniversalClient
	redis   *redisstore.Store
	catalog *goods
	threads *threads
}

// threads are goroutines that run requests one after the other: a new one for each request would grow its stack again.
type threads struct{ idle []chan func() }

// take returns a thread, which the caller gives back when what it runs has ended.
func (t *threads) take() (thread chan func()) {
	if n := len(t.idle); n > 0 {
		thread, t.idle = t.idle[n-1], t.idle[:n-1]
		return thread
	}
	thread = make(chan func())
	go func() {
		for run := range thread {
			run()
		}
	}()
	return thread
}

func (t *threads) give(thread chan func()) { t.idle = append(t.idle, thread) }

func (t *threads) end() {
	for _, thread := range t.idle {
		close(thread)
	}
}

func newScheduler(t *testing.T) *scheduler {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: "simulated"})
	client.AddHook(stepHook{})
	t.Cleanup(func() { _ = client.Close() })
	catalog := &goods{products: map[int64]*cart.Product{}}
	for id := range int64(30) {
		p := carttest.Sold(id+1, 100)
		p.Fields = []cart.Field{{Name: engraving}}
		catalog.products[p.ID] = p
	}
	return &scheduler{
		ctx: t.Context(), client: client, catalog: catalog, threads: &threads{},
		redis: redisstore.New(redisstore.Config{Client: client, TTL: usualTTLs, Undoable: true, Beside: share.Stored()}),
	}
}

func (w *scheduler) random(seed uint64, tells bool) judged {
	r := rand.New(rand.NewPCG(seed, 0))
	return w.run(randomPlan(r), &atRandom{Rand: r}, tells)
}

func (w *scheduler) run(p plan, c chooser, tells bool) judged {
	s := newSchedule(newWorld(w.ctx, w.client, w.redis, w.catalog, p.setting), p, w.threads)
	s.tells = tells
	s.lay()
	s.run(c)
	s.count()
	s.reopenAll()
	err := s.settle()
	if len(s.delayed) > 0 && err == nil {
		for len(s.delayed) > 0 {
			s.deliver(0)
		}
		err = s.settle()
	}
	if err != nil {
		return judged{s, []string{err.Error()}}
	}
	return judged{s, s.check()}
}
