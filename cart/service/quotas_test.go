package service

import (
	"testing"
	"time"

	"commerce/auth/limit"
	"commerce/auth/problem"
	"commerce/deploy/assert"
)

// Metrics and headers need to know which limit has refused the change.
func TestCreation_RefusesWithItsBudgetAfterTheWait(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	s := &Carts{Config: Config{Creation: limit.NewQuota(limit.Config{
		Name: "create", Rates: []limit.Rate{{Uses: 1, Per: time.Hour}}, Now: func() time.Time { return now },
	})}}
	v := &Visit{client: "192.0.2.1"}
	s.Creation.Use(t.Context(), v.client)
	id := s.newCartIDFor(v)
	assert.Require(t, id == "", "a cart beyond the limit gets the ID %q", id)
	now = now.Add(time.Hour)
	if refused := s.TooManyCarts(v); refused.Budget != (problem.Budget{Name: "create", Uses: 1}) || refused.RetryAfter != 0 {
		t.Errorf("refused with %v, %+v", refused.RetryAfter, refused.Budget)
	}
}
