package inspect

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

func TestRedis_FindsNothingWrongWithAHealthyOne(t *testing.T) {
	t.Parallel()
	master, _ := startPair(t)
	got := check(t, "healthy", Config{RedisURL: master.URL, MinReplicas: 1, Durable: true}, wrong{})
	wantOK(t, got, "redis",
		"answers tls version eviction persistence replay disk memory role replicas merges min_replicas_to_write rights clock")
}

func TestRedis_FindsEachWrongSetting(t *testing.T) {
	t.Parallel()
	master, _ := startPair(t)
	admin := master.Admin()
	assert.NoError(t, admin.SetRange(t.Context(), "large", 20<<20, "x").Err()) // buffers of clients are small beside it
	for _, test := range []struct {
		fault map[string]string
		want  wrong
	}{
		{map[string]string{"maxmemory-policy": "volatile-lru"}, wrong{"redis_eviction": Serious}},
		{map[string]string{"maxmemory-policy": "allkeys-lru"}, wrong{"redis_eviction": Serious}},
		{map[string]string{"appendfsync": "everysec"}, wrong{"redis_persistence": Warning}},
		{map[string]string{"appendfsync": "no"}, wrong{"redis_persistence": Serious}},
		{map[string]string{"appendonly": "no"}, wrong{"redis_persistence": Serious}},
		{map[string]string{"appendonly": "no", "save": "3600 1"}, wrong{"redis_persistence": Serious}},
		{map[string]string{"min-replicas-to-write": "2"}, wrong{"redis_min_replicas_to_write": Serious}},
		{map[string]string{"maxmemory": "0"}, wrong{"redis_maxmemory": Warning}},
		{map[string]string{"maxmemory": "106% of what is used"}, wrong{"redis_memory": Warning}},
		{map[string]string{"maxmemory": "1mb"}, wrong{"redis_memory": Serious}},
		{map[string]string{"min-replicas-to-write": "1"}, wrong{}}, // it has one
	} {
		if strings.HasPrefix(test.fault["maxmemory"], "106%") {
			var used int64
			assert.Must(fmt.Sscan(admin.InfoMap(t.Context(), "memory").Val()["Memory"]["used_memory"], &used))(t)
			test.fault["maxmemory"] = fmt.Sprint(used * 106 / 100)
		}
		set(t, master, test.fault)
		check(t, fmt.Sprint(test.fault), Config{RedisURL: master.URL}, test.want)
		set(t, master, healthy)
	}
	check(t, "healthy again", Config{RedisURL: master.URL}, wrong{})
	check(t, "two replicas are required", Config{RedisURL: master.URL, MinReplicas: 2}, wrong{"redis_merges": Serious})
}

// A replica may become master, with its own settings.
func TestRedis_FindsWrongSettingsOfReplicas(t *testing.T) {
	t.Parallel()
	master, replica := startPair(t)
	set(t, replica, map[string]string{"maxmemory-policy": "allkeys-lru"})
	got := check(t, "replica", Config{RedisURL: master.URL}, wrong{"redis_eviction": Serious})
	assert.Equal(t, got[0].Server, replica.Admin().Options().Addr, "blames")
	check(t, "the URL names a replica", Config{RedisURL: replica.URL}, wrong{"redis_role": Serious, "redis_eviction": Serious})
}

func TestRedis_FindsADiskThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	server := startHealthy(t)
	admin := server.Admin()
	dir := admin.ConfigGet(t.Context(), "dir").Val()["dir"]
	blocked := filepath.Join(dir, "dump.rdb", "blocked") // a snapshot cannot replace a directory
	assert.NoError(t, os.MkdirAll(blocked, 0o755))
	save := func(status string) {
		ephemeral.Until(t, func() error {
			if err := admin.BgSave(t.Context()).Err(); err != nil && !strings.Contains(err.Error(), "already in progress") {
				return err // it still writes the append-only file
			}
			info := admin.Info(t.Context(), "persistence").Val()
			if !strings.Contains(info, "rdb_bgsave_in_progress:0") || !strings.Contains(info, "rdb_last_bgsave_status:"+status) {
				return fmt.Errorf("the snapshot is not %s yet: %s", status, info)
			}
			return nil
		})
	}
	save("err")
	want := wrong{"redis_disk": Serious, "redis_replicas": Warning}
	check(t, "blocked", Config{RedisURL: server.URL}, want)
	set(t, server, map[string]string{"save": "3600 1"}) // now even PING is an error
	check(t, "blocked, with snapshots", Config{RedisURL: server.URL}, want)
	assert.NoError(t, os.RemoveAll(filepath.Dir(blocked)))
	save("ok")
	check(t, "free again", Config{RedisURL: server.URL}, wrong{"redis_replicas": Warning})
}

