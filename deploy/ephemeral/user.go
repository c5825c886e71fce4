//go:build unix

package ephemeral

import (
	"context"
	"regexp"
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
	for _, line := range regexp.MustCompile("(?m)^user "+name+" (.*)$").FindAllStringSubmatch(users, -1) {
		for rule := range strings.FieldsSeq(line[1]) {
			args = append(args, rule)
		}
	}
	client, err := connect.Redis(redisURL)
	must(tb, "add Redis user", err)
	defer client.Close()
	if cluster, is := client.(*redis.ClusterClient); is {
		err = cluster.ForEachShard(tb.Context(), func(ctx context.Context, node *redis.Client) error { return node.Do(ctx, args...).Err() })
	} else {
		err = client.Do(tb.Context(), args...).Err()
	}
	if redis.HasErrorPrefix(err, "unknown command") { // miniredis
		return redisURL
	}
	must(tb, "add Redis user "+name, err)
	return scheme + "://" + name + ":" + userPassword + "@" + rest
}
