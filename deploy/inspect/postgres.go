package inspect

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/connect"
	"commerce/deploy/migrations"
)

type postgresServer struct {
	report
	db      *pgxpool.Pool
	standby bool // false also if that is hidden
}

// checkPostgres checks one server. If a statement fails, what it reads is hidden from this role.
func checkPostgres(ctx context.Context, c Config) ([]*report, error) {
	db, err := connect.Postgres(ctx, c.DatabaseURL, connect.PostgresConfig{
		ApplicationName: "commerce check", MaxConns: 2, ConnectTimeout: patience, StatementTimeout: patience,
	})
	if err != nil {
		return nil, err
	}
	defer func() { go db.Close() }() // waits for connections that hang
	at := db.Config().ConnConfig
	s := &postgresServer{report: report{server: net.JoinHostPort(at.Host, strconv.Itoa(int(at.Port)))}, db: db}
	answers, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err = db.Ping(answers); err == nil {
		s.check(ctx, c)
		err = db.Ping(ctx) // if it fails, then what is missing is not hidden
	}
	if err != nil {
		s.report = report{server: s.server}
		s.judge("postgres_answers", serious(true, "DATABASE_URL, or the server",
			"Postgres does not answer: %s. Subscriptions, and carts with products that an instance has not loaded, get a 503.", failure(err)))
	}
	return []*report{&s.report}, nil
}

// checkReplicaURL checks whether connections to the replicas are encrypted. It does not connect.
func checkReplicaURL(ctx context.Context, url string) ([]*report, error) {
	if url == "" {
		return nil, nil
	}
	db, err := connect.Postgres(ctx, url, connect.PostgresConfig{})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	r := &report{server: "replicas of Postgres"}
	r.judgeTLS("postgres_tls", postgresTLS+"DATABASE_REPLICA_URL", encrypted(&db.Config().ConnConfig.Config))
	return []*report{r}, nil
}

func (s *postgresServer) check(ctx context.Context, c Config) {
	s.judge("postgres_answers", ok("Postgres answers."))
	s.judgeTLS("postgres_tls", postgresTLS+"DATABASE_URL", encrypted(&s.db.Config().ConnConfig.Config))
	s.clock = c.readClock("postgres_clock", postgresClockBreaks, func() (at time.Time, err error) {
		return at, s.db.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&at)
	})
	var version int
	err := s.db.QueryRow(ctx, "SELECT current_setting('server_version_num')::int, pg_is_in_recovery()").Scan(&version, &s.standby)
	s.judgeVersion(version, err)
	schema := migrations.Check(ctx, s.db)
	s.judgeSchema(schema)
	s.judgeICU(ctx)
	s.judgeReads(ctx)
	s.judgeWrites(ctx, schema == nil)
	s.judge("postgres_primary",
		unknown(err != nil, "pg_is_in_recovery", "It is not visible whether this server is a primary."),
		serious(s.standby, "DATABASE_URL: the primary",
			"Revoked API tokens work, and old prices and stock show, for as long as this hot standby lags. "+
				"It sends no notifications, and does not record uses of API tokens."),
		ok("This server is a primary."))
	if !s.standby {
		arrives, err := s.notifies(ctx)
		s.judge("postgres_listen",
			unknown(err != nil, "LISTEN and pg_notify", "It is not visible whether notifications arrive."),
			warning(!arrives, "DATABASE_URL: connect directly, or through a pooler in session mode",
				"Changes of the catalog can take 1 second to show, because notifications do not arrive. "+
					"A possible cause is a pooler in transaction mode."),
			ok("Notifications arrive."))
	}
	s.judgePooler(ctx)
	s.judgeSettings(ctx)
	s.judgeWriting(s.oldestWriting(ctx, c))
}

func encrypted(c *pgconn.Config) bool {
	private := c.TLSConfig != nil || local(c.Host)
	for _, other := range c.Fallbacks { // further hosts, and the same host without TLS
		private = private && (other.TLSConfig != nil || local(other.Host))
	}
	return private
}

func (s *postgresServer) judgeVersion(version int, err error) {
	s.judge("postgres_version",
		unknown(err != nil, "server_version_num", "The version is not visible. The service needs Postgres 15 or later."),
		serious(version < 150000, "the version of Postgres", "This is Postgres %d. The migrations need Postgres 15 or later.", version/10000),
		ok("This is Postgres %d.", version/10000))
}

// grants is the command that gives the service's role its rights.
const grants = "SERVICE_ROLE=<role> commerce migrate up, as the owner of the tables"

// judgeSchema judges what migrations.Check returns. The cause is what that adds to the reason which
// it wraps, such as the two versions.
func (s *postgresServer) judgeSchema(err error) {
	var cause string
	if reason := errors.Unwrap(err); reason != nil {
		cause = strings.TrimSuffix(err.Error(), ": "+reason.Error())
	}
	s.judge("postgres_schema",
		unknown(errors.Is(err, migrations.ErrRights), grants,
			"It is not visible whether the schema has what this release needs, because the role lacks rights (%s).", cause),
		serious(errors.Is(err, migrations.ErrOlder), "commerce migrate up", "The service does not start, because it needs a newer schema (%s).", cause),
		serious(errors.Is(err, migrations.ErrEarly), "another database, and commerce migrate up there",
			"The service does not start, because the schema is from before the first release (%s).", cause),
		serious(err != nil, grants, "The service does not become ready, because it cannot read the version of the schema: %s.", failure(err)),
		ok("The schema has what this release needs."))
}

