package tracing

import (
	"context"
	"errors"
	"net"
)

// kind returns one word for the failure. It does not use the text of the error, which may
// contain a caller's data or an address.
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
