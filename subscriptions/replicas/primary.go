package replicas

import (
	"context"
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
