package connect

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

type redisKind int

const (
	single redisKind = iota
	cluster
	sentinels
)

// redisTarget is a parsed Redis URL. Its options are those that the URL sets.
type redisTarget struct {
	kind redisKind
	redis.UniversalOptions
	files tlsFiles
}

// parseRedisURL reads
//
//	redis[s]://[[user]:password@]host[:port][,host[:port]…][/db][?parameter=…]
//
// Several hosts, or cluster=true, are the seeds of a cluster. master=NAME takes precedence over
// both: the hosts are sentinels, with sentinel_username and sentinel_password as their credentials.
// db=N is the same as /N. The default port is 6379, for sentinels 26379. An unknown parameter is an
// error, because ignoring a misspelled one could connect to the wrong server.
//
// rediss means TLS, also to sentinels and to all nodes of a cluster. A server's certificate must be
// valid for the dialed name: a host of the URL, or what the cluster or the sentinels announce. That
// is an IP address, unless cluster-preferred-endpoint-type or sentinel announce-hostnames is set.
// Certificates are verified with the system's authorities or, if set, with those of ca_file=PATH;
// verification cannot be turned off. cert_file=PATH and key_file=PATH are the client certificate.
// All three files are in PEM format.
//
// Errors do not quote the URL, any part of which may belong to a password that is not encoded.
func parseRedisURL(raw string) (redisTarget, error) {
	u, hosts, err := splitRedisURL(raw)
	if err != nil {
		return redisTarget{}, fmt.Errorf("redis url: %w", err)
	}
	t := redisTarget{UniversalOptions: redis.UniversalOptions{Username: u.User.Username()}}
	t.Password, _ = u.User.Password()
	if err := t.readQuery(u, len(hosts)); err != nil {
		return redisTarget{}, fmt.Errorf("redis url: %w", err)
	}
	if u.Scheme == "rediss" {
		if t.TLSConfig, err = t.files.config(); err != nil {
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
		t.Addrs = append(t.Addrs, addr)
	}
	return t, nil
}

// splitRedisURL cuts the hosts out of raw, because net/url accepts only one.
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

func (t *redisTarget) readQuery(u *url.URL, hosts int) (err error) {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errors.New("the parameters cannot be read")
	}
	db, clustered := strings.TrimPrefix(u.Path, "/"), "false"
	texts := map[string]*string{
		"db": &db, "cluster": &clustered, "master": &t.MasterName,
		"sentinel_username": &t.SentinelUsername, "sentinel_password": &t.SentinelPassword,
		"ca_file": &t.files.ca, "cert_file": &t.files.cert, "key_file": &t.files.key,
	}
	for name, values := range query {
		text, known := texts[name]
		switch {
		case !known:
			return fmt.Errorf("unknown parameter (known: %s)", strings.Join(slices.Sorted(maps.Keys(texts)), ", "))
		case len(values) > 1:
			return errors.New("a parameter is given twice")
		}
		*text = values[0]
	}
	manyNodes, err := strconv.ParseBool(clustered)
	if err != nil {
		return errors.New("cluster must be true or false")
	}
	manyNodes = manyNodes || hosts > 1
	if db != "" {
		if t.DB, err = strconv.Atoi(db); err != nil || t.DB < 0 {
			return errors.New("the database must be a number")
		}
	}
	switch {
	case t.MasterName != "":
		t.kind = sentinels
	case t.SentinelUsername != "" || t.SentinelPassword != "": // would otherwise be ignored
		return errors.New("sentinel_username and sentinel_password need master")
	case manyNodes && t.DB != 0:
		return errors.New("a cluster has database 0 only")
	case manyNodes:
		t.kind = cluster
	}
	return nil
}

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
