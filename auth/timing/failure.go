package timing

import (
	"context"
	"errors"
	"net"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Fail marks a span as failed, with the kind of the failure. The text of an error may quote a
// caller or an address.
func Fail(span trace.Span, kind string) {
	span.SetAttributes(attribute.String("error.type", kind))
	span.SetStatus(codes.Error, kind)
}

// Kind returns what failed, in a word: the first word of Redis's reply, such as "READONLY", or
// what failed on the way.
func Kind(err error) string {
	if reply, ok := errors.AsType[redisError](err); ok {
		return firstWord(reply.Error())
	}
	failed, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded), isNet && failed.Timeout():
		return "timeout"
	case isNet:
		return "connection"
	}
	return "failed"
}

// redisError is what go-redis has for a reply that is an error.
type redisError interface {
	error
	RedisError()
}

func firstWord(reply string) string {
	word, _, _ := strings.Cut(reply, " ")
	if strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return "ERR"
	}
	return word
}
