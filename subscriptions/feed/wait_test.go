package feed_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"commerce/auth"
	"commerce/deploy/assert"
	"commerce/subscriptions"
	"commerce/subscriptions/feed"
	"commerce/subscriptions/recorded"
	"commerce/subscriptions/suite"
)

// revocable is the token of store 1.
type revocable struct{ revoked atomic.Bool }

func (r *revocable) APIToken(context.Context, int64) (auth.APIToken, error) {
	if r.revoked.Load() {
		return auth.APIToken{}, auth.ErrNoAPIToken
	}
	return auth.APIToken{ID: 1, StoreID: 1, Hash: sha256.Sum256([]byte(suite.Secret))}, nil
}

func TestWait_EndsWithAChangeOfTheStore(t *testing.T) {
	t.Parallel()
	const changes, heard, limit = 7100 * time.Millisecond, 7250 * time.Millisecond, 20 * time.Second
	for name, tc := range map[string]struct {
		change           func(suite.Memory, *revocable)
		ends             time.Duration
		code             string
		changed, deleted int
	}{
		"nothing":    {func(suite.Memory, *revocable) {}, limit, "", 0, 0},
		"a change":   {func(m suite.Memory, _ *revocable) { m.Put(suite.Many(3)[2]) }, heard, "", 1, 0},
		"a deletion": {func(m suite.Memory, _ *revocable) { m.Delete(1, 2, suite.Now) }, heard, "", 0, 1},
		"both":       {func(m suite.Memory, _ *revocable) { m.Put(suite.Many(3)[2]); m.Delete(1, 2, suite.Now) }, heard, "", 1, 1},
		"one of another store": {func(m suite.Memory, _ *revocable) {
			m.Put(subscriptions.Subscription{ID: 1, StoreID: 2})
		}, limit, "", 0, 0},
		"the token was revoked": {func(_ suite.Memory, token *revocable) { token.revoked.Store(true) }, limit, "unauthenticated", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m, token := suite.NewMemory(nil, suite.Many(3)), &revocable{}
				config := suite.ConfigOf(m)
				config.Tokens = suite.TokensFrom(token, suite.Stores()...)
				b := suite.Bundle{Engine: suite.NewEngine(config, feed.Calls(m))}
				_, _, read := follow(t, m, 1, recorded.Cursor{}, 10)
				time.AfterFunc(changes, func() { tc.change(m, token) })
				began := time.Now()
				got := b.Do("/subscriptions/changes?wait=20&after="+feed.OfChanges.Text(read, 1), 1, "en")
				var body struct {
					Code string
					Data struct{ Data, Deleted []json.RawMessage }
				}
				assert.NoError(t, json.Unmarshal(got.Body.Bytes(), &body))
				assert.That(t, time.Since(began) == tc.ends && body.Code == tc.code && len(body.Data.Data) == tc.changed && len(body.Data.Deleted) == tc.deleted,
					"after %v: %s", time.Since(began), got.Body)
				time.Sleep(time.Second) // until the checks end
			})
		})
	}
}
