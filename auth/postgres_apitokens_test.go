package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

// tokenTable adds the stores of testStores to a database, and returns db.
func tokenTable(t *testing.T, db *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	assert.Must(db.Exec(t.Context(), "INSERT INTO stores (id, name, currency) VALUES (1, 'One', 'SAR'), (2, 'Two', 'USD')"))(t)
	return db
}

func newTokenTable(t *testing.T) (*pgxpool.Pool, *PostgresAPITokens) {
	t.Helper()
	db := tokenTable(t, ephemeral.MigratedPool(t))
	return db, NewPostgresAPITokens(db)
}

func create(t *testing.T, table *PostgresAPITokens, name string) string {
	t.Helper()
	return assert.Must(table.Create(t.Context(), 1, name))(t)
}

func TestPostgresAPITokens_StoresOnlyAHashOfTheSecret(t *testing.T) {
	t.Parallel()
	db, table := newTokenTable(t)
	text := create(t, table, "export script")
	id, secret, ok := ParseAPIToken(text)
	assert.Require(t, ok, "%q is not an API token", text)
	var row string
	assert.NoError(t, db.QueryRow(t.Context(), "SELECT row_to_json(t)::text FROM api_tokens t").Scan(&row))
	assert.That(t, !strings.Contains(row, secret) && strings.Contains(row, "export script"),
		"the row is %s: want the name in it and not the secret", row)
	found, err := table.APIToken(t.Context(), id)
	assert.That(t, err == nil && found.StoreID == 1 && found.Name == "export script" && found.RevokedAt == nil && found.LastUsedAt == nil,
		"found %+v, %v", found, err)
	_ = assert.Must(db.Exec(t.Context(), "ALTER TABLE api_tokens ALTER name TYPE varchar(255)"))(t) // the statement must be prepared again
	tokens := NewAPITokens(APITokensConfig{Source: table, Stores: testStores()})
	store, used, err := tokens.Identify(apiRequest(text), "")
	assert.That(t, err == nil && store.ID == 1 && used == id, "identified as %v by %d, %v", store, used, err)
}

func TestPostgresAPITokens_NotFound(t *testing.T) {
	t.Parallel()
	_, table := newTokenTable(t)
	_, err := table.APIToken(t.Context(), 7)
	assert.That(t, errors.Is(err, ErrNoAPIToken), "found nothing: %v, want ErrNoAPIToken", err)
	assert.ErrorIs(t, table.Revoke(t.Context(), 7), ErrNoAPIToken, "revoked nothing")
	_, err = table.Create(t.Context(), 99, "x")
	assert.That(t, errors.Is(err, ErrNoStore), "for no store: %v, want ErrNoStore", err)
}

// Instances share only the table: nothing notifies them of a revocation.
func TestPostgresAPITokens_RevocationIsSeenWithinASecondByEveryInstance(t *testing.T) {
	t.Parallel()
	db, table := newTokenTable(t)
	instances := make([]*APITokens, 3)
	for i := range instances {
		instances[i] = NewAPITokens(APITokensConfig{Source: NewPostgresAPITokens(db), Stores: testStores()})
	}
	// A machine may be busy for a moment, but not each time.
	const tries = 8
	for try := 1; ; try++ {
		late := revocationIsLate(t, table, instances)
		if late == "" {
			break
		}
		assert.Require(t, try != tries, "the last of %d tries: %s", tries, late)
	}
	const id = 1
	first := assert.Must(table.List(t.Context()))(t)
	assert.NoError(t, table.Revoke(t.Context(), id)) // again
	second := assert.Must(table.List(t.Context()))(t)
	assert.That(t, first[0].RevokedAt != nil && second[0].RevokedAt.Equal(*first[0].RevokedAt),
		"revoked at %v, then %v: want the first time kept", first[0].RevokedAt, second[0].RevokedAt)
}

