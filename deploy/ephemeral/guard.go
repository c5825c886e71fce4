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
}

// StartRedis starts a Redis server for this test alone. Settings are arguments of
// redis-server, such as "--appendonly", "yes", without which it does not persist its data.
func (g Guard) StartRedis(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	return private(tb, 1, redisMaker(g.lock(tb), settings...))
}

// StartCluster starts a Redis Cluster for this test alone. Its nodes fail over after
// about 2 s. Those of the shared cluster take longer, so that a busy machine does not
// cause a failover. ahead[i], if given, is how far the clock of node i is ahead of this
// machine's.
func (g Guard) StartCluster(tb testing.TB, ahead ...time.Duration) *RedisCluster {
	tb.Helper()
	return private(tb, 2*masters, clusterMaker(g.lock(tb), fastFailover, ahead...))
}

// StartSentinels starts a Redis master, its replica and three sentinels for this test
// alone.
func (g Guard) StartSentinels(tb testing.TB) *RedisSentinels {
	tb.Helper()
	return private(tb, 5, sentinelsMaker(g.lock(tb)))
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

// lock is a Guard with its files and password. The zero value has no access control.
type lock struct {
	Guard
	dir      string
	password string      // of all users, "" without users
	tls      *tls.Config // for clients, nil without TLS
}

// adminUser is the user that this package logs in as.
const adminUser = "ephemeral"

// The files of a lock.
const (
	certificateFile = "certificate.pem"
	keyFile         = "key.pem"
	usersFile       = "users.conf"
)

func (g Guard) lock(tb testing.TB) lock {
	tb.Helper()
	if g == (Guard{}) {
		return lock{}
	}
	l := lock{Guard: g, dir: tb.TempDir()}
	var err error
	if g.TLS {
		l.tls, err = makeCertificate(l.file(certificateFile), l.file(keyFile))
		must(tb, "make certificate", err)
	}
	if g.Users != "" {
		l.password = rand.Text()
		must(tb, "write users", os.WriteFile(l.file(usersFile), []byte(l.users()), 0o600))
	}
	return l
}

func (l lock) file(name string) string { return filepath.Join(l.dir, name) }

var loggedIn = regexp.MustCompile(`(?m)^user (?:commerce|support|check|replica|sentinel) .*$`)

// users returns Guard.Users with passwords, and the admin user.
func (l lock) users() string {
	return loggedIn.ReplaceAllString(l.Users, "$0 >"+l.password) +
		"\nuser " + adminUser + " on >" + l.password + " allkeys allchannels +@all\n"
}

// listen returns the settings for a server or a sentinel that listens on port.
func (l lock) listen(port int) []string {
	settings := []string{"--bind", "127.0.0.1"}
	if !l.TLS {
		return append(settings, "--port", strconv.Itoa(port))
	}
	clients := "no"
	if l.ClientCertificates {
		clients = "yes"
	}
	return append(settings,
		"--port", "0", "--tls-port", strconv.Itoa(port), "--tls-replication", "yes", "--tls-cluster", "yes",
		"--tls-ca-cert-file", l.file(certificateFile), "--tls-auth-clients", clients,
		"--tls-cert-file", l.file(certificateFile), "--tls-key-file", l.file(keyFile))
}

// login returns the settings for a server's users, and for its login to its master.
func (l lock) login() []string {
	if l.password == "" {
		return nil
	}
	return []string{"--include", l.file(usersFile), "--masteruser", "replica", "--masterauth", l.password}
}

// admin returns how this package connects to a server.
func (l lock) admin(port int) redis.Options {
	options := redis.Options{
		Addr: address(port), TLSConfig: l.tls, MaxRetries: -1, PoolSize: 1, ContextTimeoutEnabled: true, DisableIdentity: true,
	}
	if l.password != "" {
		options.Username, options.Password = adminUser, l.password
	}
	return options
}

// url returns the URL for tests, with the guard's parameters added to query.
func (l lock) url(hosts []string, query url.Values) string {
	u := url.URL{Scheme: "redis", Host: strings.Join(hosts, ",")}
	if l.password != "" {
		u.User = url.UserPassword("commerce", l.password)
	}
	if l.TLS {
		u.Scheme = "rediss"
		query.Set("ca_file", l.file(certificateFile))
	}
	if l.ClientCertificates {
		query.Set("cert_file", l.file(certificateFile))
		query.Set("key_file", l.file(keyFile))
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// userPassword is the password of every user that AsUser adds.
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
	args := []any{"acl", "setuser", name, "reset", ">" + userPassword}
	for _, line := range regexp.MustCompile("(?m)^user "+name+" (.*)$").FindAllStringSubmatch(users, -1) {
		for rule := range strings.FieldsSeq(line[1]) {
			args = append(args, rule)
		}
	}
	client, err := connect.Redis(redisURL)
	must(tb, "add Redis user", err)
	defer client.Close()
	if cluster, is := client.(*redis.ClusterClient); is {
		err = cluster.ForEachShard(tb.Context(), func(ctx context.Context, node *redis.Client) error { return node.Do(ctx, args...).Err() })
	} else {
		err = client.Do(tb.Context(), args...).Err()
	}
	if redis.HasErrorPrefix(err, "unknown command") { // miniredis
		return redisURL
	}
	must(tb, "add Redis user "+name, err)
	return scheme + "://" + name + ":" + userPassword + "@" + rest
}
