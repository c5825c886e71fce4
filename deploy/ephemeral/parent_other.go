//go:build unix && !linux

package ephemeral

import "syscall"

// dieWithParent does nothing on this system: if a test process is killed, its servers
// keep running. Otherwise StopShared and the tests' cleanups stop them.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}
