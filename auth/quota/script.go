package quota

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// ScriptName is the name of the script in metrics and traces. The command that runs it has
// this name as its FullName.
const ScriptName = "limit"

// source counts in one round trip and one key, also on a cluster. redis_rate would need a
// round trip for each rate, and does not count what is beyond the limit.
//
//go:embed quota.lua
var source string

var digest = func() string {
	sum := sha1.Sum([]byte(source))
	return hex.EncodeToString(sum[:])
}()

// runScript sends the script with EVALSHA, and with EVAL if Redis does not have it yet. See
// quota.lua for the results.
func runScript(ctx context.Context, client redis.UniversalClient, key string, args []any) (wait int64, rate int, err error) {
	reply, err := send(ctx, client, "evalsha", digest, key, args)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = send(ctx, client, "eval", source, key, args)
	}
	if err != nil {
		return 0, 0, err
	}
	if len(reply) != 2 || reply[1] < 1 || int(reply[1]) > (len(args)-1)/2 {
		return 0, 0, fmt.Errorf("the script of limits replied %v", reply)
	}
	return reply[0], int(reply[1]) - 1, nil
}

func send(ctx context.Context, client redis.UniversalClient, verb, body, key string, args []any) ([]int64, error) {
	cmd := command{redis.NewCmd(ctx, append([]any{verb, body, 1, key}, args...)...)}
	cmd.SetFirstKeyPos(3)
	_ = client.Process(ctx, cmd)
	return cmd.Int64Slice()
}

// command runs the script.
type command struct{ *redis.Cmd }

// FullName is the script's name, for hooks.
func (command) FullName() string { return ScriptName }
