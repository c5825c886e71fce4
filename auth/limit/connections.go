package limit

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Connections is a listener that has a limited number of connections open, so that clients leave file
// descriptors for the rest of the process. Further clients wait until one is closed.
type Connections struct {
	*net.TCPListener
	full   func()
	places chan struct{}
	closed chan struct{}
	close  sync.Once
}

// NewConnections limits the connections of a listener. While a client may be waiting for one, it calls full
// about once a second, which should close those that are idle.
func NewConnections(l *net.TCPListener, maximum int, full func()) *Connections {
	return &Connections{TCPListener: l, full: full, places: make(chan struct{}, maximum), closed: make(chan struct{})}
}

// Open returns how many connections are open.
func (l *Connections) Open() int { return len(l.places) }

// Accept implements net.Listener.
func (l *Connections) Accept() (net.Conn, error) {
	if err := l.enter(); err != nil {
		return nil, err
	}
	c, err := l.AcceptTCP()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &connection{TCPConn: c, of: l}, nil
}

func (l *Connections) enter() error {
	select {
	case l.places <- struct{}{}:
		return nil
	default:
	}
	for {
		l.full()
		select {
		case l.places <- struct{}{}:
			return nil
		case <-l.closed:
			return net.ErrClosed
		case <-time.After(time.Second):
		}
	}
}

// Close implements net.Listener.
func (l *Connections) Close() error {
	l.close.Do(func() { close(l.closed) })
	return l.TCPListener.Close()
}

// connection has all methods of a TCP connection, since net/http and streams use more than those of net.Conn.
type connection struct {
	*net.TCPConn
	of   *Connections
	left atomic.Bool
}

func (c *connection) Close() error {
	err := c.TCPConn.Close()
	if !c.left.Swap(true) {
		<-c.of.places
	}
	return err
}
