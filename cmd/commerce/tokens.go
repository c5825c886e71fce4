package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth"
	"commerce/cmd/internal/cli"
	"commerce/deploy/connect"
)

func newToken() cli.Command {
	return cli.Command{Name: "token", Help: "Create and manage tokens.", Commands: []cli.Command{
		newCustomerToken(), newStoreToken(), newTokenList(), newTokenRevoke(),
	}}
}

func newCustomerToken() cli.Command {
	var jwt jwtSettings
	var store int64
	var customer string
	var ttl time.Duration
	return cli.Command{
		Name: "customer", Help: "Sign a customer's token (JWT) and print it.",
		Settings: append(jwt.settings(),
			storeFlag(&store),
			cli.Setting{Name: "customer", Hint: "ID", Required: true, Help: "The customer's id, 1 to 255 characters.", Value: cli.Text(&customer, checkCustomer)},
			cli.Setting{Name: "ttl", Default: "1h", Help: "How long the token is valid.", Value: cli.Duration(&ttl, time.Second, 0)},
		),
		Faults: jwt.faults,
		Run: func(_ context.Context, out cli.Output) error {
			tokens, err := jwt.verifier()
			if err != nil {
				return err
			}
			token, err := tokens.Sign(store, customer, ttl)
			if err != nil { // the claims or the key are unusable
				return &cli.BadSetting{Name: "", Err: err}
			}
			fmt.Fprintln(out, token)
			return nil
		},
	}
}

// newStoreToken prints a token once, because only its hash is stored.
func newStoreToken() cli.Command {
	var store int64
	var name string
	return withAPITokens("store", "Create an API token for a store and print it. It cannot be printed again.",
		func(ctx context.Context, tokens *auth.PostgresAPITokens, out cli.Output) error {
			token, err := tokens.Create(ctx, store, name)
			if errors.Is(err, auth.ErrNoStore) {
				return &cli.BadSetting{Name: "--store", Err: fmt.Errorf("there is no store %d", store)}
			}
			if err == nil {
				fmt.Fprintln(out, token)
			}
			return err
		},
		storeFlag(&store),
		cli.Setting{Name: "name", Required: true, Help: "A name for the token, such as the program that will use it.", Value: cli.Text(&name, checkLength)},
	)
}

func newTokenList() cli.Command {
	shown := func(at *time.Time) string {
		if at == nil {
			return "-"
		}
		return at.UTC().Format(time.RFC3339)
	}
	return withAPITokens("list", "List the API tokens of all stores, including revoked ones.",
		func(ctx context.Context, tokens *auth.PostgresAPITokens, out cli.Output) error {
			all, err := tokens.List(ctx)
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "ID\tSTORE\tNAME\tCREATED\tLAST USED\tREVOKED")
			for _, t := range all {
				fmt.Fprintf(table, "%d\t%d\t%s\t%s\t%s\t%s\n",
					t.ID, t.StoreID, onOneLine(strings.Join(strings.Fields(t.Name), " ")), shown(&t.CreatedAt), shown(t.LastUsedAt), shown(t.RevokedAt))
			}
			return table.Flush()
		})
}

// newTokenRevoke returns the command that revokes a token. Within a second all instances reject it.
func newTokenRevoke() cli.Command {
	var id int64
	return withAPITokens("revoke", "Revoke an API token. This cannot be undone.",
		func(ctx context.Context, tokens *auth.PostgresAPITokens, out cli.Output) error {
			err := tokens.Revoke(ctx, id)
			if errors.Is(err, auth.ErrNoAPIToken) {
				return fmt.Errorf("there is no API token %d", id)
			}
			if err == nil {
				fmt.Fprintln(out, "revoked", id)
			}
			return err
		},
		cli.Setting{Name: "<id>", Required: true, Help: "The token's id, the number before the |.", Value: cli.Number(&id, 1, 0)},
	)
}