// revocationIsLate revokes a new token and returns which instance accepts it for more than
// a second, if any.
func revocationIsLate(t *testing.T, table *PostgresAPITokens, instances []*APITokens) string {
	t.Helper()
	text := create(t, table, "script")
	id, _, _ := ParseAPIToken(text)
	for i, tokens := range instances {
		if _, _, err := tokens.Identify(apiRequest(text), ""); err != nil {
			return fmt.Sprintf("instance %d, before: %v", i, err)
		}
	}
	assert.NoError(t, table.Revoke(t.Context(), id))
	revoked := time.Now()
	for i, tokens := range instances {
		for {
			sent := time.Since(revoked)
			_, _, err := tokens.Identify(apiRequest(text), "")
			if errors.Is(err, errAPITokenRevoked) {
				break
			}
			if sent > time.Second {
				return fmt.Sprintf("instance %d: still good %v after it was revoked (%v)", i, sent, err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return ""
}

func TestLastUsed_IsWrittenInBatches(t *testing.T) {
	t.Parallel()
	db, table := newTokenTable(t)
	for range 3 {
		create(t, table, "script")
	}
	at := time.Date(2025, 11, 20, 10, 0, 0, 0, time.UTC)
	used := NewLastUsed(LastUsedConfig{Pool: db, Now: func() time.Time { return at }, Log: slog.New(slog.DiscardHandler)})
	used.Record(1)
	at = at.Add(time.Minute)
	used.Record(1)
	used.Record(2)
	used.Record(999) // does not exist
	flush := func() { t.Helper(); assert.NoError(t, used.Flush(t.Context())) }
	flush()
	want := func(id int, want *time.Time) {
		t.Helper()
		got := assert.Must(table.List(t.Context()))(t)[id-1].LastUsedAt
		assert.That(t, (got == nil) == (want == nil) && (got == nil || got.Equal(*want)),
			"token %d was last used at %v, want %v", id, got, want)
	}
	latest := at
	want(1, &latest)
	want(2, &latest)
	want(3, nil)

	at = at.Add(-time.Hour) // another instance writes an older time later
	used.Record(1)
	flush()
	want(1, &latest)
}

func TestLastUsed_KeepsWhatCannotBeWritten(t *testing.T) {
	t.Parallel()
	db, table := newTokenTable(t)
	create(t, table, "script")
	used := NewLastUsed(LastUsedConfig{Pool: db, Log: slog.New(slog.DiscardHandler), Every: time.Hour})
	used.Record(1)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	err := used.Flush(gone)
	assert.Require(t, err != nil, "written without a connection")
	used.Run(gone) // writes, then returns immediately
	token, err := table.APIToken(t.Context(), 1)
	assert.That(t, err == nil && token.LastUsedAt != nil, "last used at %v (%v), want a time", token.LastUsedAt, err)
}

// roles grants the deploy files' role the service's rights, and returns its URL.
func roles(t *testing.T, owner string) (service string) {
	t.Helper()
	script := assert.Must(os.ReadFile("../deploy/postgres/roles.sql"))(t)
	db := ephemeral.OpenPool(t, owner, connect.PostgresConfig{Writable: true})
	for range 2 { // safe to repeat
		_, err := db.Exec(t.Context(), string(script))
		assert.Require(t, err == nil, "roles.sql: %v", err)
		assert.NoError(t, ephemeral.Grant(t.Context(), owner, "commerce_service"))
	}
	u := must(url.Parse(owner))
	u.User = url.User("commerce_service")
	return u.String()
}

func TestRoles_TheServiceReadsAndWritesOnlyLastUse(t *testing.T) {
	t.Parallel()
	owner := ephemeral.StartPostgres(t).URL
	assert.NoError(t, ephemeral.Migrate(t.Context(), owner))
	text := create(t, NewPostgresAPITokens(tokenTable(t, ephemeral.OpenPool(t, owner, connect.PostgresConfig{Writable: true}))), "script")
	db := ephemeral.OpenPool(t, roles(t, owner), connect.PostgresConfig{Writable: true})
	tokens := NewAPITokens(APITokensConfig{Source: NewPostgresAPITokens(db), Stores: testStores()})
	_, _, err := tokens.Identify(apiRequest(text), "")
	assert.Require(t, err == nil, "read as the service: %v", err)
	used := NewLastUsed(LastUsedConfig{Pool: db, Log: slog.New(slog.DiscardHandler)})
	used.Record(1)
	err = used.Flush(t.Context())
	assert.Require(t, err == nil, "write last use: %v", err)
	token, err := NewPostgresAPITokens(db).APIToken(t.Context(), 1)
	assert.That(t, err == nil && token.LastUsedAt != nil, "last used at %v (%v), want a time", token.LastUsedAt, err)
	for _, forbidden := range []string{
		"UPDATE api_tokens SET revoked_at = NULL",
		"UPDATE api_tokens SET store_id = 2",
		"UPDATE api_tokens SET last_used_at = now(), hash = hash",
		"DELETE FROM api_tokens",
		"INSERT INTO api_tokens (store_id, name, hash) VALUES (1, 'x', decode(repeat('00', 32), 'hex'))",
		"UPDATE stores SET name = 'x'",
		"UPDATE subscriptions SET status = 'active'",
		"CREATE TABLE mine ()",
	} {
		refusedTo(t, db, forbidden)
	}
}

// refusedTo checks that a script is not permitted, in a transaction that it rolls back.
func refusedTo(t *testing.T, db *pgxpool.Pool, script string) {
	t.Helper()
	conn, err := db.Acquire(t.Context())
	assert.NoError(t, err)
	defer conn.Release()
	_, err = conn.Conn().PgConn().Exec(t.Context(), "BEGIN; "+script).ReadAll()
	_, undo := conn.Exec(t.Context(), "ROLLBACK")
	var refused *pgconn.PgError
	assert.That(t, errors.As(err, &refused) && refused.Code == "42501" && undo == nil,
		"%s: got %v (%v), want insufficient_privilege", script, err, undo)
}

func TestLastUsed_IsBoundedWhileItCannotBeWritten(t *testing.T) {
	t.Parallel()
	used := NewLastUsed(LastUsedConfig{Now: atNoon})
	for id := range int64(maxAPITokens) {
		used.Record(id)
	}
	later := noon.Add(time.Second)
	used.keep(map[int64]time.Time{0: later, maxAPITokens: later, maxAPITokens + 1: later})
	assert.Equal(t, len(used.uses), maxAPITokens, "uses are kept")
	got := used.uses[0]
	assert.That(t, got.Equal(later), "a known token was last used at %v, want %v", got, later)
}

func TestLastUsed_NeedsNoLogger(t *testing.T) {
	t.Parallel()
	pool := assert.Must(pgxpool.New(t.Context(), "postgres://127.0.0.1:1/none"))(t)
	t.Cleanup(pool.Close)
	used := NewLastUsed(LastUsedConfig{Pool: pool})
	used.Record(1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	used.Run(ended) // logs that the database is unreachable
	assert.Equal(t, len(used.uses), 1, "uses are kept")
}

func TestLastUsed_LogsAnOutageOnceAndItsEndOnce(t *testing.T) {
	t.Parallel()
	open := func(url string) *pgxpool.Pool {
		pool := assert.Must(pgxpool.New(t.Context(), url))(t)
		t.Cleanup(pool.Close)
		return pool
	}
	log, now := &bytes.Buffer{}, noon
	used := NewLastUsed(LastUsedConfig{Log: slog.New(slog.NewTextHandler(log, nil)), Now: func() time.Time { return now }})
	used.Record(1)
	for _, pool := range []*pgxpool.Pool{open("postgres://127.0.0.1:1/none"), used.cfg.Pool, open(ephemeral.Migrated(t)), nil} {
		if pool != nil {
			used.cfg.Pool = pool
		}
		used.tryFlush(t.Context())
		now = now.Add(10 * time.Second)
	}
	text := log.String()
	assert.That(t, strings.Count(text, "\n") == 2 && strings.Count(text, "level=WARN") == 1 && strings.Contains(text, "after=20s"),
		"the log reads %s: want one warning and one all-clear", text)
}
