package replicas

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// maxSamples bounds the samples. At one per second they are of the last hour.
const maxSamples = 3600

// primary has samples of the position of the primary's log. The lag of a replica is the age
// of the newest sample that it shows. So a replica of an idle primary has no lag, and
// replicas do not lag further while the primary is down.
type primary struct {
	pool *pgxpool.Pool
	log  *slog.Logger

	mu      sync.Mutex
	latest  reading  // of the latest check that succeeded
	samples []sample // on the timeline of latest, ascending

	standby bool // the latest answer was that of a replica. Only check uses it
}

// sample says that everything that was committed before a time is in the log before a position.
type sample struct {
	at       time.Time
	position uint64
}

// check adds a sample.
func (p *primary) check(ctx context.Context) {
	seen, err := read(ctx, p.pool)
	if err != nil {
		return // reads of the primary report the failure
	}
	if seen.replica && !p.standby {
		p.log.WarnContext(ctx, "replicas are not compared to the primary: the server of DATABASE_URL is a replica itself")
	}
	if p.standby = seen.replica; !p.standby {
		p.add(seen)
	}
}

// add adds a sample. It drops the older samples if the primary may not have their positions: it
// has a new timeline, or was restored.
func (p *primary) add(seen reading) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if seen.database != p.latest.database || seen.timeline != p.latest.timeline || seen.position < p.latest.position {
		p.samples = nil
	}
	if len(p.samples) == maxSamples {
		p.samples = append(p.samples[:0], p.samples[maxSamples/10:]...)
	}
	p.samples = append(p.samples, sample{seen.began, seen.position})
	p.latest = seen
}

// seen returns the latest reading, the zero one before the first check that succeeded.
func (p *primary) seen() reading {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.latest
}

// lag returns the age of the rows that a replica shows. If it shows none of the samples, the lag
// is a minimum, and known is false.
func (p *primary) lag(position uint64) (lag time.Duration, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range slices.Backward(p.samples) {
		lag = p.latest.began.Sub(s.at)
		if s.position <= position {
			return lag, true
		}
	}
	return lag, false
}

// reading is what a server says about itself.
type reading struct {
	began    time.Time // when the server was asked
	ended    time.Time // when it had answered
	database database
	replica  bool      // it accepts no writes
	started  time.Time // distinguishes a server from its copies

	// position is the end of the write-ahead log: on a replica, of the part that it has replayed;
	// on a primary, of the part that is on its disk.
	position uint64
	timeline int64 // of a primary; of a replica, at least, because it notes a new one late

	refused error // why a replica cannot read subscriptions; nil: it can
}

// database identifies a database and its replicas.
type database struct {
	system int64  // the system identifier of the server
	oid    uint32 // the object ID of the database
}

// readingSQL needs no rights.
const readingSQL = `/* replica_check */
	SELECT server.replica, pg_postmaster_start_time(), (SELECT system_identifier FROM pg_control_system()),
		(SELECT oid FROM pg_database WHERE datname = current_database()),
		(CASE WHEN server.replica THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END - '0/0')::bigint,
		CASE WHEN server.replica THEN (SELECT min_recovery_end_timeline FROM pg_control_recovery()) ELSE ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint END
	FROM (SELECT pg_is_in_recovery() AS replica OFFSET 0) server`

// subscriptionsSQL fails if a replica cannot serve a list: the role or the schema of its URL may
// be another one than the primary's. It names a store, so that it needs only one shard of a
// sharded database.
const subscriptionsSQL = `/* replica_check */
	SELECT 1 FROM subscriptions s
	JOIN products p ON p.store_id = 0
	JOIN plans v ON v.store_id = 0
	JOIN saved_cards c ON c.store_id = 0
	WHERE s.store_id = 0 LIMIT 0`

func read(ctx context.Context, pool *pgxpool.Pool) (reading, error) {
	r := reading{began: time.Now()}
	err := pool.QueryRow(ctx, readingSQL).Scan(&r.replica, &r.started, &r.database.system, &r.database.oid, &r.position, &r.timeline)
	if err != nil {
		return reading{}, fmt.Errorf("read the position in the log: %w", err)
	}
	r.ended = time.Now()
	if r.replica {
		if _, err := pool.Exec(ctx, subscriptionsSQL); err != nil {
			r.refused = fmt.Errorf("read subscriptions: %w", err)
		}
	}
	return r, nil
}
