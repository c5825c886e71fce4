package observe_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/deploy/ephemeral"
	"commerce/deploy/inspect"
	"commerce/deploy/observe"
)

// healthy are the settings of a Redis without problems.
var healthy = map[string]string{
	"maxmemory": "100mb", "maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "always", "save": "",
	"min-replicas-to-write": "0",
}

func set(t *testing.T, admin *redis.Client, settings map[string]string) {
	t.Helper()
	for name, value := range settings {
		if err := admin.ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatalf("config set %s %s: %v", name, value, err)
		}
	}
}

// follow makes a server the replica of another server.
func follow(t *testing.T, admin, master *redis.Client) {
	t.Helper()
	host, port, err := net.SplitHostPort(master.Options().Addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.ReplicaOf(t.Context(), host, port).Err(); err != nil {
		t.Fatal(err)
	}
}

// waitForReplicas waits until a master has this many online replicas.
func waitForReplicas(t *testing.T, master *redis.Client, n int) {
	t.Helper()
	eventually(t, func() error {
		info, err := master.Info(t.Context(), "replication").Result()
		if err == nil && (strings.Count(info, "state=online") != n || !strings.Contains(info, fmt.Sprintf("connected_slaves:%d", n))) {
			err = fmt.Errorf("want %d replicas: %s", n, info)
		}
		return err
	})
}

func eventually(t *testing.T, attempt func() error) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		err := attempt()
		if err == nil {
			return
		}
		if time.Since(began) > 20*time.Second {
			t.Fatal(err)
		}
	}
}

// startPair starts a healthy master and its replica.
func startPair(t *testing.T) (master, replica *ephemeral.Server) {
	t.Helper()
	master, replica = ephemeral.StartRedis(t), ephemeral.StartRedis(t)
	set(t, master.Admin(), healthy)
	set(t, replica.Admin(), healthy)
	follow(t, replica.Admin(), master.Admin())
	waitForReplicas(t, master.Admin(), 1)
	return master, replica
}

func TestServers_FindNothingWrongWithAHealthyRedis(t *testing.T) {
	t.Parallel()
	master, _ := startPair(t)
	got := findings(t, observe.Config{RedisURL: master.URL}, inspect.Expect{MinReplicas: 1, Durable: true})
	wantWrong(t, "healthy", got, wrong{})
	wantOK(t, got, "redis_answers", "redis_version", "redis_eviction", "redis_persistence", "redis_replay", "redis_disk", "redis_memory",
		"redis_role", "redis_replicas", "redis_merges", "redis_min_replicas_to_write", "redis_rights", "redis_clock")
}

func TestServers_FindEachWrongSettingOfRedis(t *testing.T) {
	t.Parallel()
	master, _ := startPair(t)
	admin := master.Admin()
	if err := admin.SetRange(t.Context(), "large", 20<<20, "x").Err(); err != nil { // buffers of clients are small beside it
		t.Fatal(err)
	}
	used := func() int64 {
		memory := admin.InfoMap(t.Context(), "memory").Val()["Memory"]
		var n int64
		if _, err := fmt.Sscan(memory["used_memory"], &n); err != nil {
			t.Fatalf("%v: %v", memory, err)
		}
		return n
	}
	for _, test := range []struct {
		fault map[string]string
		want  wrong
	}{
		{map[string]string{"maxmemory-policy": "volatile-lru"}, wrong{"redis_eviction": inspect.Serious}},
		{map[string]string{"maxmemory-policy": "allkeys-lru"}, wrong{"redis_eviction": inspect.Serious}},
		{map[string]string{"appendfsync": "everysec"}, wrong{"redis_persistence": inspect.Warning}},
		{map[string]string{"appendfsync": "no"}, wrong{"redis_persistence": inspect.Serious}},
		{map[string]string{"appendonly": "no"}, wrong{"redis_persistence": inspect.Serious}},
		{map[string]string{"appendonly": "no", "save": "3600 1"}, wrong{"redis_persistence": inspect.Serious}},
		{map[string]string{"min-replicas-to-write": "2"}, wrong{"redis_min_replicas_to_write": inspect.Serious}},
		{map[string]string{"maxmemory": "0"}, wrong{"redis_memory": inspect.Warning}},
		{map[string]string{"maxmemory": fmt.Sprint(used() * 106 / 100)}, wrong{"redis_memory": inspect.Warning}},
		{map[string]string{"maxmemory": "1mb"}, wrong{"redis_memory": inspect.Serious}},
		{map[string]string{"min-replicas-to-write": "1"}, wrong{}}, // it has one
	} {
		set(t, admin, test.fault)
		wantWrong(t, fmt.Sprint(test.fault), findings(t, observe.Config{RedisURL: master.URL}, inspect.Expect{}), test.want)
		set(t, admin, healthy)
	}
	wantWrong(t, "healthy again", findings(t, observe.Config{RedisURL: master.URL}, inspect.Expect{}), wrong{})
}

