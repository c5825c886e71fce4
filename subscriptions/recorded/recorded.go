// Package recorded has what the readers of the records share that Postgres makes when subscriptions
// change: changes and histories.
package recorded

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/locale"
	"commerce/auth/problem"
)

// ErrNone is for a database that does not record changes, because it is sharded by store.
// Repeating the request does not help.
var ErrNone = problem.New(problem.NotFound, "", locale.Text{
	locale.En: "This service does not record changes of subscriptions. Read the list instead.",
	locale.Ar: "لا تسجّل هذه الخدمة تغييرات الاشتراكات. اقرأ القائمة بدلًا من ذلك.",
})

// Reads are reads of the records of one database.
type Reads struct {
	none atomic.Pointer[time.Time] // when the database had no records; nil: they were not missed
}

// noneFor is how long Reads remember that the database has no records. Postgres logs each
// statement that fails, so it should not be repeated for every request.
const noneFor = time.Minute

// Do calls read. It returns ErrNone if the database has no records.
func (r *Reads) Do(read func() error) error {
	if since := r.none.Load(); since != nil && time.Since(*since) < noneFor {
		return ErrNone
	}
	err := read()
	if missing(err) {
		r.none.Store(new(time.Now()))
		return ErrNone
	}
	return err
}

// missing reports whether a statement failed because the database does not have the
// migration of the changes: one that is sharded by store leaves it out.
func missing(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (refused.Code == "42P01" || refused.Code == "42703") // undefined table or column
}

// batch is about how many rows one transaction prunes, so that writers never wait long.
const batch = 10_000

// InBatches repeats a statement until it finds nothing, and returns how much it found in all, also with an
// error: ErrNone if the database has no records. The arguments are the age of what is old, and the
// maximum number of rows. The result is how many it found.
func InBatches(ctx context.Context, db *pgxpool.Pool, doing, sql string, keep time.Duration) (all int64, err error) {
	for {
		var n int64
		err := db.QueryRow(ctx, sql, keep, batch).Scan(&n)
		switch {
		case missing(err):
			return all, ErrNone
		case err != nil:
			return all, fmt.Errorf("%s: %w", doing, err)
		case n == 0:
			return all, nil
		}
		all += n
	}
}

// SumSize is the number of bytes of a checksum.
const SumSize = 8

// Checksum covers a cursor of one kind, and whose it is, so that one of another kind or owner is not accepted.
func Checksum(b []byte, kind string, owner ...int64) []byte {
	salted := append([]byte(kind), 0)
	for _, id := range owner {
		salted = binary.BigEndian.AppendUint64(salted, uint64(id))
	}
	sum := sha256.Sum256(append(salted, b...))
	return sum[:SumSize]
}

// The number of records that a page has by default and at most.
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// RowsFor returns how many rows a statement reads for a page of up to limit records, and to know whether more follow. It is one of
// two numbers, because a literal in the statement tells the planner how few rows it needs.
func RowsFor(limit int) int {
	if limit <= DefaultPage {
		return DefaultPage + 1
	}
	return MaxPage + 1
}

// ErrCursorExpired means that the changes after a cursor are no longer known, or that the
// database is not the one in which the cursor was made.
var ErrCursorExpired = problem.New(problem.CursorExpired, "after", locale.Text{
	locale.En: "The changes after this cursor are no longer known. Start again without after.",
	locale.Ar: "لم تعد التغييرات بعد هذه القيمة معروفة. ابدأ من جديد دون after.",
})
