//go:build unix

package ephemeral

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/deploy/assert"
)

func TestGuard_RequiresTLSCertificateAndPassword(t *testing.T) {
	t.Parallel()
	server := Guard{
		TLS: true, ClientCertificates: true, Users: "user default reset\nuser commerce on +ping",
	}.StartRedis(t)
	all := redis.Options{
		Addr: server.admin.Addr, TLSConfig: server.admin.TLSConfig, Username: "commerce", Password: server.admin.Password,
		MaxRetries: -1, ReadTimeout: 10 * time.Second, DisableIdentity: true,
	}
	ping := func(edit func(*redis.Options)) error {
		o := all
		edit(&o)
		client := redis.NewClient(&o)
		defer client.Close()
		return client.Ping(t.Context()).Err()
	}
	assert.Succeeds(t, ping(func(*redis.Options) {}), "with all credentials")
	for name, edit := range map[string]func(*redis.Options){
		"plain":          func(o *redis.Options) { o.TLSConfig = nil },
		"no certificate": func(o *redis.Options) { o.TLSConfig = &tls.Config{RootCAs: all.TLSConfig.RootCAs} },
		"no authority":   func(o *redis.Options) { o.TLSConfig = &tls.Config{Certificates: all.TLSConfig.Certificates} },
		"no password":    func(o *redis.Options) { o.Username, o.Password = "", "" },
	} {
		err := ping(func(o *redis.Options) { edit(o); o.ReadTimeout = 300 * time.Millisecond })
		assert.That(t, err != nil, "%s: access was allowed", name)
	}
}

func TestGuard_ServersUseTLSWithEachOther(t *testing.T) {
	t.Parallel()
	sentinels := Guard{TLS: true}.StartSentinels(t)
	for _, server := range append(sentinels.Sentinels, sentinels.Master, sentinels.Replica) {
		conn := assert.Must(net.Dial("tcp", server.admin.Addr))(t)
		_ = conn.SetDeadline(time.Now().Add(500 * time.Millisecond))
		_, _ = conn.Write([]byte("PING\r\n"))
		answer := make([]byte, 5)
		n, _ := conn.Read(answer)
		assert.That(t, !strings.HasPrefix(string(answer[:n]), "+PONG"), "%s answers without TLS", server.URL)
		_ = conn.Close()
	}
}
