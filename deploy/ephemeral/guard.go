//go:build unix

package ephemeral

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/deploy/connect"
)

// Guard is the access control of a private Redis. The zero value has none. The URLs of
// the servers contain all credentials.
type Guard struct {
	// TLS is required, also between the servers. URLs name the file of the authority,
	// which is created for this Redis alone.
	TLS bool

	// ClientCertificates are required as well. Needs TLS.
	ClientCertificates bool

	// Users are lines of redis.conf with the users commerce, support, check, replica and
	// sentinel. All get the same password. URLs log in as commerce, and contain the
	// password for the sentinel too. Empty: no login is required.
	Users string

	// Set by ready.
	dir      string      // of its files
	password string      // of all users, "" without users
	tls      *tls.Config // for clients, nil without TLS
}

// StartRedis starts a Redis server for this test alone. Settings are arguments of
// redis-server, such as "--appendonly", "yes", without which it does not persist its data.
func (g Guard) StartRedis(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	return private(tb, 1, redisMaker(g.ready(tb), settings...)).servers()[0]
}

// StartCluster starts a Redis Cluster for this test alone. Its nodes fail over after
// about 2 s. Those of the shared cluster take longer, so that a busy machine does not
// cause a failover. ahead[i], if given, is how far the clock of node i is ahead of this
// machine's.
func (g Guard) StartCluster(tb testing.TB, ahead ...time.Duration) *RedisCluster {
	tb.Helper()
	c := private(tb, 2*masters, clusterMaker(g.ready(tb), fastFailover, ahead...))
	return &RedisCluster{c.url, c.servers()}
}

// StartSentinels starts a master, its replica and three sentinels for this test alone.
func (g Guard) StartSentinels(tb testing.TB) *RedisSentinels {
	tb.Helper()
	s := private(tb, 5, sentinelsMaker(g.ready(tb)))
	return &RedisSentinels{s.url, s.servers()[0], s.servers()[1], s.servers()[2:]}
}

// StartRedis is Guard.StartRedis without access control.
func StartRedis(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	return Guard{}.StartRedis(tb, settings...)
}

// StartCluster is Guard.StartCluster without access control.
func StartCluster(tb testing.TB, ahead ...time.Duration) *RedisCluster {
	tb.Helper()
	return Guard{}.StartCluster(tb, ahead...)
}

// StartSentinels is Guard.StartSentinels without access control.
func StartSentinels(tb testing.TB) *RedisSentinels { tb.Helper(); return Guard{}.StartSentinels(tb) }

const adminUser = "ephemeral"

const (
	certificateFile = "certificate.pem"
	keyFile         = "key.pem"
	usersFile       = "users.conf"
)

// ready returns the guard of one Redis, with its own password and files.
func (g Guard) ready(tb testing.TB) Guard {
	tb.Helper()
	if g == (Guard{}) {
		return g
	}
	g.dir = tb.TempDir()
	var err error
	if g.TLS {
		g.tls, err = makeCertificate(g.file(certificateFile), g.file(keyFile))
		must(tb, "make certificate", err)
	}
	if g.Users != "" {
		g.password = rand.Text()
		must(tb, "write users", os.WriteFile(g.file(usersFile), []byte(g.users()), 0o600))
	}
	return g
}

func (g Guard) file(name string) string { return filepath.Join(g.dir, name) }

var loggedIn = regexp.MustCompile(`(?m)^user (?:commerce|support|check|replica|sentinel) .*$`)

func (g Guard) users() string {
	return loggedIn.ReplaceAllString(g.Users, "$0 >"+g.password) +
		"\nuser " + adminUser + " on >" + g.password + " allkeys allchannels +@all\n"
}

func (g Guard) listen(port int) []string {
	settings := []string{"--bind", "127.0.0.1"}
	if !g.TLS {
		return append(settings, "--port", strconv.Itoa(port))
	}
	clients := "no"
	if g.ClientCertificates {
		clients = "yes"
	}
	return append(settings,
		"--port", "0", "--tls-port", strconv.Itoa(port), "--tls-replication", "yes", "--tls-cluster", "yes",
		"--tls-ca-cert-file", g.file(certificateFile), "--tls-auth-clients", clients,
		"--tls-cert-file", g.file(certificateFile), "--tls-key-file", g.file(keyFile))
}

// login returns the settings for a server's users, and for its login to its master.
func (g Guard) login() []string {
	if g.password == "" {
		return nil
	}
	return []string{"--include", g.file(usersFile), "--masteruser", "replica", "--masterauth", g.password}
}

// admin returns how this package connects to a server.
func (g Guard) admin(port int) redis.Options {
	options := redis.Options{
		Addr: address(port), TLSConfig: g.tls, MaxRetries: -1, PoolSize: 1, ContextTimeoutEnabled: true, DisableIdentity: true,
	}
	if g.password != "" {
		options.Username, options.Password = adminUser, g.password
	}
	return options
}

// url returns the URL for tests, with the guard's parameters added to query.
func (g Guard) url(hosts []string, query url.Values) string {
	u := url.URL{Scheme: "redis", Host: strings.Join(hosts, ",")}
	if g.password != "" {
		u.User = url.UserPassword("commerce", g.password)
	}
	if g.TLS {
		u.Scheme = "rediss"
		query.Set("ca_file", g.file(certificateFile))
	}
	if g.ClientCertificates {
		query.Set("cert_file", g.file(certificateFile))
		query.Set("key_file", g.file(keyFile))
	}
	u.RawQuery = query.Encode()
	return u.String()
}

const userPassword = "ephemeral"

// AsUser adds a user to the Redis servers of redisURL and returns a URL that logs in as
// that user. users are lines of redis.conf, "user <name> <rules>". AsUser returns
// redisURL unchanged if it already logs in, if it names sentinels, whose replicas would
// not have the user, or if it is a miniredis, which has no users.
func AsUser(tb testing.TB, redisURL, users, name string) string {
	tb.Helper()
	scheme, rest, _ := strings.Cut(redisURL, "://")
	if strings.Contains(rest, "@") || strings.Contains(rest, "master=") {
		return redisURL
	}
	rules := []string{"reset", ">" + userPassword}
	for _, line := range regexp.MustCompile("(?m)^user "+name+" (.*)$").FindAllStringSubmatch(users, -1) {
		rules = append(rules, strings.Fields(line[1])...)
	}
	client, err := connect.Redis(redisURL, PatientRedis)
	must(tb, "add Redis user", err)
	defer client.Close()
	if cluster, is := client.(*redis.ClusterClient); is {
		err = cluster.ForEachShard(tb.Context(), func(ctx context.Context, node *redis.Client) error {
			return node.ACLSetUser(ctx, name, rules...).Err()
		})
	} else {
		err = client.ACLSetUser(tb.Context(), name, rules...).Err()
	}
	if redis.HasErrorPrefix(err, "unknown command") { // miniredis
		return redisURL
	}
	must(tb, "add Redis user "+name, err)
	return scheme + "://" + name + ":" + userPassword + "@" + rest
}
