package main

import (
	"strings"
	"testing"
)

func TestPrune_PrintsHowManyDeletionsItDeleted(t *testing.T) {
	t.Parallel()
	url := seeded(t)
	db := writer(t, url)
	change(t, db, "DELETE FROM subscriptions WHERE store_id = 1 AND id <= 5003")
	change(t, db, "UPDATE deleted_subscriptions SET deleted_at = now() - interval '91 days' WHERE id <= 5002")
	for _, want := range []string{"2", "0"} {
		if out := onDatabase(t, url, "prune"); !strings.Contains(out, "the records of "+want+" deletions older than 90 days") {
			t.Errorf("printed %q, want %s", out, want)
		}
	}
}
