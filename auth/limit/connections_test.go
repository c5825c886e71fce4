package limit_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"commerce/auth/limit"
	"commerce/deploy/assert"
)

// While all places are taken, another client gets the place of an idle connection. One whose request is in progress
// keeps its own.
func TestConnections_AreLimitedAndIdleOnesMakeRoom(t *testing.T) {
	t.Parallel()
	const maximum = 3
	release := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-release
		}
	}))
	l := limit.NewConnections(server.Listener.(*net.TCPListener), maximum, func() {
		server.Config.SetKeepAlivesEnabled(false)
		server.Config.SetKeepAlivesEnabled(true)
	})
	server.Listener = l
	server.Start()
	defer server.Close()
	var idle []net.Conn
	get := func(path string) net.Conn {
		conn := assert.Must(net.Dial("tcp", server.Listener.Addr().String()))(t)
		t.Cleanup(func() { conn.Close() })
		assert.Must(io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: shop\r\n\r\n"))(t)
		return conn
	}
	slow := get("/slow")
	for range 2 * maximum {
		conn := get("/")
		idle = append(idle, conn)
		assert.Equal(t, read(t, conn)[:len("HTTP/1.1 200 OK")], "HTTP/1.1 200 OK", "a client is served")
		assert.That(t, l.Open() <= maximum, "%d connections are open", l.Open())
	}
	_, err := io.Copy(io.Discard, idle[0])
	assert.Succeeds(t, err, "an idle connection that makes room is closed")
	close(release)
	assert.That(t, strings.HasPrefix(read(t, slow), "HTTP/1.1 200 OK"), "a request in progress loses its connection")
}

func TestConnections_CloseWhileAClientWaits(t *testing.T) {
	t.Parallel()
	l := limit.NewConnections(assert.Must(net.Listen("tcp", "127.0.0.1:0"))(t).(*net.TCPListener), 1, func() {})
	assert.Must(net.Dial("tcp", l.Addr().String()))(t)
	first := assert.Must(l.Accept())(t)
	ended := make(chan error)
	go func() {
		_, err := l.Accept()
		ended <- err
	}()
	time.Sleep(10 * time.Millisecond) // so that it waits, usually
	assert.NoError(t, l.Close())
	err := <-ended
	assert.That(t, errors.Is(err, net.ErrClosed), "accepting ends with %v", err)
	_, _ = first.Close(), first.Close() // gives its place back once
	assert.Equal(t, l.Open(), 0, "open connections")
}

func read(t *testing.T, conn net.Conn) string {
	t.Helper()
	assert.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	b := make([]byte, 1024)
	n, err := conn.Read(b)
	assert.Require(t, err == nil, "read: %v", err)
	return string(b[:n])
}
