package torture

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// managedRedis is a master with two replicas behind one address, like a managed service:
// only the master knows the replicas. Each replica follows its master over a line that can
// be slowed down and cut.
type managedRedis struct {
	t       testing.TB
	nodes   []redisNode
	lines   []*toxiproxy.Proxy // from each node to its master
	address *toxiproxy.Proxy   // of the master, for the service
	master  int
}

func startManagedRedis(t testing.TB) *managedRedis {
	t.Helper()
	m := &managedRedis{t: t}
	for range 3 {
		m.nodes = append(m.nodes, nodeOf(ephemeral.StartRedis(t)))
		m.lines = append(m.lines, newProxy(t, m.nodes[0].admin.Options().Addr))
	}
	m.address = newProxy(t, m.nodes[0].admin.Options().Addr)
	for _, proxy := range append(m.lines, m.address) {
		assert.NoError(t, proxy.Start())
	}
	m.settle()
	return m
}

func (m *managedRedis) URL() string { return "redis://" + m.address.Listen }

// replicas returns the numbers of the nodes that are not the master.
func (m *managedRedis) replicas() []int { return []int{(m.master + 1) % 3, (m.master + 2) % 3} }

// promote makes a replica the master, and points the address at it.
func (m *managedRedis) promote(replica int) {
	m.t.Helper()
	assert.NoError(m.t, m.nodes[replica].admin.ReplicaOf(m.t.Context(), "no", "one").Err())
	m.master = replica
	m.aim(m.address)
}

// aim closes all connections of a proxy and lets it forward to the master.
func (m *managedRedis) aim(proxy *toxiproxy.Proxy) {
	m.t.Helper()
	proxy.Stop()
	to := &toxiproxy.Proxy{Listen: proxy.Listen, Upstream: m.nodes[m.master].admin.Options().Addr, Enabled: true}
	assert.NoError(m.t, proxy.Update(to))
}

// settle makes all other nodes replicas of the master, over lines without faults, and waits
// until they have all of its writes.
func (m *managedRedis) settle() {
	m.t.Helper()
	for _, i := range m.replicas() {
		m.lines[i].Toxics.ResetToxics(m.t.Context())
		m.aim(m.lines[i])
		host, port, _ := net.SplitHostPort(m.lines[i].Listen)
		settles(m.t, func() error { // the old connection to a restarted node fails
			return m.nodes[i].admin.ReplicaOf(m.t.Context(), host, port).Err()
		})
	}
	settles(m.t, func() error {
		pipe := m.nodes[m.master].admin.Pipeline() // WAIT covers only the writes of its own connection
		pipe.Set(m.t.Context(), "settled", 1, time.Minute)
		confirmed := pipe.Do(m.t.Context(), "wait", 2, 200)
		if _, err := pipe.Exec(m.t.Context()); err != nil {
			return err
		}
		if confirmed.Val() != int64(2) {
			return fmt.Errorf("%v of 2 replicas have all writes", confirmed.Val())
		}
		return nil
	})
}

// slow adds a toxic to the line of a replica. format makes its JSON.
func (m *managedRedis) slow(replica int, format string, arguments ...any) {
	m.t.Helper()
	assert.Must(m.lines[replica].Toxics.AddToxicJson(strings.NewReader(fmt.Sprintf(format, arguments...))))(m.t)
}

// lag delays what a replica receives.
func (m *managedRedis) lag(replica int, d time.Duration) {
	m.slow(replica, `{"type":"latency","attributes":{"latency":%d,"jitter":%d}}`, d.Milliseconds(), d.Milliseconds()/4)
}

// narrow limits the rate at which a replica receives data.
func (m *managedRedis) narrow(replica, kibPerSecond int) {
	m.slow(replica, `{"type":"bandwidth","attributes":{"rate":%d}}`, kibPerSecond)
}

// swallow keeps the connection of a replica open, and delivers nothing.
func (m *managedRedis) swallow(replica int) {
	m.slow(replica, `{"type":"timeout","attributes":{"timeout":0}}`)
}

// hide cuts a replica off and waits until its master no longer lists it.
func (m *managedRedis) hide(replica int) {
	m.t.Helper()
	m.lines[replica].Stop()
	settles(m.t, func() error {
		info, err := m.nodes[m.master].admin.Info(m.t.Context(), "replication").Result()
		if err == nil && !strings.Contains(info, "connected_slaves:1\r\n") {
			err = errors.New("the master still knows both replicas")
		}
		return err
	})
}

// heal ends all faults of a line.
func (m *managedRedis) heal(replica int) {
	m.t.Helper()
	m.lines[replica].Toxics.ResetToxics(context.WithoutCancel(m.t.Context()))
	m.aim(m.lines[replica])
}
