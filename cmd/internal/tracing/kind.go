package tracing

import (
	"context"
	"errors"
	"net"
)

// kind returns what failed, in a word. The text of an error may quote a caller or an address.
func kind(err error) string {
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
