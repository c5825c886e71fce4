package inspect

import (
	"context"
	"io"
	"net"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

// What is between the check and Postgres: a pooler, or a network that breaks.

func TestPooler_NeedsATimeoutOfTheRoleAndDeliversNotificationsOnlyInSessionMode(t *testing.T) {
	t.Parallel()
	for mode, listens := range map[string]Level{"transaction": Warning, "session": OK} {
		for timeout, ends := range map[string]Level{"0": Warning, "10s": OK} {
			url := ephemeral.Postgres(t)
			owner := ephemeral.OpenPool(t, url, connect.PostgresConfig{Writable: true})
			database := pgx.Identifier{owner.Config().ConnConfig.Database}.Sanitize()
			assert.Must(owner.Exec(t.Context(), "ALTER DATABASE "+database+" SET statement_timeout = '"+timeout+"'"))(t)
			got, err := Servers(t.Context(), Config{DatabaseURL: ephemeral.Pooler(t, url, mode)})
			is := map[string]Level{}
			for _, f := range got {
				is[f.Code] = f.Level
			}
			assert.That(t, err == nil && is["postgres_answers"] == OK && is["postgres_listen"] == listens && is["postgres_pooler"] == ends,
				"%s mode, timeout %s: %v, %v", mode, timeout, is, err)
		}
	}
}

// The server may stop answering while it is checked.
func TestPostgres_StallsInTheMiddle(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	database := assert.Must(url.Parse(ephemeral.Migrated(t)))(t)
	for _, bytes := range []int64{900, 1500} { // of the server's replies on each connection
		through := *database
		through.Host = serve(t, func(client net.Conn) {
			server, err := net.Dial("tcp", database.Host)
			if err != nil {
				_ = client.Close()
				return
			}
			context.AfterFunc(t.Context(), func() { _ = client.Close(); _ = server.Close() })
			go func() { _, _ = io.CopyN(client, server, bytes) }()
			go func() { _, _ = io.Copy(server, client) }()
		})
		check(t, "stalled", Config{DatabaseURL: through.String()}, wrong{"postgres_answers": Serious})
	}
}
