package connect

import (
	"net"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// PostgresHosts returns the hosts of url with their ports, each once, in their order. Errors are
// those of Postgres.
func PostgresHosts(url string) ([]string, error) {
	pool, err := parsePostgresURL(url)
	if err != nil {
		return nil, err
	}
	var hosts []string
	for _, target := range targets(pool.ConnConfig) {
		if host := address(target); !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts, nil
}

// keepOnly removes the other hosts. A host that is not one of config changes nothing.
func keepOnly(config *pgx.ConnConfig, host string) {
	kept := slices.DeleteFunc(targets(config), func(target *pgconn.FallbackConfig) bool { return address(target) != host })
	if len(kept) > 0 {
		config.Host, config.Port, config.TLSConfig = kept[0].Host, kept[0].Port, kept[0].TLSConfig
		config.Fallbacks = kept[1:]
	}
}

// targets returns what pgx tries to connect to, in its order. A host can occur twice, with and
// without TLS.
func targets(config *pgx.ConnConfig) []*pgconn.FallbackConfig {
	first := &pgconn.FallbackConfig{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig}
	return append([]*pgconn.FallbackConfig{first}, config.Fallbacks...)
}

func address(target *pgconn.FallbackConfig) string {
	return net.JoinHostPort(target.Host, strconv.Itoa(int(target.Port)))
}
