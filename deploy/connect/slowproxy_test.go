package connect_test

import (
	"io"
	"net"
	"testing"
	"time"

	"commerce/deploy/ephemeral"
)

// slowed returns the URL of a proxy that delays each reply of a server.
func slowed(t *testing.T, server *ephemeral.Server, delay time.Duration) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go forward(client, addr(t, server), delay)
		}
	}()
	return "redis://" + l.Addr().String()
}

// forward forwards a connection until either side closes it.
func forward(client net.Conn, to string, delay time.Duration) {
	defer client.Close()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	go func() {
		defer server.Close()
		_, _ = io.Copy(server, client)
	}()
	reply := make([]byte, 4096)
	for {
		n, err := server.Read(reply)
		if err != nil {
			return
		}
		time.Sleep(delay)
		if _, err := client.Write(reply[:n]); err != nil {
			return
		}
	}
}
