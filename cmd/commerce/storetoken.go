package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"commerce/auth"
	"commerce/deploy/connect"
)

type storeTokenCommand struct {
	Database databaseSettings `embed:""`
	Store    int64            `required:"" placeholder:"ID" help:"The store's id."`
	Name     string           `required:"" placeholder:"TEXT" help:"A name for the token, such as the program that will use it."`
}

// Run creates a token and prints it. It cannot be printed again, because only a hash is
// stored.
func (c *storeTokenCommand) Run(ctx context.Context, out output) error {
	switch {
	case c.Store < 1:
		return &badSetting{"--store", errors.New("must be a store's id")}
	case c.Name == "" || utf8.RuneCountInString(c.Name) > 255:
		return &badSetting{"--name", errors.New("must be 1 to 255 characters")}
	}
	return c.Database.withAPITokens(ctx, func(tokens *auth.PostgresAPITokens) error {
		token, err := tokens.Create(ctx, c.Store, c.Name)
		if errors.Is(err, auth.ErrNoStore) {
			return &badSetting{"--store", fmt.Errorf("there is no store %d", c.Store)}
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(out, token)
		return err
	})
}

type listTokensCommand struct {
	Database databaseSettings `embed:""`
}

// Run prints one line per token, without its secret.
func (c *listTokensCommand) Run(ctx context.Context, out output) error {
	return c.Database.withAPITokens(ctx, func(tokens *auth.PostgresAPITokens) error {
		all, err := tokens.List(ctx)
		if err != nil {
			return err
		}
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "ID\tSTORE\tNAME\tCREATED\tLAST USED\tREVOKED")
		for _, t := range all {
			fmt.Fprintf(table, "%d\t%d\t%s\t%s\t%s\t%s\n",
				t.ID, t.StoreID, strings.Join(strings.Fields(t.Name), " "), shown(&t.CreatedAt), shown(t.LastUsedAt), shown(t.RevokedAt))
		}
		return table.Flush()
	})
}

func shown(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return at.UTC().Format(time.RFC3339)
}

type revokeTokenCommand struct {
	Database databaseSettings `embed:""`
	ID       int64            `arg:"" help:"The token's id, the number before the |."`
}

// Run revokes the token. Within a second all instances reject it.
func (c *revokeTokenCommand) Run(ctx context.Context, out output) error {
	return c.Database.withAPITokens(ctx, func(tokens *auth.PostgresAPITokens) error {
		err := tokens.Revoke(ctx, c.ID)
		if errors.Is(err, auth.ErrNoAPIToken) {
			return fmt.Errorf("there is no API token %d", c.ID)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(out, "revoked", c.ID)
		return err
	})
}

func (d databaseSettings) withAPITokens(ctx context.Context, work func(*auth.PostgresAPITokens) error) error {
	db, err := d.openMigrated(ctx, connect.PostgresConfig{Writable: true, ApplicationName: "commerce token", MaxConns: 1, StatementTimeout: reach})
	if err != nil {
		return err
	}
	defer db.Close()
	return work(auth.NewPostgresAPITokens(db, rand.Reader))
}
