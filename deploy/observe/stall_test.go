package observe_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"testing"

	"commerce/deploy/ephemeral"
	"commerce/deploy/inspect"
	"commerce/deploy/observe"
)

// stalling returns the address of a proxy to host:port. It passes on so many bytes of the
// server's replies for each connection, and then nothing.
func stalling(t *testing.T, upstream string, bytes int64) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", upstream)
			if err != nil {
				_ = client.Close()
				return
			}
			context.AfterFunc(t.Context(), func() { _ = client.Close(); _ = server.Close() })
			go func() { _, _ = io.CopyN(client, server, bytes) }()
			go func() { _, _ = io.Copy(server, client) }()
		}
	}()
	return listener.Addr().String()
}

// The server may stop answering while it is read.
func TestPostgres_StallsInTheMiddle(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	database, err := url.Parse(ephemeral.Migrated(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, bytes := range []int64{900, 1500} {
		through := *database
		through.Host = stalling(t, database.Host, bytes)
		wantWrong(t, "stalled", findings(t, observe.Config{DatabaseURL: through.String()}, inspect.Expect{}), wrong{"postgres_answers": inspect.Serious})
	}
}
