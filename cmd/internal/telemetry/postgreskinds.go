package telemetry

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// postgresKinds are the kinds of Postgres failures.
var postgresKinds = []string{
	"timeout", "refused", "reset", "unavailable", "too_many_connections", "resources", "read_only", "denied", "conflict",
	"pool_timeout", "other",
}

// postgresKind returns the kind of an error of pgx. It returns "" if err is nil or the caller
// canceled the call.
func postgresKind(err error) string {
	if err == nil || errors.Is(err, context.Canceled) {
		return ""
	}
	if reply, ok := errors.AsType[*pgconn.PgError](err); ok {
		return sqlstateKind(reply.Code)
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, context.DeadlineExceeded), pgconn.Timeout(err):
		return "timeout"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "reset"
	}
	return "other"
}

// sqlstateKind returns the kind of an error reply of Postgres.
func sqlstateKind(code string) string {
	switch code {
	case "57014": // statement_timeout
		return "timeout"
	case "57P01", "57P02": // the connection was terminated
		return "reset"
	case "57P03": // Postgres is starting, stopping or recovering
		return "unavailable"
	case "53300":
		return "too_many_connections"
	case "25006":
		return "read_only"
	case "42501", "3D000": // missing permission, wrong database name
		return "denied"
	}
	switch class := code[:min(len(code), 2)]; class {
	case "28": // wrong user or password
		return "denied"
	case "40": // serialization, deadlock, conflict with recovery
		return "conflict"
	case "53": // disk or memory is short
		return "resources"
	}
	return "other"
}
