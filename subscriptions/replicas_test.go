package subscriptions_test

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
	"commerce/subscriptions/postgres"
	"commerce/subscriptions/replicas"
)

// replicated is a source that reads a primary and its replicas.
type replicated struct {
	*setting
	names  []string // of the replicas
	set    *replicas.Set
	source *postgres.Source
	log    *lockedLog

	fromPrimary, fromReplicas atomic.Int64 // reads
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

func (l *lockedLog) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

var (
	// patience is how long a check may take if a test does not let servers hang.
	patience = ephemeral.Patience(10 * time.Second)

	// hangs is how long it may take if a test does.
	hangs = ephemeral.Patience(time.Second)
)

// replicate starts two replicas of a primary, and waits until they serve reads. Store 1 reads
// the second one.
func replicate(h *setting, maxLag, checkTime time.Duration) *replicated {
	h.t.Helper()
	var urls []string
	for range 2 {
		h.addStandby()
		urls = append(urls, h.standbys[len(h.standbys)-1].URL)
	}
	r := readFrom(h, h.primary.URL, urls, maxLag, checkTime)
	r.wantStates("ok", "ok")
	return r
}

// readFrom returns a source that reads a primary and replicas, which it watches until the test ends.
func readFrom(h *setting, primary string, urls []string, maxLag, checkTime time.Duration) *replicated {
	t := h.t
	t.Helper()
	r := &replicated{setting: h, log: &lockedLog{}}
	config := replicas.Config{
		Primary: ephemeral.OpenPool(t, primary, connect.PostgresConfig{MaxConns: 1}),
		MaxLag:  maxLag, CheckTime: checkTime, Log: slog.New(slog.NewTextHandler(r.log, nil)),
	}
	for _, url := range urls {
		r.names = append(r.names, hostOf(t, url))
		pool := ephemeral.OpenPool(t, url, connect.PostgresConfig{})
		config.Servers = append(config.Servers, replicas.Server{
			Name: hostOf(t, url), Pool: pool, SummaryPool: pool,
			Checks: ephemeral.OpenPool(t, url, connect.PostgresConfig{MaxConns: 1}),
		})
	}
	r.set = replicas.New(config)
	r.source = postgres.New(postgres.Config{
		Pool:     ephemeral.OpenPool(t, primary, connect.PostgresConfig{}),
		Replicas: r.set, Served: r.count, Budget: patience, Wait: patience / 4,
	})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { r.set.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	return r
}

func hostOf(t *testing.T, rawURL string) string {
	t.Helper()
	return assert.Must(url.Parse(rawURL))(t).Host
}

func (r *replicated) count(by string) {
	if by == "primary" {
		r.fromPrimary.Add(1)
	} else {
		r.fromReplicas.Add(1)
	}
}

// wantStates waits until the replicas have these states.
func (r *replicated) wantStates(want ...replicas.State) {
	r.t.Helper()
	ephemeral.Eventually(r.t, fmt.Sprintf("the replicas are %v", want), func() bool {
		var got []replicas.State
		for _, name := range r.names {
			got = append(got, r.set.States()[name])
		}
		return slices.Equal(got, want)
	})
}

// anyNumber is that the primary may serve reads or not.
const anyNumber = -1

// wantReads makes every kind of read of store 1, and checks how many of them the primary served.
func (r *replicated) wantReads(fromPrimary int64) {
	r.t.Helper()
	before := r.fromPrimary.Load() + r.fromReplicas.Load()
	primary := r.fromPrimary.Load()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience) // a summary has no budget of its own
	defer cancel()
	_, list := r.source.List(ctx, 1, subscriptions.Query{Limit: 10, Language: locale.En})
	_, get := r.source.Get(ctx, 1, 1, locale.En)
	_, changes := r.source.Changes(ctx, 1, subscriptions.ChangesQuery{Limit: 10, Language: locale.En})
	_, totals := r.source.Totals(ctx, 1)
	latest, news := r.source.News(ctx, map[int64]subscriptions.Change{1: {}, 2: {}, 3: {}}) // store 3 has none
	assert.That(r.t, len(latest) == 2, "the latest changes are %v", latest)
	assert.Succeeds(r.t, errors.Join(list, get, changes, totals, news), "reads")
	n := r.fromPrimary.Load() - primary
	assert.That(r.t, fromPrimary == anyNumber || n == fromPrimary, "the primary served %d reads, want %d", n, fromPrimary)
	assert.Equal(r.t, r.fromPrimary.Load()+r.fromReplicas.Load()-before, 4, "reads were counted")
}

// wantLogged waits until the log has a text this many times.
func (r *replicated) wantLogged(text string, times int) {
	r.t.Helper()
	ephemeral.Eventually(r.t, fmt.Sprintf("the log has %q %d times", text, times), func() bool { return r.log.count(text) == times })
}

// cutOff lets the replicas fall behind.
func (r *replicated) cutOff() {
	r.t.Helper()
	for _, standby := range r.standbys {
		standby.CutOff()
	}
}

func (r *replicated) get(id int64) error {
	_, err := r.source.Get(r.t.Context(), 1, id, locale.En)
	return err
}

func (r *replicated) insert(id int) { r.t.Helper(); exec(r.t, r.writes, insertOne, id, 1) }

func TestReplicas_ThatStopAreReplacedAtOnce(t *testing.T) {
	slow(t)
	r := replicate(newSetting(t), 10*time.Second, patience)
	r.wantReads(0)
	r.standbys[1].Stop()
	r.wantReads(0) // of the other replica, also before a check has failed
	r.wantStates("ok", "failing")
	r.standbys[0].Stop()
	r.wantReads(4)
	r.wantStates("failing", "failing")
	r.wantReads(4)
	for _, standby := range r.standbys {
		standby.Restart()
	}
	r.wantStates("ok", "ok")
	r.wantReads(0)
	r.wantLogged("its check failed", 2)
	r.wantLogged("a replica serves reads again", 2)
}

// A read of a replica that hangs goes on elsewhere while half of its time is left.
func TestReplicas_ThatHangAreReplacedInTime(t *testing.T) {
	slow(t)
	r := replicate(newSetting(t), 10*time.Second, hangs)
	r.wantReads(anyNumber) // opens connections
	r.standbys[1].Freeze()
	r.wantReads(anyNumber)
	r.wantStates("ok", "failing")
	r.standbys[1].Thaw()
	r.wantStates("ok", "ok")
}

// Without writes there is nothing that a replica could lack, so those of an idle primary do not lag.
func TestReplicas_ThatLagAreLeftOut(t *testing.T) {
	slow(t)
	maxLag := ephemeral.Patience(2 * time.Second)
	r := replicate(newSetting(t), maxLag, patience)
	time.Sleep(2 * maxLag)
	r.wantStates("ok", "ok")
	r.wantLogged("it lags", 0)
	r.wantReads(0)
	r.standbys[1].CutOff()
	r.insert(900_001)
	r.wantStates("ok", "lagging")
	assert.Succeeds(t, r.get(900_001), "a new subscription")
	r.standbys[1].Follow(r.primary)
	r.wantStates("ok", "ok")
	name := r.names[1]
	r.wantLogged("it lags\" replica="+name, 1)
	r.wantLogged("a replica serves reads again\" replica="+name, 1)
}

// A replica that lacks a subscription or a timeline must not say that it does not exist.
func TestReplicas_LeaveRefusalsToThePrimary(t *testing.T) {
	slow(t)
	r := replicate(newSetting(t), time.Minute, patience)
	r.cutOff()
	r.insert(900_001)
	assert.Succeeds(t, r.get(900_001), "a subscription that only the primary has")
	assert.ErrorIs(t, r.get(900_002), subscriptions.ErrNotFound, "a subscription that does not exist")
	assert.Equal(t, r.fromPrimary.Load(), 2, "reads that the primary served")
	r.wantReads(0) // the replicas are not suspected
}

// A reader whose cursor is of the primary must not believe a replica that nothing follows.
func TestReplicas_ThatAreBehindACursorLeaveItToThePrimary(t *testing.T) {
	t.Parallel()
	r, f := replicate(newSetting(t), time.Minute, patience), newFollower(1, 1)
	r.cutOff()
	r.insert(900_001)
	readAll(t, f, r.setting.source)
	r.insert(900_002)
	assert.NoError(t, r.settlePrimary(t.Context()))
	readAll(t, f, r.source)
	_, has := f.rows[900_002]
	assert.That(t, has && f.expired == 0, "the follower has the latest change: %t; %d cursors expired", has, f.expired)
}

// The rest of a history that the primary began must not come from a replica that lacks its states.
func TestReplicas_ThatLackTheStatesOfAPlaceLeaveItToThePrimary(t *testing.T) {
	t.Parallel()
	r := replicate(newSetting(t), time.Minute, patience)
	r.insert(900_001)
	r.catchUp()
	r.cutOff()
	r.insert(900_002)
	for _, id := range []int64{900_001, 900_002} { // the replicas have the first state of one of them
		for _, price := range []int{501, 502, 503} {
			exec(t, r.writes, "UPDATE subscriptions SET price_amount = $2 WHERE id = $1", id, price)
		}
		onPrimary := assert.Must(r.setting.source.History(t.Context(), 1, id, subscriptions.HistoryQuery{Limit: 10}))(t)
		after := subscriptions.HistoryPage{Events: onPrimary.Events[:1]}
		got := assert.Must(r.source.History(t.Context(), 1, id, subscriptions.HistoryQuery{After: after.Next(), Limit: 10}))(t)
		assert.Equal(t, len(got.Events), 3, "events after the first of 4")
	}
}

func TestReplicas_HaveNoPartInLinkKeysWhileThePrimaryAnswers(t *testing.T) {
	t.Parallel()
	r := replicate(newSetting(t), time.Minute, patience)
	keys := func() string { return fmt.Sprintf("%x", assert.Must(r.source.LinkKeys(t.Context(), true))(t)) }
	before := keys()
	r.cutOff()
	exec(t, r.writes, "UPDATE page_link_key SET key = uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())")
	assert.That(t, keys() != before, "a new key is not seen")
	r.primary.Stop()
	assert.Equal(t, keys(), before, "without the primary, the replicas' keys are not read")
}

func TestReplicas_ServeReadsWithoutThePrimary(t *testing.T) {
	t.Parallel()
	maxLag := ephemeral.Patience(2 * time.Second)
	r := replicate(newSetting(t), maxLag, patience)
	r.wantLogged("a replica serves reads", 2)
	r.insert(900_001)
	r.catchUp()
	r.primary.Stop()
	time.Sleep(2 * maxLag)
	r.wantReads(0)
	r.wantStates("ok", "ok")
	assert.That(t, isUnavailable(r.get(900_002)), "a subscription that a replica does not have is not unavailable")
	r.wantLogged("it lags", 0)
	r.primary.Restart()
	r.wantStates("ok", "ok")
}

func TestReplicas_OfAnotherDatabaseAreLeftOut(t *testing.T) {
	slow(t)
	h, other := newSetting(t), newSetting(t)
	r := readFrom(h, h.primary.URL, []string{ephemeral.StartStandby(t, other.primary).URL}, 10*time.Second, patience)
	r.wantStates("foreign")
	r.wantLogged("it belongs to another database", 1)
	r.wantReads(4)
}

// A replica of another primary must not serve reads whenever both logs are about as long.
func TestReplicas_OfAPromotedOneStayLeftOut(t *testing.T) {
	slow(t)
	r := replicate(newSetting(t), time.Minute, patience)
	follower, promoted := r.standbys[0], r.standbys[1]
	r.insert(900_001) // a server that never replayed a transaction does not know where it was promoted
	promoted.CatchUp(r.primary)
	promoted.Promote()
	r.wantStates("ok", "promoted")
	r.wantReads(0)
	r.wantLogged("it was promoted, but DATABASE_URL names another primary", 1)
	follower.Follow(promoted.Server)
	other := ephemeral.OpenPool(t, promoted.URL, connect.PostgresConfig{Writable: true})
	exec(t, other, insertOne, 900_002, 1)
	follower.CatchUp(promoted.Server)
	for id := range 200 { // the primary's log is the longer one
		r.insert(910_000 + id)
	}
	for _, server := range []string{promoted.URL, follower.URL} { // servers note the timeline with a checkpoint
		exec(t, ephemeral.OpenPool(t, server, connect.PostgresConfig{}), "CHECKPOINT")
	}
	r.wantStates("diverged", "promoted")
	r.wantReads(4)
	r.wantLogged("it follows another primary", 1)
}

// The URL of the replicas may have another user than the primary's.
func TestReplicas_WhoseRoleMayNotReadAreLeftOut(t *testing.T) {
	slow(t)
	h := newSetting(t)
	h.addStandby()
	standby := h.standbys[0]
	exec(t, h.writes, "CREATE ROLE stranger LOGIN")
	standby.CatchUp(h.primary)
	stranger := assert.Must(url.Parse(standby.URL))(t)
	stranger.User = url.User("stranger")
	r := readFrom(h, h.primary.URL, []string{stranger.String()}, 10*time.Second, patience)
	r.wantStates("failing")
	r.wantReads(4)
	exec(t, h.writes, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO stranger")
	r.wantStates("ok")
	r.wantReads(0)
	r.wantLogged("permission denied for table", 1)
}

// Both URLs may list all servers of a group, whichever of them is the primary.
func TestReplicas_ThatAreListedWithThePrimaryFollowAFailover(t *testing.T) {
	slow(t)
	h := newSetting(t)
	h.addStandby()
	h.addStandby()
	first, second := h.standbys[0], h.standbys[1]
	urls := []string{h.primary.URL, first.URL, second.URL}
	group := strings.Replace(urls[0], hostOf(t, urls[0]), hostOf(t, urls[0])+","+hostOf(t, urls[1])+","+hostOf(t, urls[2]), 1)
	r := readFrom(h, group+"&target_session_attrs=primary", urls, 10*time.Second, patience)
	r.wantStates("primary", "ok", "ok")
	r.wantReads(0)
	r.insert(900_001) // a server that never replayed a transaction does not know where it was promoted
	first.CatchUp(h.primary)
	second.CatchUp(h.primary)
	h.primary.Stop()
	first.Promote()
	second.Follow(first.Server)
	r.wantStates("failing", "primary", "ok")
	assert.NoError(t, r.source.MarkTimeline(r.t.Context())) // as an instance does when it connects
	second.CatchUp(first.Server)
	r.wantReads(0)
	second.Stop()
	r.wantReads(4)
}

// Every server gives the same answer in a copy of a database, so it says nothing about the replicas.
func TestReplicas_ServeListsWhileTheirChangesCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]string{
		"a copy of another database": "UPDATE subscription_timelines SET table_oid = 1",
		"a refused statement":        "ALTER TABLE subscription_timelines ALTER mark TYPE text",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := replicate(newSetting(t), 10*time.Second, patience)
			r.insert(1)
			exec(t, r.writes, breaks)
			r.catchUp()
			before := r.fromPrimary.Load()
			for range 20 { // the check after a failure may be faster than the next read
				_, err := r.source.Changes(t.Context(), 1, subscriptions.ChangesQuery{Limit: 10, Language: locale.En})
				assert.Require(t, err != nil, "changes were read")
				assert.Must(r.source.List(t.Context(), 1, subscriptions.Query{Limit: 10, Language: locale.En}))(t)
			}
			assert.Equal(t, r.fromPrimary.Load(), before, "the primary served lists")
		})
	}
}
