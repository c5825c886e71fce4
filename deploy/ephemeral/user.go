//go:build unix

package ephemeral

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"commerce/deploy/connect"
)

// userPassword is of every user that AsUser adds.
const userPassword = "ephemeral"

// AsUser adds a user to the Redis servers behind redisURL and returns the URL by which
// that user logs in. users are lines as redis.conf has them, "user <name> <rules>". A
// URL that logs in already is returned as it is, and so is one of sentinels, whose
// replicas would not know the user, and of miniredis, which has none.
func AsUser(tb testing.TB, redisURL, users, name string) string {
	tb.Helper()
	scheme, rest, _ := strings.Cut(redisURL, "://")
	if strings.Contains(rest, "@") || strings.Contains(rest, "master=") {
		return redisURL
	}
	args := []any{"acl", "setuser", name, "reset", ">" + userPassword}
	for line := range strings.Lines(users) {
		if rules, ok := strings.CutPrefix(line, "user "+name+" "); ok {
			for rule := range strings.FieldsSeq(rules) {
				args = append(args, rule)
			}
		}
	}
	client, err := connect.Redis(redisURL)
	if err != nil {
		tb.Fatalf("ephemeral: %v", err)
	}
	defer client.Close()
	add := func(ctx context.Context, node *redis.Client) error { return node.Do(ctx, args...).Err() }
	switch client := client.(type) {
	case *redis.ClusterClient:
		err = client.ForEachShard(tb.Context(), add)
	case *redis.Client:
		err = add(tb.Context(), client)
	}
	if redis.HasErrorPrefix(err, "unknown command") { // miniredis has no users
		return redisURL
	}
	if err != nil {
		tb.Fatalf("ephemeral: add Redis user %s: %v", name, err)
	}
	return scheme + "://" + name + ":" + userPassword + "@" + rest
}
