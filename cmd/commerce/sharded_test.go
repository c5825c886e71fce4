package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"commerce/deploy/ephemeral"
)

// Everything but changes works with the schema that Citus can shard.
func TestSharded_ServesEverythingButChanges(t *testing.T) {
	t.Parallel()
	url := ephemeral.Postgres(t)
	up := commandUnder(t, "docs/citus.md", "Setting up")
	for _, step := range []struct{ command, says string }{
		{up, "applied 00103_sharding.sql"},
		{up, "nothing to do"},
		{"migrate up", "nothing to do"},
		{"migrate status", "left out 00102_changes.sql"},
		{"seed --subscriptions 500", "500"},
	} {
		if out := onDatabase(t, url, strings.Fields(step.command)...); !strings.Contains(out, step.says) {
			t.Errorf("%s says %q, want %q", step.command, out, step.says)
		}
	}
	r := startServe(t, url)
	token := storeToken(t, url)
	r.wantStatuses(t, token, healthy())
	for path, want := range map[string]int{
		"/subscriptions/5001":                                  http.StatusOK,
		"/subscriptions/summary":                               http.StatusOK,
		"/subscriptions?status=active&customerCountryCode=966": http.StatusOK,
		"/subscriptions/changes":                               http.StatusNotFound,
	} {
		eventually(t, func() string {
			if a := r.send(t, "GET", path, "", "Authorization", "Bearer "+token); a.Status != want {
				return fmt.Sprint(path, ": ", a.Status)
			}
			return ""
		})
	}
	pruned := ended(t, program(t, []string{"DATABASE_URL=" + url}, "prune"))
	if pruned.status == 0 || pruned.out != "" || !strings.Contains(pruned.errors, "nothing to prune") {
		t.Errorf("prune: status %d, %q", pruned.status, pruned.errors)
	}
	r.end(t)
}

func TestMigrate_RefusesToShardADatabaseWithChanges(t *testing.T) {
	t.Parallel()
	got := ended(t, program(t, []string{"DATABASE_URL=" + ephemeral.Migrated(t)}, "migrate", "up", "--sharded"))
	if got.status == 0 || !strings.Contains(got.errors, "00102_changes.sql") || strings.Count(got.errors, "\n") != 1 {
		t.Errorf("status %d, %q", got.status, got.errors)
	}
}

// Citus cannot run a plan that was made without the values of its parameters.
func TestSubscriptions_PlanAsDatabaseURLSays(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	for parameters, want := range map[string]string{"": "force_generic_plan", "&plan_cache_mode=force_custom_plan": "force_custom_plan"} {
		var mode string
		if err := ephemeral.OpenPool(t, url+parameters, listPool("")).QueryRow(t.Context(), "SHOW plan_cache_mode").Scan(&mode); err != nil || mode != want {
			t.Errorf("with %q: %s, %v, want %s", parameters, mode, err, want)
		}
	}
}
