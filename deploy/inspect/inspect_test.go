package inspect_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"commerce/deploy/inspect"
)

// master is a master with which nothing is wrong.
func master(edits ...func(*inspect.Redis)) inspect.Redis {
	r := inspect.Redis{
		Server: "redis:6379", Role: "master", Connected: new(1), Listed: new(1), Clock: &inspect.Clock{}, ReadsCarts: true, Replays: new(true),
		Info: map[string]string{
			"redis_version": "7.0.15", "rdb_last_bgsave_status": "ok", "aof_last_write_status": "ok", "aof_last_bgrewrite_status": "ok",
			"used_memory": "50", "maxmemory": "100", "mem_not_counted_for_evict": "0",
		},
		Config: map[string]string{
			"maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "always", "save": "", "min-replicas-to-write": "0",
			"cluster-require-full-coverage": "no",
		},
	}
	for _, edit := range edits {
		edit(&r)
	}
	return r
}

// primary is a Postgres with which nothing is wrong.
func primary(edits ...func(*inspect.Postgres)) inspect.Postgres {
	p := inspect.Postgres{
		Server: "postgres:5432", Version: new(150018), Standby: new(false), Unreadable: []string{}, ICU: new(true), Listening: new(true), Clock: &inspect.Clock{},
		Schema: inspect.Schema{State: inspect.SchemaCurrent}, Role: &inspect.Role{LastUsed: true}, Writing: &inspect.Writing{SeesAll: true},
		Settings: map[string]inspect.Setting{
			"fsync": {Value: "on"}, "full_page_writes": {Value: "on"}, "synchronous_commit": {Value: "on"},
			"idle_in_transaction_session_timeout": {Value: "60000"},
		},
	}
	for _, edit := range edits {
		edit(&p)
	}
	return p
}

func judge(r inspect.Redis, p inspect.Postgres) []inspect.Finding {
	return inspect.Judge(inspect.Observation{Redis: []inspect.Redis{r}, Postgres: &p}, inspect.Expect{})
}

// wantOne checks that exactly one finding is not OK.
func wantOne(t *testing.T, what string, got []inspect.Finding, code string, level inspect.Level) {
	t.Helper()
	bad := slices.DeleteFunc(slices.Clone(got), func(f inspect.Finding) bool { return f.Level == inspect.OK })
	if len(bad) != 1 || bad[0].Code != code || bad[0].Level != level || bad[0].Setting == "" || bad[0].Message == "" {
		t.Errorf("%s: %+v, want one %s %s", what, bad, level, code)
	}
}

func TestJudge_FindsThatTheServicesUserCannotReadCarts(t *testing.T) {
	t.Parallel()
	other := master(func(r *inspect.Redis) { r.ReadsCarts = false })
	seen := inspect.Observation{Redis: []inspect.Redis{other}}
	wantOne(t, "the service's user", inspect.Judge(seen, inspect.Expect{Serving: true}), "redis_rights", inspect.Serious)
	for _, f := range inspect.Judge(seen, inspect.Expect{}) {
		if f.Level != inspect.OK {
			t.Errorf("another user: %+v", f)
		}
	}
}

func TestJudge_FindsNothingWrongWithHealthyServers(t *testing.T) {
	t.Parallel()
	for _, f := range judge(master(), primary()) {
		if f.Level != inspect.OK || f.Setting != "" || f.Message == "" || f.Server == "" {
			t.Errorf("%+v", f)
		}
	}
}

