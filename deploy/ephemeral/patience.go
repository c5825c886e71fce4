//go:build unix

package ephemeral

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"commerce/deploy/connect"
)

// EnvSlowness is how many times slower this machine is during the tests than an idle one, as a whole number: 1 to
// maxSlowness. The command in ./run measures it. Without it, a process measures it itself when it first waits.
const EnvSlowness = "TEST_SLOWNESS"

const maxSlowness = 10

var slowness = sync.OnceValue(func() int {
	if given, err := strconv.Atoi(os.Getenv(EnvSlowness)); err == nil {
		return min(max(given, 1), maxSlowness)
	}
	return slownessOf(timeWork(5))
})

// Patience returns how long to wait on this machine for what takes at most d on an idle one. Every deadline of a test is
// one, and every timeout of the service that the test is not about.
func Patience(d time.Duration) time.Duration { return d * time.Duration(slowness()) }

// PatientRedis gives a client of connect.Redis timeouts with which no command fails because the machine is busy.
func PatientRedis(o *redis.UniversalOptions) { connect.Within(Patience(5 * time.Second))(o) }

// Until repeats attempt until it succeeds. If it does not for 20 s of Patience, the test fails and ends.
func Until(tb testing.TB, attempt func() error) {
	tb.Helper()
	must(tb, "wait", until(func(context.Context) error { return attempt() }))
}

// Eventually is Until for a condition. what says what the test waits for.
func Eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	Until(tb, func() error {
		if !holds() {
			return errors.New(what)
		}
		return nil
	})
}

// slownessOf returns the slowness for how many times longer something takes than on an idle machine. It is
// more than that, because the tests themselves keep the machine busy.
func slownessOf(longer float64) int { return min(max(int(math.Ceil(2*longer))+1, 3), maxSlowness) }

// measureSlowness takes about a second.
func measureSlowness(redisURL, postgresURL string) (int, error) {
	longest := timeWork(30)
	for range 10 {
		began := time.Now()
		if err := pingRedis(redisURL); err != nil {
			return 0, fmt.Errorf("measure Redis: %w", err)
		}
		longest = max(longest, ratio(time.Since(began), 10*time.Millisecond))
		began = time.Now()
		if err := query(postgresURL, func(ctx context.Context, conn *pgx.Conn) error { return conn.Ping(ctx) }); err != nil {
			return 0, fmt.Errorf("measure Postgres: %w", err)
		}
		longest = max(longest, ratio(time.Since(began), 30*time.Millisecond))
	}
	return slownessOf(longest), nil
}

func pingRedis(url string) error {
	client, err := connect.Redis(url, func(o *redis.UniversalOptions) { o.DialTimeout, o.ReadTimeout = startLimit, startLimit }) // Patience is not known yet
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Ping(context.Background()).Err()
}

// timeWork does pieces of work on all CPUs at once. It returns how many times longer they take than on an idle machine.
func timeWork(pieces int) float64 {
	began := time.Now()
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			var sum [sha256.Size]byte
			for range pieces * 250_000 {
				sum = sha256.Sum256(sum[:])
			}
		})
	}
	all.Wait()
	return ratio(time.Since(began), time.Duration(pieces)*20*time.Millisecond)
}

func ratio(took, idle time.Duration) float64 { return took.Seconds() / idle.Seconds() }
