package inspect

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wrong is the worst level of each code that has findings other than OK.
type wrong map[string]Level

// check checks servers. Exactly these findings must not be OK. It returns all, the worst first.
func check(t *testing.T, what string, c Config, want wrong) []Finding {
	t.Helper()
	began := time.Now()
	got, err := Servers(t.Context(), c)
	took := time.Since(began)
	assert.Require(t, took <= ephemeral.Patience(9*time.Second) && err == nil, "%s: took %v: %v", what, took, err)
	wantWrong(t, what, got, want)
	return got
}

func wantWrong(t *testing.T, what string, got []Finding, want wrong) {
	t.Helper()
	is, rank := wrong{}, 0
	for _, f := range got {
		if _, known := is[f.Code]; !known && f.Level != OK {
			is[f.Code] = f.Level
		}
		assert.That(t, slices.Contains(Codes(), f.Code), "%s: Codes lacks %s", what, f.Code)
		assert.That(t, (f.Setting == "") == (f.Level == OK) && f.Message != "" && f.Server != "" && f.Level.rank() >= rank,
			"%s: %+v", what, f)
		rank = f.Level.rank()
	}
	assert.Equal(t, is, want, "%s: %+v", what, got)
}

// wantOK checks that these checks were made, of any kind of server, and found nothing.
func wantOK(t *testing.T, got []Finding, kind, checks string) {
	t.Helper()
	for check := range strings.FieldsSeq(checks) {
		of := func(f Finding) bool { return f.Code == kind+"_"+check }
		if at := slices.IndexFunc(got, of); at < 0 || got[at].Level != OK { // the worst comes first
			t.Errorf("%s_%s is not ok: %+v", kind, check, got)
		}
	}
}

func TestCodes_AreThoseOfAllChecks(t *testing.T) {
	t.Parallel()
	var named []string
	for _, file := range assert.Must(filepath.Glob("*.go"))(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, match := range regexp.MustCompile(`"((?:machine|postgres|redis)_[a-z_]+)"`).FindAllStringSubmatch(string(assert.Must(os.ReadFile(file))(t)), -1) {
			named = append(named, match[1])
		}
	}
	slices.Sort(named)
	assert.Equal(t, Codes(), slices.Compact(named), "codes (-Codes +checks)")
}

var healthy = map[string]string{
	"maxmemory": "100mb", "maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "always", "save": "",
	"min-replicas-to-write": "0",
}

func set(t *testing.T, server *ephemeral.Server, settings map[string]string) {
	t.Helper()
	for name, value := range settings {
		err := server.Admin().ConfigSet(t.Context(), name, value).Err()
		assert.Require(t, err == nil, "config set %s %s: %v", name, value, err)
	}
}

func startHealthy(t *testing.T, arguments ...string) *ephemeral.Server {
	t.Helper()
	server := ephemeral.StartRedis(t, arguments...)
	set(t, server, healthy)
	return server
}

func startPair(t *testing.T) (master, replica *ephemeral.Server) {
	t.Helper()
	master, replica = startHealthy(t), startHealthy(t)
	follow(t, replica, master)
	waitForReplicas(t, master, 1)
	return master, replica
}

func follow(t *testing.T, server, master *ephemeral.Server) {
	t.Helper()
	host, port, splits := net.SplitHostPort(master.Admin().Options().Addr)
	assert.NoError(t, errors.Join(splits, server.Admin().ReplicaOf(t.Context(), host, port).Err()))
}

func waitForReplicas(t *testing.T, master *ephemeral.Server, n int) {
	t.Helper()
	ephemeral.Until(t, func() error {
		info, err := master.Admin().Info(t.Context(), "replication").Result()
		if err == nil && (strings.Count(info, "state=online") != n || !strings.Contains(info, fmt.Sprintf("connected_slaves:%d", n))) {
			err = fmt.Errorf("want %d replicas: %s", n, info)
		}
		return err
	})
}
