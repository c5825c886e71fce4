//go:build unix

package ephemeral

import (
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Guard is what a private Redis asks of those who connect to it. The zero value
// lets everybody in. URLs carry whatever it takes to come in.
type Guard struct {
	// TLS is all that is spoken, between the servers too. URLs name the file
	// of the authority, made for this one Redis, that signed its certificates.
	TLS bool

	// ClientCertificates are asked for besides. Needs TLS.
	ClientCertificates bool

	// Users is a piece of redis.conf with the users commerce, support, replica
	// and sentinel, who are given one password. URLs log in as commerce, and
	// hold that password for the sentinel too. Empty: nobody needs to log in.
	Users string
}

// StartRedis starts a Redis server for this test alone.
func (g Guard) StartRedis(tb testing.TB) *Server {
	tb.Helper()
	lock := g.lock(tb)
	return private(tb, func(home *home) (*Server, error) { return startRedis(home, lock) })
}

// StartCluster starts a Redis Cluster for this test alone. Its nodes fail over
// after about 2 s; those of the shared one take longer, lest a busy machine
// sets it off.
func (g Guard) StartCluster(tb testing.TB) *RedisCluster {
	tb.Helper()
	lock := g.lock(tb)
	return private(tb, func(home *home) (*RedisCluster, error) { return startCluster(home, lock, eagerFailover) })
}

// StartSentinels starts a Redis master, its replica and a sentinel for this
// test alone.
func (g Guard) StartSentinels(tb testing.TB) *RedisSentinels {
	tb.Helper()
	lock := g.lock(tb)
	return private(tb, func(home *home) (*RedisSentinels, error) { return startSentinels(home, lock) })
}

// lock is a Guard with its files and passwords. The zero value is open.
type lock struct {
	Guard
	dir      string
	password string      // of every user, "" without users
	tls      *tls.Config // of the servers' clients, nil without TLS
}

// warden is the user as which this package enters a server that has users.
const warden = "ephemeral"

func (g Guard) lock(tb testing.TB) lock {
	tb.Helper()
	if g == (Guard{}) {
		return lock{}
	}
	l := lock{Guard: g, dir: tb.TempDir()}
	var err error
	if g.TLS {
		l.tls, err = makeCertificates(l.dir)
	}
	if err == nil && g.Users != "" {
		l.password = rand.Text()
		err = os.WriteFile(l.file("users.conf"), []byte(l.users()), 0o600)
	}
	if err != nil {
		tb.Fatalf("ephemeral: guard: %v", err)
	}
	return l
}

func (l lock) file(name string) string { return filepath.Join(l.dir, name) }

// users is Guard.Users with passwords, and the warden.
func (l lock) users() string {
	var b strings.Builder
	for line := range strings.Lines(l.Users + "\n") {
		for _, name := range []string{"commerce", "support", "replica", "sentinel"} {
			if strings.HasPrefix(line, "user "+name+" ") {
				line = strings.TrimSpace(line) + " >" + l.password + "\n"
			}
		}
		b.WriteString(line)
	}
	fmt.Fprintf(&b, "user %s on >%s allkeys allchannels +@all\n", warden, l.password)
	return b.String()
}

// listen are the settings by which a server or a sentinel listens at port.
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
		"--tls-ca-cert-file", l.file(caFile), "--tls-auth-clients", clients,
		"--tls-cert-file", l.file(serverFile+".pem"), "--tls-key-file", l.file(serverFile+".key"))
}

// login are the settings by which a server knows users, and itself to its master.
func (l lock) login() []string {
	if l.password == "" {
		return nil
	}
	return []string{"--include", l.file("users.conf"), "--masteruser", "replica", "--masterauth", l.password}
}

// door is how this package enters a server with the guard's users.
func (l lock) door(port int) door {
	d := door{addr: address(port), tls: l.tls}
	if l.password != "" {
		d.user, d.password = warden, l.password
	}
	return d
}

// url is the address for a test, of one or more hosts and with any parameters
// that it needs besides the guard's own.
func (l lock) url(hosts []string, query url.Values) string {
	u := url.URL{Scheme: "redis", Host: strings.Join(hosts, ",")}
	if l.password != "" {
		u.User = url.UserPassword("commerce", l.password)
	}
	if l.TLS {
		u.Scheme = "rediss"
		query.Set("ca_file", l.file(caFile))
	}
	if l.ClientCertificates {
		query.Set("cert_file", l.file(clientFile+".pem"))
		query.Set("key_file", l.file(clientFile+".key"))
	}
	u.RawQuery = query.Encode()
	return u.String()
}
