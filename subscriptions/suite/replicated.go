package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"commerce/auth/locale"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions"
	"commerce/subscriptions/feed"
	"commerce/subscriptions/postgres"
	"commerce/subscriptions/recorded"
	"commerce/subscriptions/replicas"
)

// Replicated is a source that reads a primary and its replicas.
type Replicated struct {
	*Setting
	Names  []string // of the replicas
	Set    *replicas.Set
	Source Postgres
	Log    *lockedLog

	FromPrimary, FromReplicas atomic.Int64 // reads
}

// lockedLog is a log that several goroutines write to.
type lockedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lockedLog) Count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

var (
	// patience is how long a check may take if a test does not let servers hang.
	Patience = ephemeral.Patience(10 * time.Second)

	// hangs is how long it may take if a test does.
	Hangs = ephemeral.Patience(time.Second)
)

// Replicate starts two replicas of a primary, and waits until they serve reads. Store 1 reads
// the second one.
func Replicate(h *Setting, maxLag, checkTime time.Duration) *Replicated {
	h.T.Helper()
	var urls []string
	for range 2 {
		h.AddStandby()
		urls = append(urls, h.Standbys[len(h.Standbys)-1].URL)
	}
	r := ReadFrom(h, h.Primary.URL, urls, maxLag, checkTime)
	r.WantStates("ok", "ok")
	return r
}

// ReadFrom returns a source that reads a primary and replicas, which it watches until the test ends.
func ReadFrom(h *Setting, primary string, urls []string, maxLag, checkTime time.Duration) *Replicated {
	t := h.T
	t.Helper()
	r := &Replicated{Setting: h, Log: &lockedLog{}}
	config := replicas.Config{
		Primary: ephemeral.OpenPool(t, primary, connect.PostgresConfig{MaxConns: 1}),
		MaxLag:  maxLag, CheckTime: checkTime, Log: slog.New(slog.NewTextHandler(r.Log, nil)),
	}
	for _, url := range urls {
		r.Names = append(r.Names, HostOf(t, url))
		config.Servers = append(config.Servers, replicas.Server{
			Name: HostOf(t, url), Checks: ephemeral.OpenPool(t, url, connect.PostgresConfig{MaxConns: 1}),
		})
	}
	r.Set = replicas.New(config)
	from := postgres.Config{
		Pool: ephemeral.OpenPool(t, primary, connect.PostgresConfig{}),
		Fit:  r.Set.Fit, Served: r.count, Budget: Patience, Wait: Patience / 4,
	}
	for i, replica := range r.Set.All() {
		pool := ephemeral.OpenPool(t, urls[i], connect.PostgresConfig{})
		from.Replicas = append(from.Replicas, postgres.Replica{Pool: pool, Failed: replica.Suspect})
	}
	r.Source = Parts{Config: from, Timeline: r.Set.Timeline}.Source()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { r.Set.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	return r
}

func HostOf(t *testing.T, rawURL string) string {
	t.Helper()
	return assert.Must(url.Parse(rawURL))(t).Host
}

func (r *Replicated) count(by string) {
	if by == "primary" {
		r.FromPrimary.Add(1)
	} else {
		r.FromReplicas.Add(1)
	}
}

// WantStates waits until the replicas have these states.
func (r *Replicated) WantStates(want ...string) {
	r.T.Helper()
	ephemeral.Eventually(r.T, fmt.Sprintf("the replicas are %v", want), func() bool {
		var got []string
		for _, name := range r.Names {
			got = append(got, r.Set.States()[name])
		}
		return slices.Equal(got, want)
	})
}

// AnyNumber is that the primary may serve reads or not.
const AnyNumber = -1

// WantReads makes every kind of read of store 1, and checks how many of them the primary served.
func (r *Replicated) WantReads(fromPrimary int64) {
	r.T.Helper()
	before := r.FromPrimary.Load() + r.FromReplicas.Load()
	primary := r.FromPrimary.Load()
	ctx, cancel := context.WithTimeout(r.T.Context(), Patience) // a summary has no budget of its own
	defer cancel()
	_, list := r.Source.List(ctx, 1, subscriptions.Query{Limit: 10, Language: locale.En})
	_, get := r.Source.Get(ctx, 1, 1, locale.En)
	_, changes := r.Source.Changes(ctx, 1, feed.Query{Limit: 10, Language: locale.En})
	_, totals := r.Source.Totals(ctx, 1)
	latest, news := r.Source.News(ctx, map[int64]recorded.Change{1: {}, 2: {}, 3: {}}) // store 3 has none
	assert.That(r.T, len(latest) == 2, "the latest changes are %v", latest)
	assert.Succeeds(r.T, errors.Join(list, get, changes, totals, news), "reads")
	n := r.FromPrimary.Load() - primary
	assert.That(r.T, fromPrimary == AnyNumber || n == fromPrimary, "the primary served %d reads, want %d", n, fromPrimary)
	assert.Equal(r.T, r.FromPrimary.Load()+r.FromReplicas.Load()-before, 4, "reads were counted")
}

// WantLogged waits until the log has a text this many times.
func (r *Replicated) WantLogged(text string, times int) {
	r.T.Helper()
	ephemeral.Eventually(r.T, fmt.Sprintf("the log has %q %d times", text, times), func() bool { return r.Log.Count(text) == times })
}

// CutOff lets the replicas fall behind.
func (r *Replicated) CutOff() {
	r.T.Helper()
	for _, standby := range r.Standbys {
		standby.CutOff()
	}
}

func (r *Replicated) Get(id int64) error {
	_, err := r.Source.Get(r.T.Context(), 1, id, locale.En)
	return err
}

func (r *Replicated) Insert(id int) { r.T.Helper(); Exec(r.T, r.Writes, InsertOne, id, 1) }
