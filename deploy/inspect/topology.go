package inspect

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"commerce/cart/redisstore"
	"commerce/deploy/connect"
)

type topology struct {
	*connect.RedisServers
	expect Config
}

func (t topology) watched() bool { return t.Master() != "" }

// patient makes a client wait long enough for a distant server, and send each command once.
func patient(o *redis.UniversalOptions) {
	connect.Within(patience)(o)
	o.MaxRetries, o.PoolSize = -1, 1
}

// checkRedis checks the masters of the URL, and then the replicas that they or the cluster name.
func checkRedis(ctx context.Context, c Config) ([]*report, error) {
	servers, err := connect.NewRedisServers(c.RedisURL, patient)
	if err != nil {
		return nil, err
	}
	t := topology{servers, c}
	masters := t.Addrs()
	var replicas []string
	var reports []*report
	switch {
	case t.watched():
		masters, reports = t.checkSentinels(ctx)
	case t.Clustered():
		masters, replicas, reports = t.checkCluster(ctx)
	}
	check := func(addr string, replica bool) *redisServer {
		s := &redisServer{report: report{server: addr}, topology: t, replica: replica}
		client := t.Server(addr)
		defer client.Close()
		s.check(ctx, client)
		return s
	}
	for _, master := range each(masters, func(addr string) *redisServer { return check(addr, false) }) {
		reports, replicas = append(reports, &master.report), append(replicas, master.replicas...)
	}
	for _, replica := range each(unique(replicas), func(addr string) *redisServer { return check(addr, true) }) {
		reports = append(reports, &replica.report)
	}
	return reports, nil
}

// checkSentinels asks all sentinels, and returns the master that the first one names.
func (t topology) checkSentinels(ctx context.Context) (masters []string, reports []*report) {
	type answer struct{ master, failure, quorum string }
	answers := each(t.Addrs(), func(addr string) (a answer) {
		client := t.Sentinel(addr)
		defer client.Close()
		at, err := client.GetMasterAddrByName(ctx, t.Master()).Result()
		switch {
		case errors.Is(err, redis.Nil):
			a.failure = "it does not know " + t.Master()
		case err != nil:
			a.failure = failure(err)
		case len(at) != 2:
			a.failure = "its answer is not an address"
		default:
			a.master = net.JoinHostPort(at[0], at[1])
			if err := client.CkQuorum(ctx, t.Master()).Err(); err != nil {
				a.quorum = strings.TrimRight(err.Error(), ".")
			}
		}
		return a
	})
	if at := slices.IndexFunc(answers, func(a answer) bool { return a.master != "" }); at >= 0 {
		masters = []string{answers[at].master}
	}
	for i, a := range answers {
		r := &report{server: t.Addrs()[i]}
		missing := strings.HasPrefix(a.quorum, "NOQUORUM")
		r.judge("redis_sentinel",
			serious(a.failure != "" && masters == nil, "REDIS_URL, or the sentinel",
				"Cart calls of an instance that starts now get a 503, and after a failover all, because no sentinel names the master: %s.", a.failure),
			warning(a.failure != "", "REDIS_URL, or the sentinel", "This sentinel does not name the master: %s.", a.failure),
			unknown(a.quorum != "" && !missing, "SENTINEL CKQUORUM", "It is not visible whether enough sentinels can agree on a failover."),
			serious(missing, "sentinel monitor, or the number of sentinels",
				"If the master fails, no replica replaces it, and all cart calls get a 503: %s.", a.quorum),
			ok("Enough sentinels can agree on a failover."))
		r.judgeTLS("redis_tls", redisTLS, t.TLS() || local(r.server))
		reports = append(reports, r)
	}
	return masters, reports
}

const slots = 16384

// checkCluster asks the nodes in the URL for the layout of the cluster. If none answers, it returns
// these nodes as the masters. A node that is in no cluster answers with an empty layout.
func (t topology) checkCluster(ctx context.Context) (masters, replicas []string, reports []*report) {
	layouts := each(t.Addrs(), func(addr string) *redis.ClusterSlotsCmd {
		client := t.Server(addr)
		defer client.Close()
		layout := redis.NewClusterSlotsCmd(ctx, "cluster", "slots") // as go-redis's own cluster client does
		_ = client.Process(ctx, layout)                             // sets its error
		return layout
	})
	at := slices.IndexFunc(layouts, func(l *redis.ClusterSlotsCmd) bool { return len(l.Val()) > 0 })
	if at < 0 {
		at = slices.IndexFunc(layouts, func(l *redis.ClusterSlotsCmd) bool { return l.Err() == nil })
	}
	for i, l := range layouts {
		if l.Err() != nil && strings.Contains(l.Err().Error(), "cluster support disabled") {
			alone := &report{server: t.Addrs()[i]}
			alone.judge("redis_slots",
				serious(at < 0, "REDIS_URL: one host without ?cluster=true, or the nodes of a cluster",
					"All cart calls get a 503, because the URL is that of a cluster, but this server is in none."),
				warning(true, "REDIS_URL: remove this host", "This server is not in the cluster of the other hosts in the URL."))
			reports = append(reports, alone)
		}
	}
	if at < 0 {
		return t.Addrs(), nil, reports
	}
	r := &report{server: t.Addrs()[at]}
	missing := slots
	for _, part := range layouts[at].Val() {
		missing -= part.End - part.Start + 1
		for i, node := range part.Nodes {
			addr := reachable(node.Addr, r.server)
			if i == 0 {
				masters = append(masters, addr)
			} else {
				replicas = append(replicas, addr)
			}
		}
	}
	r.judge("redis_slots",
		serious(missing > 0, "redis-cli --cluster fix",
			"Calls for some carts get a 503, because %d of %d slots of the cluster have no master.", missing, slots),
		ok("Every slot of the cluster has a master."))
	if masters == nil {
		masters = t.Addrs()
	}
	return unique(masters), replicas, append(reports, r)
}

// reachable completes the address of a node that does not know its own host: the one asked.
func reachable(addr, asked string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host != "" && host != "?" {
		return addr
	}
	host, _, _ = net.SplitHostPort(asked)
	return net.JoinHostPort(host, port)
}

func unique(addrs []string) []string {
	slices.Sort(addrs)
	return slices.Compact(addrs)
}

// listed returns how many replicas of a master the cluster lists, or have answered a sentinel
// recently. It returns hidden if they do not tell.
func (t topology) listed(ctx context.Context, client *redis.Client) int {
	switch {
	case t.Clustered():
		if nodes, err := client.ClusterNodes(ctx).Result(); err == nil {
			return redisstore.ReplicasOfMyself(nodes, t.expect.Now())
		}
		return hidden
	case t.watched():
		for _, addr := range t.Addrs() {
			client := t.Sentinel(addr)
			n, err := connect.KnownReplicas(ctx, client, t.Master(), redisstore.ReplicasRemembered)
			_ = client.Close()
			if err == nil {
				return n
			}
		}
		return hidden
	}
	return 0
}
