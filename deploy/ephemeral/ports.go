//go:build unix

package ephemeral

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// Ports are below those that Linux assigns to outgoing connections (32768 and up), so
// that no port is taken between the check and the start. A cluster node also needs the
// port 10000 above its own.
const (
	firstPort = 12000
	lastPort  = 21999
	busOffset = 10000
)

// FreePorts returns n different ports of 127.0.0.1 for servers that a test starts itself. They
// are free now, as is the port 10000 above each, and no other call returns them until the test ends.
func FreePorts(tb testing.TB, n int) []int {
	tb.Helper()
	ports, claimed, err := freePorts(n)
	tb.Cleanup(claimed.release)
	must(tb, "find ports", err)
	return ports
}

// claims keep ports from other tests, of this process and of others, also while a server starts or
// restarts. Each is the UDP port of the same number, which no server needs.
type claims []net.PacketConn

func (c claims) release() {
	for _, claim := range c {
		_ = claim.Close()
	}
}

func freePorts(n int) (ports []int, claimed claims, err error) {
	for range 1000 {
		if len(ports) == n {
			return ports, claimed, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		claim, err := net.ListenPacket("udp", address(port))
		if err != nil {
			continue
		}
		claimed = append(claimed, claim)
		if isFree(port) && isFree(port+busOffset) {
			ports = append(ports, port)
		}
	}
	return nil, claimed, errors.New("no free ports")
}

func isFree(port int) bool {
	listener, err := net.Listen("tcp", address(port))
	if err == nil {
		err = listener.Close()
	}
	return err == nil
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