func (s *postgresServer) judgeICU(ctx context.Context) {
	var has bool
	err := s.db.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu')").Scan(&has)
	s.judge("postgres_icu",
		unknown(err != nil, "pg_collation", "It is not visible whether Postgres has ICU, which the migrations need."),
		serious(!has, "a Postgres that is built with ICU", "The migrations fail, because Postgres has no collation und-x-icu."),
		ok("Postgres has ICU."))
}

// judgePooler judges what a pooler leaves to the role: sessions have no settings of the service there.
func (s *postgresServer) judgePooler(ctx context.Context) {
	var pooled bool
	var timeout string
	err := s.db.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		pooled = connect.Pooled(conn.Conn())
		return conn.QueryRow(ctx, "SHOW statement_timeout").Scan(&timeout)
	})
	s.judge("postgres_pooler",
		unknown(err != nil, "statement_timeout", "The setting statement_timeout is not visible."),
		warning(pooled && timeout == "0", "ALTER ROLE <role> SET statement_timeout = '10s'",
			"Behind a pooler, only the role has a statement timeout, and this one has none. A statement can run on for long after its instance has died."),
		ok("Postgres ends statements that take too long."))
}

type setting struct {
	value string
	own   bool // set for this role only, so other roles may have another value
}

func (s *postgresServer) judgeSettings(ctx context.Context) {
	const fsync, pages, commit, idle = "fsync", "full_page_writes", "synchronous_commit", "idle_in_transaction_session_timeout"
	found := map[string]setting{}
	rows, _ := s.db.Query(ctx, "SELECT name, setting, source IN ('user', 'database user', 'client') FROM pg_settings WHERE name = ANY($1)",
		[]string{fsync, pages, commit, idle})
	var name string
	var is setting
	_, _ = pgx.ForEachRow(rows, []any{&name, &is.value, &is.own}, func() error {
		found[name] = is
		return nil
	})
	hidden := func(name string) outcome {
		_, known := found[name]
		return unknown(!known, name, "The setting %s is not visible.", name)
	}
	own := func(name string) outcome {
		return unknown(found[name].own, name, "%s is set for this role. Its value for other roles, such as the platform's, is not visible.", name)
	}
	s.judge("postgres_fsync",
		hidden(fsync),
		serious(found[fsync].value != "on", "fsync on", "If the machine dies, the database can be damaged or lose committed changes."),
		ok("Commits are written to the disk."))
	s.judge("postgres_full_page_writes",
		hidden(pages),
		warning(found[pages].value != "on", "full_page_writes on",
			"If the machine dies while it writes a page, the page can be damaged, unless the file system prevents that."),
		ok("Postgres repairs pages that were only partly written."))
	s.judge("postgres_synchronous_commit",
		hidden(commit),
		warning(found[commit].value == "off", "synchronous_commit on",
			"A crash can lose the last commits, such as a revocation of an API token or a use of a coupon. Changes of subscriptions are not affected."),
		own(commit),
		ok("Commits are on the disk before they are acknowledged."))
	s.judge("postgres_idle_in_transaction",
		hidden(idle),
		own(idle),
		warning(found[idle].value == "0", idle, "If a client does not end its transaction, it delays the subscription changes of all stores while it stays connected."),
		ok("Postgres ends transactions that wait for their client too long."))
}

const longWriting = 2 * time.Minute

// oldestWriting returns how long ago the oldest transaction began that has written something,
// including prepared ones, or 0 if there is none. known is false if the role does not see the transactions of other roles, and
// there is no earlier check to compare with: a snapshot shows every role which the oldest one is.
func (s *postgresServer) oldestWriting(ctx context.Context, c Config) (age time.Duration, known bool) {
	var seconds float64
	var writing string
	_ = s.db.QueryRow(ctx, `
		SELECT coalesce(extract(epoch FROM clock_timestamp() - min(begun)), 0)::float8,
			pg_has_role('pg_read_all_stats', 'USAGE'),
			(SELECT CASE WHEN pg_snapshot_xmin(now) < pg_snapshot_xmax(now) THEN pg_snapshot_xmin(now)::text ELSE '' END FROM pg_current_snapshot() now)
		FROM (
			SELECT xact_start FROM pg_stat_activity WHERE backend_xid IS NOT NULL
			UNION ALL
			SELECT prepared FROM pg_prepared_xacts
		) AS writing (begun)`).Scan(&seconds, &known, &writing)
	age = time.Duration(seconds * float64(time.Second))
	if last := c.Last; last != nil && !known {
		if known = true; writing != last.writing || writing == "" {
			last.writing, last.since = writing, c.Now()
		}
		age = max(age, c.Now().Sub(last.since))
	}
	return age, known
}

func (s *postgresServer) judgeWriting(age time.Duration, known bool) {
	s.judge("postgres_long_transaction",
		warning(age >= longWriting, "the transaction (docs/data.md, Long transactions)",
			"The subscription changes of all stores are delayed: a writing transaction has been open for %s.", age.Round(time.Second)),
		unknown(!known, "pg_stat_activity, as a role with pg_monitor",
			"It is not visible how long the oldest writing transaction has been open. A long one delays the subscription changes of all stores."),
		ok("No writing transaction has been open for %s.", longWriting))
}
