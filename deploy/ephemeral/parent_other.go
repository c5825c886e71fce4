//go:build unix && !linux

package ephemeral

import "syscall"

// dieWithParent can do nothing here: servers of a test process that is killed
// stay. Those of a process that ends by itself are stopped by Fleet.Stop and
// the tests' cleanups.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}
