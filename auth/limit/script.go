package quota

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// ScriptName is the name of the scripts in metrics and traces. The command that runs one has
// this name as its FullName.
const ScriptName = "limit"

// The scripts count in one round trip and one key, also on a cluster. redis_rate would need a
// round trip for each rate, and does not count what is beyond the limit.
var (
	//go:embed quota.lua
	quotaSource string
	//go:embed window.lua
	windowSource string

	rates  = newScript(quotaSource)
	window = newScript(windowSource)
)

type script struct{ source, digest string }

func newScript(source string) script {
	sum := sha1.Sum([]byte(source))
	return script{source, hex.EncodeToString(sum[:])}
}

// run sends a script with EVALSHA, and with EVAL if Redis does not have it yet. Each script
// replies with the ms that the client must wait, and the number of the rate that it waits for.
func (s script) run(ctx context.Context, client redis.UniversalClient, key string, args []any) ([]int64, error) {
	reply, err := send(ctx, client, "evalsha", s.digest, key, args)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = send(ctx, client, "eval", s.source, key, args)
	}
	if err != nil {
		return nil, err
	}
	if len(reply) != 2 || reply[1] < 1 || int(reply[1]) > len(args)/2 {
		return nil, fmt.Errorf("the script of limits replied %v", reply)
	}
	return reply, nil
}

func send(ctx context.Context, client redis.UniversalClient, verb, body, key string, args []any) ([]int64, error) {
	cmd := command{redis.NewCmd(ctx, append([]any{verb, body, 1, key}, args...)...)}
	cmd.SetFirstKeyPos(3)
	_ = client.Process(ctx, cmd)
	return cmd.Int64Slice()
}

// command runs a script.
type command struct{ *redis.Cmd }

// FullName is the script's name, for hooks.
func (command) FullName() string { return ScriptName }
