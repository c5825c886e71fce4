package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"commerce/cmd/internal/cli"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/deploy/inspect"
)

func guard(t *testing.T) ephemeral.Guard {
	return ephemeral.Guard{Users: source(t, "deploy/redis/users.conf")}
}

// startGuarded starts a Redis with the users of users.conf, and logs in as commerce.
func startGuarded(t *testing.T) *ephemeral.Server {
	t.Helper()
	server := guard(t).StartRedis(t)
	for name, value := range map[string]string{"maxmemory": "100mb", "appendonly": "yes", "appendfsync": "always"} {
		assert.NoError(t, server.Admin().ConfigSet(t.Context(), name, value).Err())
	}
	return server
}

// asUser returns a URL of startGuarded with another user of users.conf.
func asUser(t *testing.T, rawURL, user string) string {
	t.Helper()
	u := parsed(t, rawURL)
	password, _ := u.User.Password()
	u.User = url.UserPassword(user, password)
	return u.String()
}

// found runs `commerce check --json`, and returns the codes at each level.
func found(t *testing.T, status int, settings ...string) map[inspect.Level][]string {
	t.Helper()
	got := ended(t, program(t, settings, "check", "--json"))
	var findings []inspect.Finding
	err := json.Unmarshal([]byte(got.out), &findings)
	assert.Require(t, err == nil && got.status == status && got.errors == "", "want %d: %+v, %v", status, got, err)
	codes := map[inspect.Level][]string{}
	for _, f := range findings {
		if !slices.Contains(codes[f.Level], f.Code) {
			codes[f.Level] = append(codes[f.Level], f.Code)
		}
	}
	return codes
}

func TestCheck_TheUserCheckSeesAllOfRedis(t *testing.T) {
	slow(t)
	all := guard(t)
	for name, redisURL := range map[string]string{
		"single": startGuarded(t).URL, "cluster": all.StartCluster(t).URL, "sentinels": all.StartSentinels(t).URL,
	} {
		got := ended(t, program(t, []string{"REDIS_URL=" + asUser(t, redisURL, "check")}, "check"))
		assert.That(t, strings.Count(got.out, "\nunknown ") == 1 && strings.Contains(got.out, "\nunknown  Postgres ") &&
			got.errors == "", "%s: %+v, want nothing unknown except Postgres, whose URL is not set", name, got)
	}
}

func TestCheck_TheServicesUserSeesLess(t *testing.T) {
	t.Parallel()
	want := map[inspect.Level][]string{
		inspect.Warning: {"redis_replicas"},
		inspect.Unknown: {
			"redis_persistence", "redis_replay", "redis_min_replicas_to_write", "postgres_answers",
		},
		inspect.OK: {"redis_answers", "redis_tls", "redis_version", "redis_eviction", "redis_disk", "redis_maxmemory", "redis_memory", "redis_role", "redis_merges", "redis_rights", "machine_clock", "redis_clock"},
	}
	assert.Equal(t, found(t, 0, "REDIS_URL="+startGuarded(t).URL), want, "findings")
}

func TestCheck_ExitsWith1IfAFindingIsSerious(t *testing.T) {
	t.Parallel()
	redisURL := "REDIS_URL=" + asUser(t, startGuarded(t).URL, "check")
	assert.Equal(t, found(t, 0, redisURL)[inspect.Serious], nil, "serious")
	assert.Equal(t, found(t, 1, redisURL, "DURABILITY=replica")[inspect.Serious], []string{"redis_replicas"}, "durable")
	assert.Equal(t, found(t, 1, redisURL, "REDIS_MIN_REPLICAS=1")[inspect.Serious], []string{"redis_merges"}, "merges")
}

