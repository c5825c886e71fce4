// Package suite runs tests of subscriptions on every implementation, over HTTP, with all that can be added to them.
package suite

import (
	"cmp"
	"context"
	"flag"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions"
	"commerce/subscriptions/feed"
	"commerce/subscriptions/figures"
	"commerce/subscriptions/history"
	"commerce/subscriptions/postgres"
	"commerce/subscriptions/subscriptionshttp"
)

// Source is a source of subscriptions and of all that can be added to them.
type Source interface {
	subscriptions.Source
	feed.Source
	history.Source
	figures.Source
}

type (
	rowsInMemory    = subscriptions.Memory
	changesInMemory = feed.Memory
	pastInMemory    = history.Memory
	sumsInMemory    = figures.Memory

	rowsInPostgres    = postgres.Source
	changesInPostgres = feed.Postgres
	pastInPostgres    = history.Postgres
	sumsInPostgres    = figures.Postgres
)

// Memory is a Source in memory.
type Memory struct {
	*rowsInMemory
	*changesInMemory
	*pastInMemory
	*sumsInMemory
}

func NewMemory(customers []subscriptions.Customer, all []subscriptions.Subscription) Memory {
	rows := subscriptions.NewMemory(customers, all)
	past := history.NewMemory(rows)
	return Memory{rows, feed.NewMemory(rows), past, figures.NewMemory(rows, past)}
}

// Postgres is a Source in Postgres. All of it uses one pool.
type Postgres struct {
	*rowsInPostgres
	*changesInPostgres
	*pastInPostgres
	*sumsInPostgres
}

// NewPostgres returns a source that reads all from the same servers.
func NewPostgres(c postgres.Config) Postgres { return Parts{Config: c}.Source() }

// Parts are what a source in Postgres is made of.
type Parts struct {
	postgres.Config
	Sums     *pgxpool.Pool   // for figures; nil: Pool
	Base     context.Context // ends figures; nil: context.Background()
	Log      *slog.Logger
	Timeline func() int64 // nil: unknown
}

func (p Parts) Source() Postgres {
	sums := p.Config
	sums.Pool = cmp.Or(p.Sums, p.Pool)
	servers := postgres.NewServers(p.Config)
	rows := postgres.New(servers, p.Log)
	return Postgres{
		rows, feed.NewPostgres(rows, p.Timeline), history.NewPostgres(rows, p.Timeline),
		figures.NewPostgres(cmp.Or(p.Base, context.Background()), postgres.NewServers(sums)),
	}
}

// Calls are the calls that can be added to a list, of a Source.
func Calls(source Source) []subscriptionshttp.Calls {
	return []subscriptionshttp.Calls{feed.Calls(source), history.Calls(source), figures.Calls(figures.Config{Source: source})}
}

// sources are the implementations that every test of the suite runs on.
var sources = map[string]func(t *testing.T, d Data) Source{
	"memory":   func(_ *testing.T, d Data) Source { return NewMemory(d.Customers, d.All) },
	"postgres": func(t *testing.T, d Data) Source { return Patient(Filled(t, d)) },
	"postgres with partitions": func(t *testing.T, d Data) Source {
		pool := PlanningOnce(t, Partitioned(t))
		Fill(t, pool, d)
		return Patient(pool)
	},
}

// Patient returns a source with time for a busy machine.
func Patient(pool *pgxpool.Pool) Postgres { return NewPostgres(PatientConfig(pool)) }

func PatientConfig(pool *pgxpool.Pool) postgres.Config {
	return postgres.Config{Pool: pool, Budget: ephemeral.Patience(10 * time.Second), Wait: ephemeral.Patience(5 * time.Second)}
}

// OnEach runs a test on every implementation.
func OnEach(t *testing.T, d Data, test func(t *testing.T, b Bundle)) {
	for name, source := range sources {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, NewBundle(source(t, d)))
		})
	}
}

// Main runs the tests of a package. It fails if goroutines are left.
func Main(m *testing.M) {
	flag.Bool("update", false, "write the answers as they are now into testdata")
	gin.SetMode(gin.ReleaseMode)
	goleak.VerifyTestMain(m)
}

// Slow marks a test that takes seconds. It runs beside others.
func Slow(t *testing.T) {
	t.Helper()
	t.Parallel()
	ephemeral.Slow(t)
}

// SkipBehindPooler skips a test that needs a direct connection.
func SkipBehindPooler(t *testing.T) {
	t.Helper()
	if os.Getenv(ephemeral.EnvPooler) != "" {
		t.Skip("needs a direct connection")
	}
}

// PassBehindPooler runs the tests of the package behind a pooler, except for the slow ones and for those that need a
// direct connection.
func PassBehindPooler(t *testing.T) {
	Slow(t)
	for _, mode := range []string{"transaction", "session"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			tests := exec.CommandContext(t.Context(), assert.Must(os.Executable())(t), "-test.short")
			tests.Env = append(os.Environ(), ephemeral.EnvPooler+"="+mode)
			out, err := tests.CombinedOutput()
			assert.That(t, err == nil, "%v:\n%s", err, out)
		})
	}
}
