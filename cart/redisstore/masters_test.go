package redisstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"commerce/deploy/assert"
)

func TestMaster_RemembersTheMaximumOfReplicasForTenMinutes(t *testing.T) {
	t.Parallel()
	now := time.Now()
	m := newMasters(func() time.Time { return now }, time.Now).at("a")
	for _, step := range []struct {
		after     time.Duration
		connected int
		want      int
	}{
		{0, 1, 1},
		{time.Minute, 2, 2},
		{time.Minute, 1, 2},
		{time.Minute, 0, 2},
		{8*time.Minute + 30*time.Second, 0, 2}, // one of the 2 was found missing 9.5 minutes ago
		{time.Minute, 0, 1},                    // that one is too old, the other is not
		{time.Minute, 0, 0},
		{time.Minute, 3, 3},
		{24 * time.Hour, 0, 3}, // lost at some time since the previous look, maybe just now
		{9 * time.Minute, 0, 3},
		{2 * time.Minute, 0, 0},
	} {
		now = now.Add(step.after)
		assert.Equal(t, m.maxReplicas(step.connected), step.want, "%d connected", step.connected)
	}
}

func TestMaster_CachesTheListOfReplicas(t *testing.T) {
	t.Parallel()
	now := time.Now()
	m := newMasters(func() time.Time { return now }, time.Now).at("a")
	asked, answer, failed := 0, 1, error(nil)
	want := func(n, times int) {
		t.Helper()
		got := m.listedReplicas(func() (int, error) { asked++; return answer, failed })
		assert.That(t, got == n && asked == times, "%d replicas, asked %d times; want %d, %d", got, asked, n, times)
	}
	want(1, 1)
	answer = 2
	want(1, 1)
	now = now.Add(listingRemembered)
	failed = errors.New("down")
	want(1, 2) // the last answer still counts
	failed = nil
	want(1, 2) // not every change waits for servers that do not answer
	now = now.Add(noneRemembered)
	want(2, 3)
	answer, now = 0, now.Add(listingRemembered)
	want(0, 4)
	answer, now = 1, now.Add(noneRemembered)
	want(1, 5) // a list without replicas is asked for again soon
}

// After a failover, the new master has no replica until the former master returns. The former
// master may then become master again without the writes of the meantime.
func TestMaster_ThatHasTakenOverCountsAsManyReplicasAsOthersHave(t *testing.T) {
	t.Parallel()
	now := time.Now()
	known := newMasters(func() time.Time { return now }, time.Now)
	known.at("a").maxReplicas(1)
	known.at("b").maxReplicas(2)
	got := known.at("c").maxReplicas(0)
	assert.That(t, got == 2, "a new master counts %d replicas, want 2 as another has", got)
	now = now.Add(ReplicasRemembered + time.Second)
	known.at("b").maxReplicas(1)
	got = known.at("a").maxReplicas(0)
	assert.That(t, got == 2, "a master that was not one for ten minutes counts %d replicas, want 2 as another had until now", got)
	now = now.Add(ReplicasRemembered + time.Second)
	assert.Equal(t, known.at("c").maxReplicas(0), 0, "replicas, when no master has had one for ten minutes")
}

func TestReplicasOfMyself_CountsReplicasThatMayReturn(t *testing.T) {
	t.Parallel()
	now := time.Now()
	node := func(id, flags, master string, silent time.Duration, slots string) string {
		sent := int64(0)
		if silent > 0 {
			sent = now.Add(-silent).UnixMilli()
		}
		return fmt.Sprintf("%s 127.0.0.1:7000@17000,host %s %s %d 1763632800000 3 connected %s\n", id, flags, master, sent, slots)
	}
	others := node("e", "slave", "f", 0, "") + node("f", "master", "-", 0, "5461-10922") + "\n"
	myself := node("a", "myself,master", "-", 0, "0-5460")
	for name, test := range map[string]struct {
		nodes string
		want  int
	}{
		"none": {myself, 0},
		"one, and one that may still become master": {myself + node("b", "slave", "a", 0, "") + node("c", "slave,fail", "a", 9*time.Minute, ""), 2},
		"one lost for long":                         {myself + node("d", "slave,fail", "a", 11*time.Minute, ""), 0},
		"the master that it replaced":               {myself + node("g", "master,fail", "-", time.Minute, ""), 1},
		"a failed master of other slots":            {myself + node("g", "master,fail", "-", time.Minute, "10923-16383"), 0},
		"a failed master, beside its own replica":   {myself + node("b", "slave", "a", 0, "") + node("g", "master,fail", "-", time.Minute, ""), 1},
		"an empty master":                           {myself + node("g", "master", "-", 0, ""), 0},
	} {
		assert.Equal(t, ReplicasOfMyself(test.nodes+others, now), test.want, "%s", name)
	}
}

func TestMaster_LearnsTheClockOfItsRedis(t *testing.T) {
	t.Parallel()
	m := newMasters(time.Now, time.Now).at("a")
	sent := m.start.Add(1000 * time.Millisecond)
	for _, step := range []struct {
		redis, took int64 // ms
		want        int64 // ms by which Redis is ahead
		why         string
	}{
		{6050, 100, 4949, "the lowest possible estimate"},
		{6005, 10, 4994, "the estimate was too low"},
		{6100, 200, 4994, "a slow reply adds nothing"},
		{3005, 10, 1994, "Redis' clock was set back"},
		{9005, 10, 7994, "Redis' clock was set forward"},
	} {
		m.learn(step.redis, sent, sent.Add(time.Duration(step.took)*time.Millisecond))
		assert.That(t, m.clock.ahead == step.want, "%s: %d ms ahead, want %d", step.why, m.clock.ahead, step.want)
	}
}
