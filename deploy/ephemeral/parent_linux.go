package ephemeral

import "syscall"

// dieWithParent makes the kernel send signal to the child when we end, however
// that happens. The kernel watches the thread that forked, not the process; Go
// ends a thread before the process only when a goroutine that is locked to it
// returns, so callers of this package do not start servers from one that is.
func dieWithParent(attr *syscall.SysProcAttr, signal syscall.Signal) {
	attr.Pdeathsig = signal
}