// A replica may become master, with its own settings.
func TestServers_FindWrongSettingsOfReplicas(t *testing.T) {
	t.Parallel()
	master, replica := startPair(t)
	set(t, replica.Admin(), map[string]string{"maxmemory-policy": "allkeys-lru"})
	got := findings(t, observe.Config{RedisURL: master.URL}, inspect.Expect{})
	wantWrong(t, "replica", got, wrong{"redis_eviction": inspect.Serious})
	if at := replica.Admin().Options().Addr; got[0].Server != at {
		t.Errorf("blames %s, want %s", got[0].Server, at)
	}
}

func TestServers_FindADiskThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	server := ephemeral.StartRedis(t)
	admin := server.Admin()
	set(t, admin, healthy)
	dir := admin.ConfigGet(t.Context(), "dir").Val()["dir"]
	blocked := filepath.Join(dir, "dump.rdb", "blocked") // a snapshot cannot replace a directory
	if err := os.MkdirAll(blocked, 0o755); err != nil {
		t.Fatal(err)
	}
	save := func(status string) {
		eventually(t, func() error {
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
	wantWrong(t, "blocked", findings(t, observe.Config{RedisURL: server.URL}, inspect.Expect{}),
		wrong{"redis_disk": inspect.Serious, "redis_replicas": inspect.Warning})
	set(t, admin, map[string]string{"save": "3600 1"}) // now even PING is an error
	wantWrong(t, "blocked, with snapshots", findings(t, observe.Config{RedisURL: server.URL}, inspect.Expect{}),
		wrong{"redis_disk": inspect.Serious, "redis_replicas": inspect.Warning})
	if err := os.RemoveAll(filepath.Dir(blocked)); err != nil {
		t.Fatal(err)
	}
	save("ok")
	wantOK(t, findings(t, observe.Config{RedisURL: server.URL}, inspect.Expect{}), "redis_disk")
}

// Redis loads its append-only file as the user default, and drops transactions that this user
// may not run.
func TestServers_FindAnAppendOnlyFileThatARestartWouldNotLoad(t *testing.T) {
	t.Parallel()
	users, err := os.ReadFile("../redis/users.conf")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		rights string
		file   string
		want   wrong
	}{
		{"off resetpass allkeys allchannels +@all", "yes", wrong{}}, // users.conf
		{"reset", "yes", wrong{"redis_replay": inspect.Serious}},
		{"reset", "no", wrong{"redis_persistence": inspect.Serious}},
		{"off resetkeys ~cart:* +@all", "yes", wrong{"redis_replay": inspect.Serious}},
		{"off allkeys +@all -hdel", "yes", wrong{"redis_replay": inspect.Serious}},
		{"off allkeys +@all -@dangerous", "yes", wrong{}},
	} {
		server := ephemeral.StartRedis(t)
		set(t, server.Admin(), healthy)
		set(t, server.Admin(), map[string]string{"appendonly": test.file})
		url := ephemeral.AsUser(t, server.URL, string(users), "check")
		if err := server.Admin().ACLSetUser(t.Context(), "default", strings.Fields(test.rights)...).Err(); err != nil {
			t.Fatal(err)
		}
		test.want["redis_replicas"] = inspect.Warning
		wantWrong(t, test.rights+" "+test.file, findings(t, observe.Config{RedisURL: url}, inspect.Expect{}), test.want)
	}
}

func TestServers_FindMissingReplicas(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t)
	set(t, server.Admin(), healthy)
	for _, test := range []struct {
		expect inspect.Expect
		want   wrong
	}{
		{inspect.Expect{}, wrong{"redis_replicas": inspect.Warning}},
		{inspect.Expect{Durable: true}, wrong{"redis_replicas": inspect.Serious}},
		{inspect.Expect{MinReplicas: 1}, wrong{"redis_replicas": inspect.Warning, "redis_merges": inspect.Serious}},
	} {
		wantWrong(t, fmt.Sprint(test.expect), findings(t, observe.Config{RedisURL: server.URL}, test.expect), test.want)
	}
}

func TestServers_FindAURLThatNamesAReplica(t *testing.T) {
	t.Parallel()
	_, replica := startPair(t)
	got := findings(t, observe.Config{RedisURL: replica.URL}, inspect.Expect{})
	wantWrong(t, "replica", got, wrong{"redis_role": inspect.Serious})
}

