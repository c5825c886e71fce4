package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// replicatedServe is `commerce serve` on a primary and two replicas. Store 1 reads the second one.
type replicatedServe struct {
	*running
	setting  string
	primary  *ephemeral.Server
	replicas []*ephemeral.Standby
	token    string // of store 1
}

// startReplicated waits until the replicas serve reads.
func startReplicated(t *testing.T) *replicatedServe {
	t.Helper()
	r := &replicatedServe{primary: startSeeded(t)}
	r.token = storeToken(t, r.primary.URL)
	var hosts []string
	for range 2 {
		replica := ephemeral.StartStandby(t, r.primary)
		r.replicas = append(r.replicas, replica)
		hosts = append(hosts, hostOf(t, replica.URL))
	}
	several := strings.Replace(r.primary.URL, hostOf(t, r.primary.URL), strings.Join(hosts, ","), 1)
	r.setting = "DATABASE_REPLICA_URL=" + several
	r.running = startServe(t, r.primary.URL, r.setting)
	r.wantStates(t, "ok", "ok", "ok")
	return r
}

func (r *replicatedServe) wantStates(t *testing.T, primary string, replicas ...string) {
	t.Helper()
	want := map[string]string{"redis": "ok", "postgres": primary, "postgres_rights": "ok", "postgres_schema": "ok"}
	if primary != "ok" {
		want["postgres_rights"], want["postgres_schema"] = "unknown", "unknown"
	}
	for i, replica := range r.replicas {
		want["replica "+hostOf(t, replica.URL)] = replicas[i]
	}
	r.wantChecks(t, http.StatusOK, want)
}

func (r *replicatedServe) wantList(t *testing.T, want int) {
	t.Helper()
	r.wantStatus(t, r.token, "/subscriptions", want)
}

func (r *replicatedServe) reads(t *testing.T, server string) float64 {
	t.Helper()
	return r.metric(t, fmt.Sprintf("commerce_subscription_reads_total{server=%q}", server))
}

// wantFromReplica repeats a call until a replica serves it, in case that the machine is so busy
// that a check fails. A summary is reused for a minute, so it is not repeated.
func (r *replicatedServe) wantFromReplica(t *testing.T, path string) {
	t.Helper()
	eventually(t, func() string {
		before := r.reads(t, "replica")
		if status, page := r.asStore(t, r.token, path); status != http.StatusOK {
			return fmt.Sprintf("%s: %d %s", path, status, page.Message)
		}
		if r.reads(t, "replica") == before && !strings.HasSuffix(path, "summary") {
			return path + " was not read from a replica"
		}
		return ""
	})
}

// wantEachStateOnce checks that each line about a replica has another state than the one before.
func (r *replicatedServe) wantEachStateOnce(t *testing.T) {
	t.Helper()
	last := map[string]string{}
	for _, line := range r.log.lines(t, 0) {
		assert.That(t, line.Replica == "" || last[line.Replica] != line.State, "the state is logged again: %+v", line)
		last[line.Replica] = line.State
	}
	assert.That(t, len(last) >= 3, "the log has states of %v", last) // two replicas, and lines about none
}

func TestServe_ReadsSubscriptionsFromReplicas(t *testing.T) {
	slow(t)
	r := startReplicated(t)
	_, page := r.asStoreServed(t, r.token, "/subscriptions")
	assert.Require(t, len(page.Data.Data) != 0, "the list is empty")
	single := fmt.Sprintf("/subscriptions/%d", page.Data.Data[0].ID)
	for _, path := range []string{"/subscriptions", single, single + "/history", "/subscriptions/changes", "/subscriptions/events", "/subscriptions/summary", "/subscriptions/metrics"} {
		r.wantFromReplica(t, path)
	}
	second := hostOf(t, r.replicas[1].URL)
	soon(t, 1, func() float64 { return r.metric(t, fmt.Sprintf("commerce_postgres_replica_up{replica=%q}", second)) })
	r.replicas[1].Stop()
	r.wantList(t, http.StatusOK)
	r.wantStates(t, "ok", "ok", "failing")
	r.replicas[0].Stop()
	r.wantStates(t, "ok", "failing", "failing")
	before := r.reads(t, "primary")
	r.wantList(t, http.StatusOK)
	assert.That(t, r.reads(t, "primary") != before, "the primary served no read without replicas")
	r.log.wait(t, 0, "its check failed", second)
	late := *r // starts without its replicas
	late.running = startServe(t, r.primary.URL, r.setting)
	late.wantStates(t, "ok", "failing", "failing")
	late.wantList(t, http.StatusOK)
	for _, replica := range r.replicas {
		replica.Restart()
	}
	for _, serve := range []*replicatedServe{r, &late} {
		serve.wantStates(t, "ok", "ok", "ok")
		serve.end(t)
		serve.wantEachStateOnce(t)
	}
}

// Tokens are checked on the primary, so replicas that lag neither accept a revoked one nor refuse a new one.
func TestServe_ChecksTokensOnThePrimaryWhileReplicasLag(t *testing.T) {
	t.Parallel()
	r := startReplicated(t)
	for _, replica := range r.replicas {
		replica.CutOff()
	}
	r.wantList(t, http.StatusOK)
	onDatabase(t, r.primary.URL, "token", "revoke", "1")
	r.wantList(t, http.StatusUnauthorized) // package auth tests that it takes a second
	r.token = storeToken(t, r.primary.URL)
	r.wantList(t, http.StatusOK)
	r.wantStates(t, "ok", "lagging", "lagging")
}

func TestServe_RecoversFromTheLossOfThePrimaryOfReplicas(t *testing.T) {
	slow(t)
	r := startReplicated(t)
	r.wantList(t, http.StatusOK)
	r.primary.Kill()
	r.wantStates(t, "failing", "ok", "ok")
	r.wantList(t, http.StatusServiceUnavailable) // its token may have been revoked
	r.primary.Restart()
	r.wantList(t, http.StatusOK)
	r.wantStates(t, "ok", "ok", "ok")
}
