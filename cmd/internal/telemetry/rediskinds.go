package telemetry

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"commerce/auth/cause"
)

// redisKinds are the kinds of Redis failures.
var redisKinds = []string{
	"timeout", "refused", "reset", "readonly", "loading", "out_of_memory", "no_replicas", "cluster_down",
	"try_again", "moved", "denied", "pool_timeout", "other",
}

// redisReplies maps the first word of an error reply to its kind.
var redisReplies = []struct{ code, kind string }{
	{"MOVED ", "moved"},
	{"ASK ", "moved"},
	{"TRYAGAIN ", "try_again"},
	{"CLUSTERDOWN ", "cluster_down"},
	{"READONLY ", "readonly"},
	{"LOADING ", "loading"},
	{"OOM ", "out_of_memory"},
	{"NOREPLICAS ", "no_replicas"},
	{"NOAUTH ", "denied"},
	{"NOPERM ", "denied"},
	{"WRONGPASS ", "denied"},
}

// commandFailure returns the kind of a command's failure, or "" if it succeeded.
func commandFailure(cmd redis.Cmder, err error) string {
	if raw, ok := cmd.(*redis.RawCmd); ok && err == nil {
		if reply := raw.Val(); len(reply) > 0 && (reply[0] == '-' || reply[0] == '!') {
			return replyKind(string(reply[1:])) // go-redis does not parse raw replies
		}
	}
	return redisKind(err)
}

// pipelineFailure returns the kind of the first failure in a pipeline, or "" if it succeeded.
func pipelineFailure(cmds []redis.Cmder, err error) string {
	for _, cmd := range cmds {
		if kind := commandFailure(cmd, cmd.Err()); kind != "" {
			return kind
		}
	}
	return redisKind(err) // for example, because there is no connection
}

// redisKind returns the kind of an error of go-redis. It returns "" if the error is not a
// failure: the key does not exist, Redis does not have the script yet, or the caller canceled
// the call.
func redisKind(err error) string {
	if err == nil || err == redis.Nil || errors.Is(err, context.Canceled) {
		return ""
	}
	err = cause.Root(err)
	if reply, ok := errors.AsType[redis.Error](err); ok && reply != redis.Nil {
		return replyKind(reply.Error())
	}
	failed, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return "pool_timeout"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, context.DeadlineExceeded), isNet && failed.Timeout():
		return "timeout"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "reset"
	}
	return "other"
}

// replyKind returns the kind of an error reply of Redis.
func replyKind(reply string) string {
	if strings.HasPrefix(reply, "NOSCRIPT ") {
		return ""
	}
	for _, r := range redisReplies {
		if strings.HasPrefix(reply, r.code) {
			return r.kind
		}
	}
	return "other"
}
