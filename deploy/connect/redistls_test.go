package connect_test

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

// everyUser gives all rights to every user who has logged in.
const everyUser = `user default reset
user commerce on ~* &* +@all
user replica on ~* &* +@all
user sentinel on ~* &* +@all
`

func TestRedis_UsesTLSAndAUserWithEachKind(t *testing.T) {
	t.Parallel()
	guard := ephemeral.Guard{TLS: true, ClientCertificates: true, Users: everyUser}
	for name, start := range map[string]func(testing.TB) string{
		"single":    func(t testing.TB) string { return guard.StartRedis(t).URL },
		"cluster":   func(t testing.TB) string { return guard.StartCluster(t).URL },
		"sentinels": func(t testing.TB) string { return guard.StartSentinels(t).URL },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			roundTrip(t, open(t, start(t)))
		})
	}
}

func TestRedis_UsesARenewedCertificate(t *testing.T) {
	t.Parallel()
	guard := ephemeral.Guard{TLS: true, ClientCertificates: true}
	server, other := guard.StartRedis(t), guard.StartRedis(t)
	own := t.TempDir()
	copyPair := func(rawURL string) {
		for _, name := range []string{"cert_file", "key_file"} {
			pem := assert.Must(os.ReadFile(parameters(t, rawURL).Get(name)))(t)
			assert.NoError(t, os.WriteFile(filepath.Join(own, name), pem, 0o600))
		}
	}
	copyPair(other.URL) // signed by an authority that this server does not trust
	client := open(t, withParameters(t, server.URL, func(q url.Values) {
		q.Set("cert_file", filepath.Join(own, "cert_file"))
		q.Set("key_file", filepath.Join(own, "key_file"))
	}))
	err := client.Ping(t.Context()).Err()
	assert.That(t, refusedByServer(err), "with a certificate of another authority: %v", err)
	copyPair(server.URL)
	roundTrip(t, client)
}

// refusedByServer reports whether a server rejected the client's certificate. In TLS 1.3
// the client has completed the handshake by then: it reads the server's alert, or finds
// the connection closed when it writes first.
func refusedByServer(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "tls: unknown certificate authority") ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE))
}

func TestRedis_DeadlineEndsATLSHandshake(t *testing.T) {
	t.Parallel()
	server := ephemeral.Guard{TLS: true}.StartRedis(t)
	client := open(t, server.URL, func(o *redis.UniversalOptions) { o.DialTimeout = time.Minute })
	server.Freeze()
	wantLate(t, client)
}

func TestRedis_NamesABadCertificateFile(t *testing.T) {
	t.Parallel()
	guard := ephemeral.Guard{TLS: true, ClientCertificates: true}
	good, other := guard.StartRedis(t).URL, guard.StartRedis(t).URL
	for want, edit := range map[string]func(url.Values){
		"ca_file: not a regular file":                func(q url.Values) { q.Set("ca_file", os.TempDir()) },
		"ca_file holds no certificate":               func(q url.Values) { q.Set("ca_file", q.Get("key_file")) },
		"cert_file and key_file: tls: private key d": func(q url.Values) { q.Set("key_file", parameters(t, other).Get("key_file")) },
		"key_file: no such file":                     func(q url.Values) { q.Set("key_file", q.Get("key_file")+"x") },
	} {
		bad := withParameters(t, good, edit)
		_, err := connect.Redis(bad)
		assert.That(t, err != nil && strings.Contains(err.Error(), want) && !strings.ContainsAny(err.Error(), "/\n"),
			"Redis(%q): %v, want one line with %q and no path", bad, err, want)
	}
}

func parameters(t *testing.T, rawURL string) url.Values {
	t.Helper()
	return assert.Must(url.Parse(rawURL))(t).Query()
}

func withParameters(t *testing.T, rawURL string, edit func(url.Values)) string {
	t.Helper()
	query := parameters(t, rawURL)
	edit(query)
	before, _, _ := strings.Cut(rawURL, "?")
	return before + "?" + query.Encode()
}
