//go:build unix

package ephemeral

import (
	"errors"
	"math/rand/v2"
	"net"
	"slices"
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
// are free now, as is the port 10000 above each.
func FreePorts(tb testing.TB, n int) []int {
	tb.Helper()
	ports, err := freePorts(n)
	must(tb, "find ports", err)
	return ports
}

func freePorts(n int) (ports []int, err error) {
	for range 1000 {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if isFree(port) && isFree(port+busOffset) && !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return nil, errors.New("no free ports")
}

func isFree(port int) bool {
	listener, err := net.Listen("tcp", address(port))
	if err == nil {
		err = listener.Close()
	}
	return err == nil
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
