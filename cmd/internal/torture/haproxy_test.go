package torture

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"commerce/deploy/assert"
)

// startHAProxy starts haproxy as in deploy/haproxy for two instances, and returns its URL.
func startHAProxy(t testing.TB, a, b *service) string {
	t.Helper()
	program, err := exec.LookPath("haproxy")
	if err != nil {
		program = "/usr/sbin/haproxy" // Debian installs it here, which is not in every PATH
		_, err := os.Stat(program)
		assert.Require(t, err == nil, "haproxy is not installed (sh deploy/ephemeral/install.sh)")
	}
	socket, file := listening(t)
	said := filepath.Join(t.TempDir(), "log")
	log, err := os.Create(said)
	assert.NoError(t, err)
	defer log.Close()
	cmd := exec.Command(program, "-db", "-f", "../../../deploy/haproxy/haproxy.cfg")
	cmd.Env = []string{
		"LISTEN=fd@3",
		"A=" + a.addr, "A_ADMIN=" + a.admin,
		"B=" + b.addr, "B_ADMIN=" + b.admin,
	}
	cmd.ExtraFiles = []*os.File{file}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = cmd.Start()
	assert.Require(t, err == nil, "start haproxy: %v", err)
	_ = file.Close()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text, _ := os.ReadFile(said); t.Failed() {
			t.Logf("haproxy: %s", text)
		}
	})
	url := "http://" + socket
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		response, err := http.Get(url + "/openapi.yaml")
		if err == nil {
			_ = response.Body.Close()
			return url
		}
		assert.Require(t, time.Since(began) <= startLimit, "haproxy does not answer: %v", err)
	}
}

// listening returns the address and the file of a socket for another process.
func listening(t testing.TB) (string, *os.File) {
	t.Helper()
	l := assert.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return l.Addr().String(), assert.Must(l.(*net.TCPListener).File())(t)
}
