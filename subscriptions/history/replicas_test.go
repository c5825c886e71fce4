package history_test

import (
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/subscriptions/history"
	"commerce/subscriptions/suite"
)

// The rest of a history that the primary began must not come from a replica that lacks its states.
func TestReplicas_ThatLackTheStatesOfAPlaceLeaveItToThePrimary(t *testing.T) {
	t.Parallel()
	r := suite.Replicate(suite.NewSetting(t), time.Minute, suite.Patience)
	r.Insert(900_001)
	r.CatchUp()
	r.CutOff()
	r.Insert(900_002)
	for _, id := range []int64{900_001, 900_002} { // the replicas have the first state of one of them
		for _, price := range []int{501, 502, 503} {
			suite.Exec(t, r.Writes, "UPDATE subscriptions SET price_amount = $2 WHERE id = $1", id, price)
		}
		onPrimary := assert.Must(r.Setting.Source.History(t.Context(), 1, id, history.Query{Limit: 10}))(t)
		after := history.Page{Events: onPrimary.Events[:1]}
		got := assert.Must(r.Source.History(t.Context(), 1, id, history.Query{After: after.Next(), Limit: 10}))(t)
		assert.Equal(t, len(got.Events), 3, "events after the first of 4")
	}
}
