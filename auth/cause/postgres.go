package cause

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// OfPostgres is Of for a call that uses a pool. pgx.ErrNoRows is not a failure.
func OfPostgres(pool *pgxpool.Pool, began time.Time, err error) error {
	if err == nil || errors.Is(err, pgx.ErrNoRows) || described(err) {
		return err
	}
	config := pool.Config()
	took := time.Since(began)
	what := describePostgres(err, took)
	if errors.Is(err, context.DeadlineExceeded) && !pgconn.Timeout(err) { // the call was still waiting for a connection
		what = "no connection after " + Text(took)
		if config.MaxConns == pool.Stat().AcquiredConns() {
			what = fmt.Sprintf("no connection became free within %s: all %d are in use", Text(took), config.MaxConns)
		}
	}
	return &Failure{Server: Postgres(config.ConnConfig), What: what, Took: took, Err: err}
}

// OfConnection is Of for a call that uses or opens a single connection.
func OfConnection(config *pgx.ConnConfig, began time.Time, err error) error {
	if err == nil || described(err) {
		return err
	}
	took := time.Since(began)
	return &Failure{Server: Postgres(config), What: describePostgres(err, took), Took: took, Err: err}
}

// Postgres returns the name of a server in the log: "postgres", and the hosts and ports of its
// URL.
func Postgres(c *pgx.ConnConfig) string {
	hosts := []string{address(c.Host, c.Port)}
	for _, other := range c.Fallbacks { // a fallback can be the same address without TLS
		if addr := address(other.Host, other.Port); addr != hosts[len(hosts)-1] {
			hosts = append(hosts, addr)
		}
	}
	return "postgres " + strings.Join(hosts, ",")
}

func address(host string, port uint16) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

func describePostgres(err error, took time.Duration) string {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return describeRefusal(refused, took)
	}
	failed, connecting := errors.AsType[*pgconn.ConnectError](err)
	late := errors.Is(err, context.DeadlineExceeded)
	switch {
	case connecting && late:
		return "no connection after " + Text(took)
	case connecting: // without the user, the database and a second try without TLS
		return describe(failed.Unwrap(), took)
	case late:
		return "canceled after " + Text(took)
	}
	return describe(err, took)
}

// describeRefusal returns the message of an error response. It omits messages about data,
// because they quote the data, which may be a parameter.
func describeRefusal(refused *pgconn.PgError, took time.Duration) string {
	code := "SQLSTATE " + refused.Code
	switch {
	case strings.HasPrefix(refused.Code, "22"), strings.HasPrefix(refused.Code, "23"):
		return "it refused a value: " + code
	case refused.Code == queryCanceled:
		return fmt.Sprintf("%s after %s (%s)", refused.Message, Text(took), code)
	}
	return fmt.Sprintf("%s (%s)", refused.Message, code)
}

const queryCanceled = "57014"
