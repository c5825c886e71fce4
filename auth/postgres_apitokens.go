package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/cause"
	"commerce/auth/pgread"
)

// PostgresAPITokens is the table api_tokens. All methods but APIToken and List write to it.
type PostgresAPITokens struct{ db *pgxpool.Pool }

var _ APITokenSource = (*PostgresAPITokens)(nil)

func NewPostgresAPITokens(db *pgxpool.Pool) *PostgresAPITokens { return &PostgresAPITokens{db} }

const lookupBudget = 900 * time.Millisecond

func (p *PostgresAPITokens) APIToken(ctx context.Context, id int64) (APIToken, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupBudget)
	defer cancel()
	tokens, err := p.query(ctx, "WHERE id = $1", id)
	switch {
	case err != nil:
		return APIToken{}, err
	case len(tokens) == 0:
		return APIToken{}, ErrNoAPIToken
	}
	return tokens[0], nil
}

// List returns all tokens of all stores, including revoked ones, oldest first.
func (p *PostgresAPITokens) List(ctx context.Context) ([]APIToken, error) {
	return p.query(ctx, "ORDER BY id")
}

// Create makes a token for a store and returns its text, "<id>|<secret>", which cannot be
// read again. It returns ErrNoStore if the store does not exist.
func (p *PostgresAPITokens) Create(ctx context.Context, store int64, name string) (token string, err error) {
	secret, sum := NewAPISecret()
	var id int64
	err = p.db.QueryRow(ctx, "/* create_api_token */ INSERT INTO api_tokens (store_id, name, hash) VALUES ($1, $2, $3) RETURNING id",
		store, name, sum[:]).Scan(&id)
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused) && refused.Code == foreignKeyViolation:
		return "", ErrNoStore
	case err != nil:
		return "", fmt.Errorf("create API token of store %d: %w", store, err)
	}
	return strconv.FormatInt(id, 10) + "|" + secret, nil
}

const foreignKeyViolation = "23503"

// Revoke revokes a token permanently. Every instance refuses it after at most
// APITokensConfig.TTL. Revoking it again has no effect. It returns ErrNoAPIToken if the
// token does not exist.
func (p *PostgresAPITokens) Revoke(ctx context.Context, id int64) error {
	done, err := p.db.Exec(ctx, "/* revoke_api_token */ UPDATE api_tokens SET revoked_at = coalesce(revoked_at, now()) WHERE id = $1", id)
	switch {
	case err != nil:
		return fmt.Errorf("revoke API token %d: %w", id, err)
	case done.RowsAffected() == 0:
		return ErrNoAPIToken
	}
	return nil
}

func (p *PostgresAPITokens) query(ctx context.Context, which string, args ...any) ([]APIToken, error) {
	began := time.Now()
	tokens, err := pgread.Rows(ctx, p.db, scanAPIToken,
		"/* api_token */ SELECT id, store_id, name, hash, created_at, revoked_at, last_used_at FROM api_tokens "+which, args...)
	if err != nil {
		return nil, fmt.Errorf("read API tokens: %w", cause.OfPostgres(p.db, began, err))
	}
	return tokens, nil
}

func scanAPIToken(row pgx.CollectableRow) (APIToken, error) {
	var t APIToken
	var hash []byte
	err := row.Scan(&t.ID, &t.StoreID, &t.Name, &hash, &t.CreatedAt, &t.RevokedAt, &t.LastUsedAt)
	if err == nil && copy(t.Hash[:], hash) != sha256.Size {
		err = fmt.Errorf("hash of API token %d has %d bytes", t.ID, len(hash))
	}
	return t, err
}
