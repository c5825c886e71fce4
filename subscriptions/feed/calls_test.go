package feed

import (
	"errors"
	"testing"

	"commerce/auth/problem"
	"commerce/deploy/assert"
	"commerce/subscriptions/recorded"
)

// FuzzParseRequest fuzzes the queries and Accept headers of changes.
func FuzzParseRequest(f *testing.F) {
	cursor := recorded.Cursor{
		Database: recorded.Database{System: 7, OID: 5}, Timeline: 11, Log: 900, Since: 50, Change: recorded.Change{Transaction: 100, ID: 3},
	}
	f.Add("after="+OfChanges.Text(cursor, 1)+"&limit=7", "text/html, text/csv;q=0.3", int64(1))
	f.Add("after="+OfChanges.Text(recorded.Cursor{}, 2), "application/x-ndjson", int64(2))
	f.Add("limit=0&limit=1&%zz", ";q=", int64(-1))
	f.Fuzz(checkRequest)
}

func checkRequest(t *testing.T, query, accept string, store int64) {
	t.Helper()
	r, err := parseRequest(query, accept, store)
	var refused *problem.Error
	switch {
	case errors.As(err, &refused):
		assert.That(t, refused.Code == problem.InvalidParameter && len(refused.Members("en")) != 0, "%q: %v", query, err)
	case err != nil:
		t.Errorf("%q: %v", query, err)
	case r.Limit < 1 || r.Limit > recorded.MaxPage:
		t.Errorf("%q: limit %d", query, r.Limit)
	default:
		again, ok := OfChanges.Parse(OfChanges.Text(r.After, store), store)
		assert.That(t, ok && again == r.After, "%q: %+v", query, r.After)
	}
}