func TestCheck_PrintsOneLineForEachFinding(t *testing.T) {
	t.Parallel()
	server := startGuarded(t)
	assert.NoError(t, server.Admin().ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
	addr := "redis " + server.Admin().Options().Addr
	got := ended(t, program(t, []string{"REDIS_URL=" + asUser(t, server.URL, "check")}, "check"))
	lead := func(level, server string) string { return fmt.Sprintf("%-7s  %-*s  ", level, len(addr), server) }
	want := lead("serious", addr) + "Redis deletes carts when its memory is full: maxmemory-policy is allkeys-lru. Change: maxmemory-policy noeviction\n" +
		lead("warning", addr) + "If this machine is lost, its carts are lost, because no replica is connected. Change: replicaof on another server\n" +
		lead("unknown", "Postgres") + "Postgres was not checked, because its URL is not set. Look up: DATABASE_URL\n" +
		lead("ok", addr) + "answers, tls, version, persistence, replay, disk, maxmemory, memory, role, merges, min replicas to write, clock\n" +
		lead("ok", "this machine") + "clock\n" +
		"\n1 serious, 1 warning, 1 unknown, 13 ok\n"
	assert.Equal(t, got.out, want, "ended with %d and %q", got.status, got.errors)
	assert.That(t, got.status == 1 && got.errors == "", "ended with %d and %q", got.status, got.errors)
}

func TestCheck_RefusesWrongSettings(t *testing.T) {
	t.Parallel()
	for setting, settings := range map[string][]string{
		"DATABASE_URL":       nil,
		"REDIS_URL":          {"REDIS_URL=redis://user:hunter2@redis:six"},
		"REDIS_MIN_REPLICAS": {"REDIS_URL=redis://redis", "REDIS_MIN_REPLICAS=101"},
		"DURABILITY":         {"REDIS_URL=redis://redis", "DURABILITY=disk"},
	} {
		got := ended(t, program(t, settings, "check"))
		assert.That(t, got.status == 2 && got.out == "" && strings.HasPrefix(got.errors, "commerce: "+setting+": ") &&
			!strings.Contains(got.errors, "hunter2"), "%v: %+v, want 2 and one line about %s", settings, got, setting)
	}
}

// Several servers with the same fault share one line.
func TestFindings_AreGroupedByMessage(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	fault := inspect.Finding{Code: "redis_eviction", Level: inspect.Serious, Message: "Deletes carts.", Setting: "noeviction"}
	var findings []inspect.Finding
	for _, server := range []string{"a:1", "b:1", "c:1"} {
		fault.Server = server
		findings = append(findings, fault, inspect.Finding{Code: "redis_version", Level: inspect.OK, Server: server})
	}
	assert.NoError(t, printFindings(cli.NewOutput(&text, io.Discard), findings))
	want := "serious  redis a:1 and 2 more  Deletes carts. Change: noeviction\n" +
		"ok       redis a:1 and 2 more  version\n\n3 serious, 0 warning, 0 unknown, 3 ok\n"
	assert.Equal(t, text.String(), want, "text.String()")
}

// checked stops serve, and returns what its check has logged.
func (r *running) checked(t *testing.T) []logLine {
	t.Helper()
	r.end(t)
	return slices.DeleteFunc(r.log.lines(t, 0), func(l logLine) bool { return !strings.HasPrefix(l.Msg, "check: ") })
}

func TestServe_LogsWhatTheCheckFinds(t *testing.T) {
	t.Parallel()
	serve := startServe(t, seeded(t), "REDIS_URL="+startGuarded(t).URL, "DURABILITY=replica")
	serve.log.wait(t, 0, "commerce check")
	lines := serve.checked(t)
	codes := map[string]string{}
	for _, line := range lines {
		codes[line.Code] = line.Level + " " + line.Finding
	}
	assert.That(t, codes["redis_replicas"] == "WARN serious" && codes["postgres_writes"] == "WARN warning" &&
		codes["redis_eviction"] == "", "logged %+v", lines)
	last := lines[len(lines)-1]
	assert.That(t, last.Level == "INFO" && codes[""] == "INFO " && strings.Contains(last.Msg, "`commerce check`"),
		"logged %+v, want one line about what is unknown, at the end", lines)
}

// Each later check logs only what is new. What Redis refuses to it again is no further entry in the ACL LOG.
func TestServe_FindsWhatGoesWrongLater(t *testing.T) {
	slow(t)
	redis := startGuarded(t)
	serve := startServe(t, seeded(t), "REDIS_URL="+redis.URL)
	serve.log.wait(t, 0, "commerce check")
	const finding = `commerce_check_findings{code="redis_eviction",level="serious"}`
	refused := redis.Admin().ACLLog(t.Context(), 100).Val()
	assert.That(t, serve.metric(t, finding) == 0 && len(refused) > 0, "%s before: %+v", finding, refused)
	assert.NoError(t, redis.Admin().ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
	time.Sleep(checkInterval)
	serve.log.wait(t, 0, "redis_eviction")
	assert.Equal(t, serve.metric(t, finding), 1, "%s", finding)
	assert.Equal(t, len(redis.Admin().ACLLog(t.Context(), 100).Val()), len(refused), "entries of the ACL LOG")
	seen := map[string]int{}
	for _, line := range serve.checked(t) {
		seen[line.Code]++
		assert.That(t, seen[line.Code] <= 1, "logged again: %+v", line)
	}
}

// A check that waits for a frozen server must not delay the end of the process.
func TestServe_EndsWhileTheCheckWaits(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t)
	server.Freeze()
	lines := startServe(t, seeded(t), "REDIS_URL="+server.URL).checked(t)
	assert.That(t, len(lines) == 0, "logged %+v", lines)
}
