package follower_test

import (
	"testing"
	"time"

	"commerce/auth/locale"
	"commerce/deploy/assert"
	"commerce/subscriptions"
	"commerce/subscriptions/feed"
	"commerce/subscriptions/suite"
)

// A reader whose cursor is of the primary must not believe a replica that nothing follows.
func TestReplicas_ThatAreBehindACursorLeaveItToThePrimary(t *testing.T) {
	t.Parallel()
	r, f := suite.Replicate(suite.NewSetting(t), time.Minute, suite.Patience), newFollower(1, 1)
	r.CutOff()
	r.Insert(900_001)
	readAll(t, f, r.Setting.Source)
	r.Insert(900_002)
	assert.NoError(t, r.SettlePrimary(t.Context()))
	readAll(t, f, r.Source)
	_, has := f.rows[900_002]
	assert.That(t, has && f.expired == 0, "the follower has the latest change: %t; %d cursors expired", has, f.expired)
}

// Every server gives the same answer in a copy of a database, so it says nothing about the replicas.
func TestReplicas_ServeListsWhileTheirChangesCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]string{
		"a copy of another database": "UPDATE subscription_timelines SET table_oid = 1",
		"a refused statement":        "ALTER TABLE subscription_timelines ALTER mark TYPE text",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := suite.Replicate(suite.NewSetting(t), 10*time.Second, suite.Patience)
			r.Insert(1)
			suite.Exec(t, r.Writes, breaks)
			r.CatchUp()
			before := r.FromPrimary.Load()
			for range 20 { // the check after a failure may be faster than the next read
				_, err := r.Source.Changes(t.Context(), 1, feed.Query{Limit: 10, Language: locale.En})
				assert.Require(t, err != nil, "changes were read")
				assert.Must(r.Source.List(t.Context(), 1, subscriptions.Query{Limit: 10, Language: locale.En}))(t)
			}
			assert.Equal(t, r.FromPrimary.Load(), before, "the primary served lists")
		})
	}
}
