package redisstore

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestMaster_RemembersTheMaximumOfReplicasForTenMinutes(t *testing.T) {
	t.Parallel()
	now := time.Now()
	m := newMasters(func() time.Time { return now }).at("a")
	for _, step := range []struct {
		after     time.Duration
		connected int
		want      int
	}{
		{0, 1, 1},
		{time.Minute, 2, 2},
		{time.Minute, 1, 2},
		{time.Minute, 0, 2},
		{8*time.Minute + 30*time.Second, 0, 1}, // the 2 are too old, the 1 is not
		{time.Minute, 0, 0},
		{time.Minute, 3, 3},
	} {
		now = now.Add(step.after)
		if got := m.maxReplicas(step.connected); got != step.want {
			t.Errorf("%d connected: %d, want %d", step.connected, got, step.want)
		}
	}
}

func TestMaster_CachesTheListOfReplicas(t *testing.T) {
	t.Parallel()
	now := time.Now()
	m := newMasters(func() time.Time { return now }).at("a")
	asked, answer, failed := 0, 1, error(nil)
	want := func(n, times int) {
		t.Helper()
		got := m.listedReplicas(func() (int, error) { asked++; return answer, failed })
		if got != n || asked != times {
			t.Errorf("%d replicas, asked %d times; want %d, %d", got, asked, n, times)
		}
	}
	want(1, 1)
	answer = 2
	want(1, 1)
	now = now.Add(listingRemembered)
	failed = errors.New("down")
	want(1, 2) // the last answer still counts
	failed = nil
	want(2, 3)
}

func TestReplicasOfMyself_CountsReplicasThatMayReturn(t *testing.T) {
	t.Parallel()
	now := time.Now()
	line := func(id, flags, master string, silent time.Duration) string {
		sent := int64(0)
		if silent > 0 {
			sent = now.Add(-silent).UnixMilli()
		}
		return fmt.Sprintf("%s 127.0.0.1:7000@17000,host %s %s %d 1763632800000 3 connected 0-5460\n", id, flags, master, sent)
	}
	nodes := line("b", "slave", "a", 0) +
		line("a", "myself,master", "-", 0) +
		line("c", "slave,fail", "a", 9*time.Minute) + // unresponsive, but may still become master
		line("d", "slave,fail", "a", 11*time.Minute) +
		line("e", "slave", "f", 0) +
		line("f", "master", "-", 0) + "\n"
	if got := replicasOfMyself(nodes, now); got != 2 {
		t.Errorf("%d replicas, want b and c", got)
	}
}

func TestMaster_LearnsTheClockOfItsRedis(t *testing.T) {
	t.Parallel()
	m := newMasters(time.Now).at("a")
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
		if m.clock.ahead != step.want {
			t.Errorf("%s: %d ms ahead, want %d", step.why, m.clock.ahead, step.want)
		}
	}
}