func withAPITokens(name, help string, work func(context.Context, *auth.PostgresAPITokens, cli.Output) error, more ...cli.Setting) cli.Command {
	return onMigrated(name, help,
		connect.PostgresConfig{Writable: true, ApplicationName: "commerce token", MaxConns: 1, StatementTimeout: reach},
		func(ctx context.Context, db *pgxpool.Pool, out cli.Output) error {
			return work(ctx, auth.NewPostgresAPITokens(db), out)
		}, more...)
}

func storeFlag(to *int64) cli.Setting {
	return cli.Setting{Name: "store", Hint: "ID", Required: true, Help: "The store's id.", Value: cli.Number(to, 1, 0)}
}

// checkCustomer refuses what can only be a mistake in a customer's id, such as a pasted line break.
func checkCustomer(id string) error {
	if strings.ContainsFunc(id, unicode.IsControl) {
		return errors.New("must not have control characters")
	}
	return checkLength(id)
}

func checkLength(text string) error {
	if utf8.RuneCountInString(text) > 255 {
		return errors.New("must be 1 to 255 characters")
	}
	if !utf8.ValidString(text) {
		return errors.New("must be valid UTF-8")
	}
	return nil
}

// jwtSettings are the settings for signing and verifying customers' tokens. Demo and serve set more
// of Keys than its URL.
type jwtSettings struct {
	auth.JWTConfig
	Keys auth.JWKSConfig
}

func (j *jwtSettings) settings() []cli.Setting {
	secret := func(text string) ([]byte, error) { return []byte(text), nil }
	return []cli.Setting{
		{Name: "JWT_SECRET", Secret: true, Help: "Secret of customers' tokens (HS256), at least 32 bytes.", Value: cli.Parsed(&j.Secret, secret)},
		{Name: "JWT_SECRET_PREVIOUS", Secret: true, Help: "Previous secret, still accepted during a rotation.", Value: cli.Parsed(&j.PreviousSecret, secret)},
		{Name: "JWT_JWKS_URL", Hint: "URL", Help: "https URL of the issuer's keys (RS256, ES256, EdDSA). Replaces JWT_SECRET.", Value: cli.Text(&j.Keys.URL, nil)},
		{Name: "JWT_ISSUER", Help: "Issuer that tokens must have. Default: any.", Value: cli.Text(&j.Issuer, nil)},
		{Name: "JWT_AUDIENCE", Help: "Audience that tokens must have. Required with JWT_JWKS_URL; otherwise the default is any.", Value: cli.Text(&j.Audience, nil)},
	}
}

func (j *jwtSettings) faults() (f cli.Faults) {
	hasSecret := len(j.Secret) > 0
	switch {
	case !hasSecret && j.Keys.URL == "":
		f.Add("JWT_SECRET", errors.New("is required, or JWT_JWKS_URL instead: `openssl rand -hex 32` makes one"))
	case hasSecret && j.Keys.URL != "":
		f.Add("JWT_SECRET", errors.New("JWT_SECRET and JWT_JWKS_URL are both set; set only one"))
	case hasSecret:
		f.Add("JWT_SECRET", auth.CheckJWTSecret(j.Secret))
	default:
		_, err := auth.NewJWKS(j.Keys)
		f.Add("JWT_JWKS_URL", err)
	}
	if j.Keys.URL != "" && j.Audience == "" {
		f.Add("JWT_AUDIENCE", errors.New("is required with JWT_JWKS_URL: without it, the issuer's tokens for other services are accepted"))
	}
	if len(j.PreviousSecret) > 0 {
		f.Add("JWT_SECRET_PREVIOUS", auth.CheckJWTSecret(j.PreviousSecret))
	}
	return f
}

func (j jwtSettings) verifier() (_ *auth.JWT, err error) {
	if j.Keys.URL != "" {
		if j.JWKS, err = auth.NewJWKS(j.Keys); err != nil {
			return nil, err
		}
	}
	return auth.NewJWT(j.JWTConfig)
}
