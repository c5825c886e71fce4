//go:build unix

package ephemeral

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"commerce/deploy/assert"
	"commerce/deploy/connect"
)

// Shared servers must not fail the leak checks of the packages that use them.
func TestMain(m *testing.M) {
	if os.Getenv(envAbandon) != "" {
		abandon()
	}
	redis.SetLogger(connect.RedisLog{Log: slog.New(slog.DiscardHandler)}) // go-redis logs every failed dial
	goleak.VerifyTestMain(m)
}

func statements(t *testing.T, url string, texts ...string) {
	t.Helper()
	assert.NoError(t, query(url, func(ctx context.Context, conn *pgx.Conn) error { return execute(ctx, conn, texts...) }))
}

func TestSlowness_IsMoreThanWasMeasuredAndBounded(t *testing.T) {
	t.Parallel()
	for longer, want := range map[float64]int{0: 3, 0.8: 3, 1: 3, 1.2: 4, 1.5: 4, 2: 5, 4: 9, 100: maxSlowness} {
		assert.Equal(t, slownessOf(longer), want, "%v times longer", longer)
	}
	assert.That(t, Patience(time.Second) >= time.Second && Patience(time.Second) <= maxSlowness*time.Second, "%v", Patience(time.Second))
}

func TestStartCluster_SetsClocksAhead(t *testing.T) {
	t.Parallel()
	Slow(t)
	const ahead = 2 * time.Second
	cluster := StartCluster(t, 0, ahead)
	for i, want := range []time.Duration{0, ahead, 0} {
		before := time.Now()
		now := assert.Must(cluster.Nodes[i].Admin().Time(t.Context()).Result())(t)
		if now.Before(before.Add(want-time.Second/2)) || now.After(time.Now().Add(want+time.Second/2)) {
			t.Errorf("the clock of node %d is %v ahead, want %v", i, now.Sub(before), want)
		}
	}
	left, _ := filepath.Glob("/dev/shm/*faketime*_" + strconv.Itoa(cluster.Nodes[1].process.Pid))
	assert.That(t, len(left) == 0, "left behind: %v", left)
}

func TestPostgres_DropsTheDatabaseWithTheTest(t *testing.T) {
	t.Parallel()
	var url string
	t.Run("user", func(t *testing.T) {
		url = Postgres(t)
		conn := assert.Must(pgx.Connect(t.Context(), url))(t)
		t.Cleanup(func() { _ = conn.Close(context.Background()) }) // runs after the database is dropped
	})
	if conn, err := pgx.Connect(t.Context(), url); err == nil {
		_ = conn.Close(t.Context())
		t.Errorf("%s is still there", url)
	}
}

func TestPostgresFrom_PreparesATemplateOnceAndCopiesIt(t *testing.T) {
	t.Parallel()
	var prepared atomic.Int32
	name := templateName(t)
	prepare := func(_ context.Context, url string) error {
		prepared.Add(1)
		statements(t, url, "CREATE TABLE prepared ()")
		return nil
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { statements(t, PostgresFrom(t, name, prepare), "SELECT FROM prepared", "DROP TABLE prepared") })
	}
	all.Wait()
	n := prepared.Load()
	assert.That(t, n == 1, "prepared %d times, want once", n)
}

// templateName returns a new name. Its template is dropped when the test ends.
func templateName(t *testing.T) string {
	t.Helper()
	name := strings.ToLower(rand.Text())
	server := sharedPostgres.urlFor(t)
	t.Cleanup(func() {
		err := dropDatabase(server, "template_"+name)
		assert.That(t, err == nil, "%v", err)
	})
	return name
}

// envAbandon makes the test binary act as a test process that is killed.
const envAbandon = "EPHEMERAL_ABANDON"

// abandon starts one server of each kind, prints their processes, and waits to be killed.
func abandon() {
	home, err := theHome()
	if err == nil {
		_, err = StartShared()
	}
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("directory", home.dir)
	for _, s := range allShared {
		for _, server := range s.started.servers() {
			fmt.Println("process", server.process.Pid)
		}
	}
	fmt.Println("process", home.janitor.Process.Pid)
	fmt.Println("ready")
	select {}
}

func TestStartShared_LeavesNothingBehindWhenItsProcessIsKilled(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envAbandon+"=1", EnvRedis+"=", EnvCluster+"=", EnvPostgres+"=")
	out := assert.Must(cmd.StdoutPipe())(t)
	assert.NoError(t, cmd.Start())
	var directory string
	var processes []int
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
		what, which, _ := strings.Cut(lines.Text(), " ")
		switch pid, err := strconv.Atoi(which); {
		case what == "directory":
			directory = which
		case what == "process" && err == nil:
			processes = append(processes, pid)
		default:
			t.Errorf("the process printed %q", lines.Text())
		}
	}
	assert.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	assert.Require(t, len(processes) == 9 && directory != "",
		"processes %v in %q, want 8 servers and the janitor", processes, directory)
	err := until(func(context.Context) error { return anyLeft(directory, processes) })
	assert.That(t, err == nil, "%v", err)
}

func anyLeft(directory string, processes []int) error {
	if _, err := os.Stat(directory); err == nil {
		return fmt.Errorf("%s is left", directory)
	}
	for _, pid := range processes {
		// A process that has ended but that init has not reaped yet does not count.
		if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && strings.Contains(string(state), ") Z ") {
			continue
		}
		if syscall.Kill(pid, 0) == nil {
			return fmt.Errorf("process %d is left", pid)
		}
	}
	return nil
}
