package main

import (
	"net/http"
	"strings"
	"testing"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// Everything but changes works with the schema that Citus can shard.
func TestSharded_ServesEverythingButChanges(t *testing.T) {
	t.Parallel()
	url := ephemeral.Postgres(t)
	up := codeUnder(t, source(t, "docs/citus.md"), "Setting up", "sh")[0]
	up, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(up), "commerce "), "\n")
	for _, step := range []struct{ command, says string }{
		{up, "applied 00103_sharding.sql"},
		{up, "nothing to do"},
		{"migrate up", "nothing to do"},
		{"migrate status", "left out 00102_changes.sql"},
		{"seed --subscriptions 500", "500"},
	} {
		out := onDatabase(t, url, strings.Fields(step.command)...)
		assert.That(t, strings.Contains(out, step.says), "%s says %q, want %q", step.command, out, step.says)
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
		r.wantStatus(t, token, path, want)
	}
	r.end(t)
}

// Citus cannot run a plan that was made without the values of its parameters.
func TestSubscriptions_PlanAsDatabaseURLSays(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	for parameters, want := range map[string]string{"": "force_generic_plan", "&plan_cache_mode=force_custom_plan": "force_custom_plan"} {
		var mode string
		err := ephemeral.OpenPool(t, url+parameters, listPool("")).QueryRow(t.Context(), "SHOW plan_cache_mode").Scan(&mode)
		assert.That(t, err == nil && mode == want, "with %q: %s, %v, want %s", parameters, mode, err, want)
	}
}
