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
// are free now, as is the port 10000 above each.
func FreePorts(tb testing.TB, n int) []int {
	tb.Helper()
	ports, err := freePorts(n)
	must(tb, "find ports", err)
	return ports
}

// freePorts returns n ports of 127.0.0.1 that are free now, as is the port busOffset above
// each.
func freePorts(n int) ([]int, error) {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	var ports []int
	for tries := 0; len(ports) < n; tries++ {
		if tries == 1000 {
			return nil, errors.New("no free ports")
		}
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		own, err := net.Listen("tcp", address(port))
		if err != nil {
			continue
		}
		held = append(held, own)
		bus, err := net.Listen("tcp", address(port+busOffset))
		if err != nil {
			continue
		}
		held = append(held, bus)
		ports = append(ports, port)
	}
	return ports, nil
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