func TestServers_FindAURLThatNamesOneNodeOfACluster(t *testing.T) {
	t.Parallel()
	one, _, _ := strings.Cut(ephemeral.Cluster(t), ",")
	got := findings(t, observe.Config{RedisURL: one}, inspect.Expect{})
	if got[0].Code == "redis_answers" {
		t.Fatal(got[0])
	}
	for _, f := range got {
		if f.Code == "redis_role" && f.Level != inspect.Serious {
			t.Errorf("%+v, want serious", f)
		}
	}
}

func TestServers_AreDeadOrFrozen(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	for name, test := range map[string]struct {
		harm func(*ephemeral.Server)
		says string
	}{
		"dead":   {(*ephemeral.Server).Kill, "connection refused"},
		"frozen": {(*ephemeral.Server).Freeze, "no answer within 2s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redisServer, postgres := ephemeral.StartRedis(t), ephemeral.StartPostgres(t)
			test.harm(redisServer)
			test.harm(postgres)
			got := findings(t, observe.Config{RedisURL: redisServer.URL, DatabaseURL: postgres.URL}, inspect.Expect{})
			wantWrong(t, name, got, wrong{"redis_answers": inspect.Serious, "postgres_answers": inspect.Serious})
			for _, f := range got[:2] {
				if !strings.Contains(f.Message, test.says) {
					t.Errorf("%+v does not say %q", f, test.says)
				}
			}
		})
	}
}

// The users of this single server may not read what a managed service hides.
func TestServers_SayWhatIsHidden(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t)
	set(t, server.Admin(), healthy)
	for rights, want := range map[string]wrong{
		"+@all ~* -config": { // INFO shows the rest
			"redis_persistence": inspect.Unknown, "redis_min_replicas_to_write": inspect.Unknown, "redis_replicas": inspect.Warning,
		},
		"+@all ~* -config -info -role -time": {
			"redis_version": inspect.Unknown, "redis_eviction": inspect.Unknown, "redis_persistence": inspect.Unknown,
			"redis_disk": inspect.Unknown, "redis_memory": inspect.Unknown, "redis_role": inspect.Unknown,
			"redis_replicas": inspect.Unknown, "redis_merges": inspect.Unknown, "redis_min_replicas_to_write": inspect.Unknown, "redis_clock": inspect.Unknown,
			"redis_rights": inspect.Serious, // the scripts need TIME
		},
		"+@all ~* -evalsha": {"redis_rights": inspect.Serious, "redis_replicas": inspect.Warning},
		"+@all ~* -wait":    {"redis_rights": inspect.Warning, "redis_replicas": inspect.Warning},
		"+@all ~cart:*":     {"redis_rights": inspect.Warning, "redis_replicas": inspect.Warning},
		"+@all":             {"redis_replicas": inspect.Warning}, // not the service's user: it may read no carts
		"-@all":             {"redis_answers": inspect.Serious},
	} {
		url := ephemeral.AsUser(t, server.URL, "user limited on "+rights, "limited")
		wantWrong(t, rights, findings(t, observe.Config{RedisURL: url}, inspect.Expect{}), want)
	}
}

func TestServers_RefuseAWrongPassword(t *testing.T) {
	t.Parallel()
	url := strings.Replace(ephemeral.StartRedis(t).URL, "redis://", "redis://nobody:hunter2@", 1)
	got := findings(t, observe.Config{RedisURL: url}, inspect.Expect{})
	wantWrong(t, "wrong password", got, wrong{"redis_answers": inspect.Serious})
	if said := fmt.Sprint(got); strings.Contains(said, "hunter2") || !strings.Contains(said, "WRONGPASS") {
		t.Error(said)
	}
}

func TestServers_EndWithTheirContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	seen, err := observe.Servers(ctx, observe.Config{RedisURL: ephemeral.Redis(t), DatabaseURL: ephemeral.Postgres(t)})
	if err != nil || seen.Redis[0].Failure == "" || seen.Postgres.Failure == "" {
		t.Errorf("%+v, %v, want servers that did not answer", seen, err)
	}
}

// The server at an address may not be a database.
func TestServers_ShowNoUserOfWhatIsNotPostgres(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepting := make(chan struct{})
	go func() {
		defer close(accepting)
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			fmt.Fprint(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
			conn.Close()
		}
	}()
	defer func() { <-accepting }()
	defer listener.Close()
	got := findings(t, observe.Config{DatabaseURL: "postgres://someone:hunter2@" + listener.Addr().String() + "/shop"}, inspect.Expect{})
	wantWrong(t, "a web server", got, wrong{"postgres_answers": inspect.Serious})
	if said := got[0].Message; strings.Contains(said, "someone") || strings.Contains(said, "hunter2") {
		t.Error(said)
	}
}
