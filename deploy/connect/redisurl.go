package connect

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// redisKind says what answers at a redisTarget's addresses.
type redisKind int

const (
	single redisKind = iota
	cluster
	sentinels
)

// redisTarget is what a Redis URL says.
type redisTarget struct {
	kind                               redisKind
	addrs                              []string // host:port
	username, password                 string
	db                                 int
	master                             string
	sentinelUsername, sentinelPassword string
	files                              tlsFiles
	tls                                *tls.Config // nil without TLS
}

// parseRedisURL reads
//
//	redis[s]://[[user]:password@]host[:port][,host[:port]…][/db][?parameter=…]
//
// Several hosts, or cluster=true, are a cluster's seeds. master=NAME wins over
// both: the hosts are sentinels, for which sentinel_username and
// sentinel_password stand. db=N is the same as /N. The port is 6379, of a
// sentinel 26379, unless given. An unknown parameter is an error, since a
// misspelt one would quietly mean another server.
//
// rediss is TLS, with sentinels and all nodes of a cluster alike. A server must
// show a certificate for the name it is dialled by: one of the URL's hosts, or what
// the cluster or the sentinels announce, which is an address unless
// cluster-preferred-endpoint-type or sentinel announce-hostnames says otherwise.
// It is verified by the system's authorities, or by those of ca_file=PATH in their
// place; nothing turns that off. cert_file=PATH and key_file=PATH are for servers
// that ask for a client's certificate. All three files are PEM.
//
// Errors quote nothing: in a URL with a reserved character left unencoded,
// any part may be a piece of the password.
func parseRedisURL(raw string) (redisTarget, error) {
	u, hosts, err := splitRedisURL(raw)
	if err != nil {
		return redisTarget{}, fmt.Errorf("redis url: %w", err)
	}
	t := redisTarget{username: u.User.Username()}
	t.password, _ = u.User.Password()
	if err := t.readQuery(u, len(hosts)); err != nil {
		return redisTarget{}, fmt.Errorf("redis url: %w", err)
	}
	if u.Scheme == "rediss" {
		if t.tls, err = t.files.config(); err != nil {
			return redisTarget{}, fmt.Errorf("redis url: %w", err)
		}
	} else if t.files != (tlsFiles{}) {
		return redisTarget{}, errors.New("redis url: ca_file, cert_file and key_file need rediss://")
	}
	for i, host := range hosts {
		addr, err := t.addr(host)
		if err != nil {
			return redisTarget{}, fmt.Errorf("redis url: host %d of %d: %w", i+1, len(hosts), err)
		}
		t.addrs = append(t.addrs, addr)
	}
	return t, nil
}

// splitRedisURL takes the list of hosts out of raw, of which net/url would
// refuse all but one, and leaves the parsing of everything else to it.
func splitRedisURL(raw string) (u *url.URL, hosts []string, err error) {
	scheme, rest, _ := strings.Cut(raw, "://")
	if scheme != "redis" && scheme != "rediss" {
		return nil, nil, errors.New("must start with redis:// or rediss://")
	}
	end := len(rest)
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		end = i
	}
	user := strings.LastIndexByte(rest[:end], '@') + 1
	u, err = url.Parse(scheme + "://" + rest[:user] + "hosts" + rest[end:])
	if err != nil || u.Fragment != "" {
		return nil, nil, errors.New("not a URL (reserved characters of user and password must be percent-encoded)")
	}
	return u, strings.Split(rest[user:end], ","), nil
}

// readQuery fills in what stands behind the hosts, and with it the kind.
func (t *redisTarget) readQuery(u *url.URL, hosts int) (err error) {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errors.New("the parameters cannot be read")
	}
	db := strings.TrimPrefix(u.Path, "/")
	if hosts > 1 {
		t.kind = cluster
	}
	for name, values := range query {
		if len(values) > 1 {
			return errors.New("a parameter is given twice")
		}
		switch value := values[0]; name {
		case "db":
			db = value
		case "master":
			t.master = value
		case "sentinel_username":
			t.sentinelUsername = value
		case "sentinel_password":
			t.sentinelPassword = value
		case "ca_file":
			t.files.ca = value
		case "cert_file":
			t.files.cert = value
		case "key_file":
			t.files.key = value
		case "cluster":
			on, err := strconv.ParseBool(value)
			if err != nil {
				return errors.New("cluster must be true or false")
			}
			if on {
				t.kind = cluster
			}
		default:
			return errors.New("unknown parameter (known: ca_file, cert_file, cluster, db, key_file, master, " +
				"sentinel_username, sentinel_password)")
		}
	}
	if db != "" {
		if t.db, err = strconv.Atoi(db); err != nil || t.db < 0 {
			return errors.New("the database must be a number")
		}
	}
	return t.settleKind()
}

// settleKind lets master win and refuses what would be ignored in silence.
func (t *redisTarget) settleKind() error {
	if t.master != "" {
		t.kind = sentinels
		return nil
	}
	if t.sentinelUsername != "" || t.sentinelPassword != "" {
		return errors.New("sentinel_username and sentinel_password need master")
	}
	if t.kind == cluster && t.db != 0 {
		return errors.New("a cluster has database 0 only")
	}
	return nil
}

// addr completes one host, which may be an IPv6 address in brackets.
func (t *redisTarget) addr(host string) (string, error) {
	u, err := url.Parse("//" + host)
	if err != nil || u.User != nil || u.Path != "" || u.Hostname() == "" {
		return "", errors.New("must be a name or an address, with or without a port")
	}
	port := u.Port()
	switch {
	case port == "" && t.kind == sentinels:
		port = "26379"
	case port == "":
		port = "6379"
	default:
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "", errors.New("the port must be from 1 to 65535")
		}
	}
	return net.JoinHostPort(u.Hostname(), port), nil
}
