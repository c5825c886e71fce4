package server

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// limitUnsent makes writes to a connection return when little of what was written is still to be
// sent. By default the kernel takes megabytes, and a client that takes minutes to read so much would
// seem to have stalled. It does not limit what is on its way to the client, and so not the rate.
func limitUnsent(c net.Conn) error {
	raw, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	control, err := raw.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = control.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, streamWrite)
	})
	if err != nil {
		return err
	}
	return set
}
