package redisstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"commerce/auth/cause"
	"commerce/auth/script"
	"commerce/deploy/assert"
)

type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// The described error has only the first part of Redis's text.
func TestMayHaveRun_ReadsTheReplyOfRedis(t *testing.T) {
	t.Parallel()
	const inScript = " script: 8b6d2f1a0c, on @user_script:181."
	for _, test := range []struct {
		err  error
		want bool
	}{
		{reply("NOPERM this user has no permissions to run the 'hset' command" + inScript), true},
		{reply("OOM command not allowed when used memory > 'maxmemory'." + inScript), false},
		{reply("NOPERM this user has no permissions to run the 'evalsha' command"), false},
		{errors.New("it closed the connection"), true},
		{fmt.Errorf("%w: %w", script.ErrNotSent, errors.New("no answer")), false},
	} {
		assert.Equal(t, mayHaveRun(cause.Of("redis a:1", time.Now(), test.err)), test.want, "%v", test.err)
	}
}
