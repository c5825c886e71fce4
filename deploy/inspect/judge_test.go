package inspect

import (
	"errors"
	"strings"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/connect"
)

// All real servers are on this machine.
func TestTLS_IsNeededBeyondThisMachine(t *testing.T) {
	t.Parallel()
	ca := "&sslrootcert=system"
	for url, want := range map[string]Level{
		"redis://localhost": OK, "redis://127.0.0.1:1": OK, "redis://[::1]": OK, "rediss://10.0.0.1": OK,
		"redis://redis": Warning, "redis://10.0.0.1": Warning, "redis://[2001:db8::1]:1": Warning,
		"postgres:///shop?host=/tmp": OK, "postgres://localhost/shop?sslmode=disable": OK,
		"postgres://a,b/shop?sslmode=require": OK, "postgres://a/shop?sslmode=verify-full" + ca: OK,
		"postgres://127.0.0.1,b/shop?sslmode=disable": Warning, "postgres://a/shop": Warning, "postgres://a/shop?sslmode=prefer": Warning,
		"postgres://a/shop?sslmode=allow": Warning, "postgres://a/shop?sslmode=disable": Warning,
	} {
		var r report
		if strings.HasPrefix(url, "redis") {
			servers := assert.Must(connect.NewRedisServers(url))(t)
			r.judgeTLS("redis_tls", redisTLS, servers.TLS() || local(servers.Addrs()[0]))
		} else {
			r.findings = assert.Must(Servers(t.Context(), Config{ReplicaURL: url}))(t)
		}
		assert.Equal(t, r.findings[0].Level, want, "%s: %+v", url, r.findings)
	}
}

// No real server of the tests can be made to show these values.
func TestJudge_FindsWhatRealServersCannotShow(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		info  string // fields of INFO, as a server without CONFIG shows them
		judge func(*redisServer)
		want  Level
		says  string
	}{
		{"redis_version=6.2.14", (*redisServer).judgeVersion, Serious, "This is Redis 6.2.14."},
		{"redis_version=6.3.4", (*redisServer).judgeVersion, Serious, "6.3.4"}, // KeyDB
		{"redis_version=7.0.0", (*redisServer).judgeVersion, OK, ""},
		{"redis_version=7.2.4", (*redisServer).judgeVersion, OK, ""},
		{"redis_version=8.2", (*redisServer).judgeVersion, OK, ""},
		{"redis_version=10.0.1", (*redisServer).judgeVersion, OK, ""},
		{"rdb_last_bgsave_status=ok aof_last_write_status=err", (*redisServer).judgeDisk, Serious, "append-only file"},
		{"rdb_last_bgsave_status=ok aof_last_bgrewrite_status=err", (*redisServer).judgeDisk, Warning, "rewrite"},
		{"rdb_last_bgsave_status=ok aof_last_bgrewrite_status=ok", (*redisServer).judgeDisk, OK, ""},
		{"aof_enabled=0", (*redisServer).judgePersistence, Serious, "last snapshot, if there is one"}, // a managed service
		{"", (*redisServer).judgeCoverage, Unknown, "one shard"},
	} {
		s := &redisServer{info: map[string]string{}}
		for field := range strings.FieldsSeq(test.info) {
			name, value, _ := strings.Cut(field, "=")
			s.info[name] = value
		}
		test.judge(s)
		f := s.findings[0]
		assert.That(t, f.Level == test.want && strings.Contains(f.Message, test.says), "%s: %+v", test.info, f)
	}
	for _, test := range []struct {
		judge func(*postgresServer)
		want  Level
	}{
		{func(s *postgresServer) { s.judgeVersion(140009, nil) }, Serious},
		{func(s *postgresServer) { s.judgeVersion(150000, nil) }, OK},
		{func(s *postgresServer) { s.judgeSchema(errors.New("gone")) }, Serious},
		{func(s *postgresServer) { s.judgeWriting(3*time.Minute, false) }, Warning},
		{func(s *postgresServer) { s.judgeWriting(3*time.Second, false) }, Unknown},
		{func(s *postgresServer) { s.judgeWriting(3*time.Second, true) }, OK},
	} {
		var s postgresServer
		test.judge(&s)
		f := s.findings[0]
		assert.That(t, f.Level == test.want, "%+v, want %s", f, test.want)
	}
}
