package ephemeral

import "syscall"

// dieWithParent makes the kernel send signal to the child when this process ends, even if
// it is killed. The kernel watches the thread that forked, not the process. Go ends a
// thread early only if a goroutine that is locked to it returns, so callers must not
// start servers from such a goroutine.
func dieWithParent(attr *syscall.SysProcAttr, signal syscall.Signal) {
	attr.Pdeathsig = signal
}
