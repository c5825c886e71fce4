package inspect

import (
	"errors"
	"strings"
	"testing"
	"time"

	"commerce/deploy/assert"
)

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