// Redis loads its file as the user default, and drops what this user may not run.
func TestRedis_FindsAnAppendOnlyFileThatARestartWouldNotLoad(t *testing.T) {
	t.Parallel()
	users := assert.Must(os.ReadFile("../redis/users.conf"))(t)
	for _, test := range []struct {
		rights string
		file   string
		want   wrong
	}{
		{"off resetpass allkeys allchannels +@all", "yes", wrong{}}, // users.conf
		{"reset", "yes", wrong{"redis_replay": Serious}},
		{"reset", "no", wrong{"redis_persistence": Serious}},
		{"off resetkeys ~cart:* +@all", "yes", wrong{"redis_replay": Serious}},
		{"off allkeys +@all -hdel", "yes", wrong{"redis_replay": Serious}},
		{"off allkeys +@all -@dangerous", "yes", wrong{}},
	} {
		server := startHealthy(t)
		set(t, server, map[string]string{"appendonly": test.file})
		url := ephemeral.AsUser(t, server.URL, string(users), "check")
		assert.NoError(t, server.Admin().ACLSetUser(t.Context(), "default", strings.Fields(test.rights)...).Err())
		test.want["redis_replicas"] = Warning
		check(t, test.rights+" "+test.file, Config{RedisURL: url}, test.want)
	}
}

func TestRedis_FindsMissingReplicas(t *testing.T) {
	t.Parallel()
	url := startHealthy(t).URL
	check(t, "none", Config{RedisURL: url}, wrong{"redis_replicas": Warning})
	check(t, "durable", Config{RedisURL: url, Durable: true}, wrong{"redis_replicas": Serious})
	check(t, "one is required", Config{RedisURL: url, MinReplicas: 1}, wrong{"redis_replicas": Warning, "redis_merges": Serious})
}

// The users of this single server may not read what a managed service hides.
func TestRedis_SaysWhatIsHidden(t *testing.T) {
	t.Parallel()
	server := startHealthy(t)
	for rights, want := range map[string]wrong{
		"+@all ~* -config": { // INFO shows the rest
			"redis_persistence": Unknown, "redis_min_replicas_to_write": Unknown, "redis_replicas": Warning,
		},
		"+@all ~* -config -info -role -time -acl": {
			"redis_version": Unknown, "redis_eviction": Unknown, "redis_persistence": Unknown, "redis_replay": Unknown,
			"redis_disk": Unknown, "redis_maxmemory": Unknown, "redis_memory": Unknown, "redis_role": Unknown,
			"redis_replicas": Unknown, "redis_merges": Unknown, "redis_min_replicas_to_write": Unknown, "redis_clock": Unknown,
			"redis_rights": Serious, // the scripts need TIME
		},
		"+@all ~* -evalsha": {"redis_rights": Serious, "redis_replicas": Warning},
		"+@all ~* -wait":    {"redis_rights": Warning, "redis_replicas": Warning},
		"+@all ~cart:*":     {"redis_rights": Warning, "redis_replicas": Warning},

		"+@all ~* resetchannels &cart:*": {"redis_replicas": Warning},
		"+@all ~* resetchannels":         {"redis_rights": Warning, "redis_replicas": Warning},
		"+@all ~* -spublish":             {"redis_rights": Warning, "redis_replicas": Warning},
		"+@all ~* -ssubscribe":           {"redis_rights": Warning, "redis_replicas": Warning},

		"+@all": {"redis_replicas": Warning}, // not the service's user: it may read no carts
		"-@all": {"redis_answers": Serious},
	} {
		url := ephemeral.AsUser(t, server.URL, "user limited on &* "+rights, "limited")
		check(t, rights, Config{RedisURL: url}, want)
		if rights == "+@all" {
			check(t, "serving with "+rights, Config{RedisURL: url, Serving: true}, wrong{"redis_rights": Serious, "redis_replicas": Warning})
		}
	}
}

func TestRedis_FindsThatACommandDoesNotExist(t *testing.T) {
	t.Parallel()
	server := startHealthy(t, "--rename-command", "wait", "")
	check(t, "no WAIT", Config{RedisURL: server.URL}, wrong{"redis_rights": Warning, "redis_replicas": Warning})
}

func TestRedis_RefusesAWrongPassword(t *testing.T) {
	t.Parallel()
	url := strings.Replace(startHealthy(t).URL, "redis://", "redis://nobody:hunter2@", 1)
	got := check(t, "wrong password", Config{RedisURL: url}, wrong{"redis_answers": Serious})
	said := fmt.Sprint(got)
	assert.That(t, !strings.Contains(said, "hunter2") && strings.Contains(said, "WRONGPASS"), "%v", said)
}

func TestServers_AreDeadOrFrozen(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	for says, harm := range map[string]func(*ephemeral.Server){
		"connection refused": (*ephemeral.Server).Kill, "no answer within 2s": (*ephemeral.Server).Freeze,
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			redis, postgres := ephemeral.StartRedis(t), ephemeral.StartPostgres(t)
			harm(redis)
			harm(postgres)
			got := check(t, says, Config{RedisURL: redis.URL, DatabaseURL: postgres.URL},
				wrong{"redis_answers": Serious, "postgres_answers": Serious})
			for _, f := range got[:2] {
				assert.That(t, strings.Contains(f.Message, says), "%+v does not say %q", f, says)
			}
		})
	}
}

func TestServers_EndWithTheirContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := assert.Must(Servers(ctx, Config{RedisURL: ephemeral.Redis(t), DatabaseURL: ephemeral.Postgres(t)}))(t)
	wantWrong(t, "ended", got, wrong{"redis_answers": Serious, "postgres_answers": Serious})
}

func TestServers_RefuseWrongURLs(t *testing.T) {
	t.Parallel()
	for _, c := range []Config{{RedisURL: "nonsense"}, {DatabaseURL: "nonsense"}} {
		got, err := Servers(t.Context(), c)
		assert.That(t, err != nil, "%+v: %+v", c, got)
	}
}
