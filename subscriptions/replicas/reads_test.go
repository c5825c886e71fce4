package replicas_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions/suite"
)

func TestReplicas_ThatStopAreReplacedAtOnce(t *testing.T) {
	suite.Slow(t)
	r := suite.Replicate(suite.NewSetting(t), 10*time.Second, suite.Patience)
	r.WantReads(0)
	r.Standbys[1].Stop()
	r.WantReads(0) // of the other replica, also before a check has failed
	r.WantStates("ok", "failing")
	r.Standbys[0].Stop()
	r.WantReads(4)
	r.WantStates("failing", "failing")
	r.WantReads(4)
	for _, standby := range r.Standbys {
		standby.Restart()
	}
	r.WantStates("ok", "ok")
	r.WantReads(0)
	r.WantLogged("its check failed", 2)
	r.WantLogged("a replica serves reads again", 2)
}

// A read of a replica that hangs goes on elsewhere while half of its time is left.
func TestReplicas_ThatHangAreReplacedInTime(t *testing.T) {
	suite.Slow(t)
	r := suite.Replicate(suite.NewSetting(t), 10*time.Second, suite.Hangs)
	r.WantReads(suite.AnyNumber) // opens connections
	r.Standbys[1].Freeze()
	r.WantReads(suite.AnyNumber)
	r.WantStates("ok", "failing")
	r.Standbys[1].Thaw()
	r.WantStates("ok", "ok")
}

// Without writes there is nothing that a replica could lack, so those of an idle primary do not lag.
func TestReplicas_ThatLagAreLeftOut(t *testing.T) {
	suite.Slow(t)
	maxLag := ephemeral.Patience(2 * time.Second)
	r := suite.Replicate(suite.NewSetting(t), maxLag, suite.Patience)
	time.Sleep(2 * maxLag)
	r.WantStates("ok", "ok")
	r.WantLogged("it lags", 0)
	r.WantReads(0)
	r.Standbys[1].CutOff()
	r.Insert(900_001)
	r.WantStates("ok", "lagging")
	assert.Succeeds(t, r.Get(900_001), "a new subscription")
	r.Standbys[1].Follow(r.Primary)
	r.WantStates("ok", "ok")
	name := r.Names[1]
	r.WantLogged("it lags\" replica="+name, 1)
	r.WantLogged("a replica serves reads again\" replica="+name, 1)
}

// A replica that lacks a subscription or a timeline must not say that it does not exist.
func TestReplicas_LeaveRefusalsToThePrimary(t *testing.T) {
	suite.Slow(t)
	r := suite.Replicate(suite.NewSetting(t), time.Minute, suite.Patience)
	r.CutOff()
	r.Insert(900_001)
	assert.Succeeds(t, r.Get(900_001), "a subscription that only the primary has")
	assert.That(t, suite.IsMissing(r.Get(900_002)), "a subscription that does not exist is found")
	assert.Equal(t, r.FromPrimary.Load(), 2, "reads that the primary served")
	r.WantReads(0) // the replicas are not suspected
}

func TestReplicas_HaveNoPartInLinkKeysWhileThePrimaryAnswers(t *testing.T) {
	t.Parallel()
	r := suite.Replicate(suite.NewSetting(t), time.Minute, suite.Patience)
	keys := func() string { return fmt.Sprintf("%x", assert.Must(r.Source.LinkKeys(t.Context(), true))(t)) }
	before := keys()
	r.CutOff()
	suite.Exec(t, r.Writes, "UPDATE page_link_key SET key = uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())")
	assert.That(t, keys() != before, "a new key is not seen")
	r.Primary.Stop()
	assert.Equal(t, keys(), before, "without the primary, the replicas' keys are not read")
}

func TestReplicas_ServeReadsWithoutThePrimary(t *testing.T) {
	t.Parallel()
	maxLag := ephemeral.Patience(2 * time.Second)
	r := suite.Replicate(suite.NewSetting(t), maxLag, suite.Patience)
	r.WantLogged("a replica serves reads", 2)
	r.Insert(900_001)
	r.CatchUp()
	r.Primary.Stop()
	time.Sleep(2 * maxLag)
	r.WantReads(0)
	r.WantStates("ok", "ok")
	assert.That(t, suite.IsUnavailable(r.Get(900_002)), "a subscription that a replica does not have is not unavailable")
	r.WantLogged("it lags", 0)
	r.Primary.Restart()
	r.WantStates("ok", "ok")
}