// The tests of package observe cannot make a real server show these values.
func TestJudge_FindsWhatRealServersCannotShow(t *testing.T) {
	t.Parallel()
	for what, version := range map[string]string{"6.2.14": "6.2.14", "KeyDB": "6.3.4"} {
		old := master(func(r *inspect.Redis) { r.Info["redis_version"] = version })
		wantOne(t, what, judge(old, primary()), "redis_version", inspect.Serious)
	}
	for _, version := range []string{"7.0.0", "7.2.4", "8.2", "10.0.1"} {
		fine := master(func(r *inspect.Redis) { r.Info["redis_version"] = version })
		if got := judge(fine, primary()); got[0].Level != inspect.OK {
			t.Errorf("%s: %+v", version, got[0])
		}
	}
	unwritten := master(func(r *inspect.Redis) { r.Info["aof_last_write_status"] = "err" })
	wantOne(t, "append-only file", judge(unwritten, primary()), "redis_disk", inspect.Serious)
	unrewritten := master(func(r *inspect.Redis) { r.Info["aof_last_bgrewrite_status"] = "err" })
	wantOne(t, "rewrite", judge(unrewritten, primary()), "redis_disk", inspect.Warning)
	hidden := master(func(r *inspect.Redis) {
		delete(r.Config, "appendonly")
		r.Info["aof_enabled"] = "0"
		delete(r.Config, "save")
	})
	got := judge(hidden, primary())
	wantOne(t, "managed, no file", got, "redis_persistence", inspect.Serious)
	if want := "last snapshot, if there is one"; !strings.Contains(got[0].Message, want) {
		t.Errorf("%q does not say %q", got[0].Message, want)
	}

	wantOne(t, "14", judge(master(), primary(func(p *inspect.Postgres) { p.Version = new(140009) })), "postgres_version", inspect.Serious)
	long := func(d time.Duration) inspect.Postgres {
		return primary(func(p *inspect.Postgres) { p.Writing = &inspect.Writing{For: d} })
	}
	wantOne(t, "3 minutes", judge(master(), long(3*time.Minute)), "postgres_long_transaction", inspect.Warning)
	wantOne(t, "3 seconds", judge(master(), long(3*time.Second)), "postgres_long_transaction", inspect.Unknown)
}

func TestJudge_CountsReplicas(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		connected *int
		listed    int
		expect    inspect.Expect
		code      string
		level     inspect.Level
	}{
		{new(1), 1, inspect.Expect{MinReplicas: 2}, "redis_merges", inspect.Serious},
		{new(1), 2, inspect.Expect{}, "redis_merges", inspect.Serious},
		{new(0), 0, inspect.Expect{}, "redis_replicas", inspect.Warning},
		{new(0), 0, inspect.Expect{Durable: true}, "redis_replicas", inspect.Serious},
	} {
		r := master(func(r *inspect.Redis) { r.Connected, r.Listed = test.connected, &test.listed })
		got := inspect.Judge(inspect.Observation{Redis: []inspect.Redis{r}}, test.expect)
		wantOne(t, test.code, got, test.code, test.level)
	}
}

// A hidden value must not count as correct.
func TestJudge_SaysWhatIsUnknown(t *testing.T) {
	t.Parallel()
	got := judge(inspect.Redis{Server: "redis:6379", Kind: inspect.Clustered}, inspect.Postgres{Server: "postgres:5432"})
	for _, f := range got {
		// It is known that a server answers. An unreadable schema version is serious, because the service does not become ready.
		known := strings.HasSuffix(f.Code, "_answers") || f.Code == "postgres_schema"
		if f.Level != inspect.Unknown && !known && f.Code != "machine_clock" {
			t.Errorf("%+v, want unknown", f)
		}
	}
	if len(got) < 24 {
		t.Errorf("%d findings, want those of all checks", len(got))
	}
}

func TestJudge_ToleratesSlowAnswersAboutClocks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		ahead, within time.Duration
		want          inspect.Level
	}{
		{900 * time.Millisecond, 0, inspect.OK},
		{1100 * time.Millisecond, 0, inspect.Warning},
		{-1100 * time.Millisecond, 0, inspect.Warning},
		{1100 * time.Millisecond, 200 * time.Millisecond, inspect.OK},
	} {
		r := master(func(r *inspect.Redis) { r.Clock = &inspect.Clock{Ahead: test.ahead, Within: test.within} })
		for _, f := range judge(r, primary()) {
			if f.Code == "redis_clock" && f.Level != test.want {
				t.Errorf("%v within %v: %+v", test.ahead, test.within, f)
			}
		}
	}
}

func TestJudge_PutsTheWorstFirst(t *testing.T) {
	t.Parallel()
	r := master(func(r *inspect.Redis) {
		r.Config["appendfsync"] = "everysec"
		delete(r.Config, "min-replicas-to-write")
		r.Config["maxmemory-policy"] = "allkeys-lru"
	})
	got := judge(r, primary(func(p *inspect.Postgres) { p.Settings["fsync"] = inspect.Setting{Value: "off"} }))
	var levels []inspect.Level
	for _, f := range got[:5] {
		levels = append(levels, f.Level)
	}
	if want := []inspect.Level{"serious", "serious", "warning", "unknown", "ok"}; !slices.Equal(levels, want) {
		t.Errorf("%v, want %v", levels, want)
	}
}
