//go:build unix

package ephemeral

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"commerce/deploy/connect"
)

// userPassword is the password of every user that AsUser adds.
const userPassword = "ephemeral"

// AsUser adds a user to the Redis servers of redisURL and returns a URL that logs in as
// that user. users are lines of redis.conf, "user <name> <rules>". AsUser returns
// redisURL unchanged if it already logs in, if it names sentinels, whose replicas would
// not have the user, or if it is a miniredis, which has no users.
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
	must(tb, "add Redis user", err)
	defer client.Close()
	add := func(ctx context.Context, node *redis.Client) error { return node.Do(ctx, args...).Err() }
	switch client := client.(type) {
	case *redis.ClusterClient:
		err = client.ForEachShard(tb.Context(), add)
	case *redis.Client:
		err = add(tb.Context(), client)
	}
	if redis.HasErrorPrefix(err, "unknown command") { // miniredis
		return redisURL
	}
	must(tb, "add Redis user "+name, err)
	return scheme + "://" + name + ":" + userPassword + "@" + rest
}