func TestReplicas_OfAnotherDatabaseAreLeftOut(t *testing.T) {
	suite.Slow(t)
	h, other := suite.NewSetting(t), suite.NewSetting(t)
	r := suite.ReadFrom(h, h.Primary.URL, []string{ephemeral.StartStandby(t, other.Primary).URL}, 10*time.Second, suite.Patience)
	r.WantStates("foreign")
	r.WantLogged("it belongs to another database", 1)
	r.WantReads(4)
}

// A replica of another primary must not serve reads whenever both logs are about as long.
func TestReplicas_OfAPromotedOneStayLeftOut(t *testing.T) {
	suite.Slow(t)
	r := suite.Replicate(suite.NewSetting(t), time.Minute, suite.Patience)
	follower, promoted := r.Standbys[0], r.Standbys[1]
	r.Insert(900_001) // a server that never replayed a transaction does not know where it was promoted
	promoted.CatchUp(r.Primary)
	promoted.Promote()
	r.WantStates("ok", "promoted")
	r.WantReads(0)
	r.WantLogged("it was promoted, but DATABASE_URL names another primary", 1)
	follower.Follow(promoted.Server)
	other := ephemeral.OpenPool(t, promoted.URL, connect.PostgresConfig{Writable: true})
	suite.Exec(t, other, suite.InsertOne, 900_002, 1)
	follower.CatchUp(promoted.Server)
	for id := range 200 { // the primary's log is the longer one
		r.Insert(910_000 + id)
	}
	for _, server := range []string{promoted.URL, follower.URL} { // servers note the timeline with a checkpoint
		suite.Exec(t, ephemeral.OpenPool(t, server, connect.PostgresConfig{}), "CHECKPOINT")
	}
	r.WantStates("diverged", "promoted")
	r.WantReads(4)
	r.WantLogged("it follows another primary", 1)
}

// The URL of the replicas may have another user than the primary's.
func TestReplicas_WhoseRoleMayNotReadAreLeftOut(t *testing.T) {
	suite.Slow(t)
	h := suite.NewSetting(t)
	h.AddStandby()
	standby := h.Standbys[0]
	suite.Exec(t, h.Writes, "CREATE ROLE stranger LOGIN")
	standby.CatchUp(h.Primary)
	stranger := assert.Must(url.Parse(standby.URL))(t)
	stranger.User = url.User("stranger")
	r := suite.ReadFrom(h, h.Primary.URL, []string{stranger.String()}, 10*time.Second, suite.Patience)
	r.WantStates("failing")
	r.WantReads(4)
	suite.Exec(t, h.Writes, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO stranger")
	r.WantStates("ok")
	r.WantReads(0)
	r.WantLogged("permission denied for table", 1)
}

// Both URLs may list all servers of a group, whichever of them is the primary.
func TestReplicas_ThatAreListedWithThePrimaryFollowAFailover(t *testing.T) {
	suite.Slow(t)
	h := suite.NewSetting(t)
	h.AddStandby()
	h.AddStandby()
	first, second := h.Standbys[0], h.Standbys[1]
	urls := []string{h.Primary.URL, first.URL, second.URL}
	group := strings.Replace(urls[0], suite.HostOf(t, urls[0]), suite.HostOf(t, urls[0])+","+suite.HostOf(t, urls[1])+","+suite.HostOf(t, urls[2]), 1)
	r := suite.ReadFrom(h, group+"&target_session_attrs=primary", urls, 10*time.Second, suite.Patience)
	r.WantStates("primary", "ok", "ok")
	r.WantReads(0)
	r.Insert(900_001) // a server that never replayed a transaction does not know where it was promoted
	first.CatchUp(h.Primary)
	second.CatchUp(h.Primary)
	h.Primary.Stop()
	first.Promote()
	second.Follow(first.Server)
	r.WantStates("failing", "primary", "ok")
	assert.NoError(t, r.Source.MarkTimeline(r.T.Context())) // as an instance does when it connects
	second.CatchUp(first.Server)
	r.WantReads(0)
	second.Stop()
	r.WantReads(4)
}
