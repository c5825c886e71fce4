package telemetry

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"

	"commerce/auth/cause"
)

var redisReplies = map[string]string{
	"MOVED": "moved", "ASK": "moved", "TRYAGAIN": "try_again", "CLUSTERDOWN": "cluster_down",
	"READONLY": "readonly", "LOADING": "loading", "OOM": "out_of_memory", "NOREPLICAS": "no_replicas", "MISCONF": "misconf",
	"NOAUTH": "denied", "NOPERM": "denied", "WRONGPASS": "denied",
}

var sqlstateKinds = map[string]string{
	"57014": "timeout",                 // statement_timeout
	"57P01": "reset", "57P02": "reset", // the connection was terminated
	"57P03": "unavailable",               // Postgres is starting, stopping or recovering
	"42501": "denied", "3D000": "denied", // missing permission, wrong database name
	"53300": "too_many_connections",
	"25006": "read_only",
	"0A000": "stale_statement", "26000": "stale_statement", // reads are repeated, see package pgread
	"28": "denied",    // wrong user or password
	"40": "conflict",  // serialization, deadlock, conflict with recovery
	"53": "resources", // disk or memory is short
}

// kindsOf returns all kinds of a server's failures: those of replies, and those without a reply.
func kindsOf(replies map[string]string) []string {
	return slices.AppendSeq([]string{"timeout", "refused", "reset", "dns", "pool_timeout", "other"}, maps.Values(replies))
}

func commandFailure(cmd redis.Cmder, err error) string {
	if raw, ok := cmd.(*redis.RawCmd); ok && err == nil {
		if reply := raw.Val(); len(reply) > 0 && (reply[0] == '-' || reply[0] == '!') {
			return replyKind(string(reply[1:])) // go-redis does not parse raw replies
		}
	}
	return redisKind(err)
}

// firstFailure returns the kind of the first failure of commands that ended with err, or "" if all
// succeeded. Only those of a pipeline already have their own errors.
func firstFailure(cmds []redis.Cmder, err error) string {
	if len(cmds) > 1 {
		for _, cmd := range cmds {
			if kind := commandFailure(cmd, cmd.Err()); kind != "" {
				return kind
			}
		}
	}
	return commandFailure(cmds[0], err) // for example, because there is no connection
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
	if errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) {
		return "pool_timeout"
	}
	return connectionKind(err)
}

func replyKind(reply string) string {
	word, _, _ := strings.Cut(reply, " ")
	if word == "NOSCRIPT" {
		return ""
	}
	return cmp.Or(redisReplies[word], "other")
}

// postgresKind returns the kind of an error; "" for none, or if the caller canceled the call.
func postgresKind(err error) string {
	if err == nil || errors.Is(err, context.Canceled) {
		return ""
	}
	if reply, ok := errors.AsType[*pgconn.PgError](err); ok {
		return cmp.Or(sqlstateKinds[reply.Code], sqlstateKinds[reply.Code[:min(len(reply.Code), 2)]], "other")
	}
	return connectionKind(err)
}

func connectionKind(err error) string {
	failed, isNet := errors.AsType[net.Error](err)
	_, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case isDNS:
		return "dns"
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
