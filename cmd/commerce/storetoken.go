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
	"commerce/cmd/internal/cli"
	"commerce/deploy/connect"
)

type storeTokenCommand struct {
	Database databaseSettings
	Store    int64
	Name     string
}

// Settings implements cli.Runnable.
func (c *storeTokenCommand) Settings() []cli.Setting {
	return append(c.Database.settings(true),
		storeFlag(&c.Store),
		cli.Setting{Name: "name", Required: true, Help: "A name for the token, such as the program that will use it.", Value: cli.Text(&c.Name, checkLength)},
	)
}

// storeFlag declares --store.
func storeFlag(to *int64) cli.Setting {
	return cli.Setting{Name: "store", Hint: "ID", Required: true, Help: "The store's id.", Value: cli.Number(to, 1, 0)}
}

// checkLength checks the name of a token or the id of a customer.
func checkLength(text string) error {
	if text == "" || utf8.RuneCountInString(text) > 255 {
		return errors.New("must be 1 to 255 characters")
	}
	if !utf8.ValidString(text) {
		return errors.New("must be valid UTF-8")
	}
	return nil
}

// Run creates a token and prints it. It cannot be printed again, because only a hash is
// stored.
func (c *storeTokenCommand) Run(ctx context.Context, out cli.Output) error {
	return c.Database.withAPITokens(ctx, func(tokens *auth.PostgresAPITokens) error {
		token, err := tokens.Create(ctx, c.Store, c.Name)
		if errors.Is(err, auth.ErrNoStore) {
			return &cli.BadSetting{Name: "--store", Err: fmt.Errorf("there is no store %d", c.Store)}
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(out, token)
		return err
	})
}

type listTokensCommand struct {
	Database databaseSettings
}

// Settings implements cli.Runnable.
func (c *listTokensCommand) Settings() []cli.Setting { return c.Database.settings(true) }

// Run prints one line per token, without its secret.
func (c *listTokensCommand) Run(ctx context.Context, out cli.Output) error {
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
	Database databaseSettings
	ID       int64
}

// Settings implements cli.Runnable.
func (c *revokeTokenCommand) Settings() []cli.Setting {
	return append(c.Database.settings(true), cli.Setting{
		Name: "<id>", Required: true, Help: "The token's id, the number before the |.", Value: cli.Number(&c.ID, 1, 0),
	})
}

// Run revokes the token. Within a second all instances reject it.
func (c *revokeTokenCommand) Run(ctx context.Context, out cli.Output) error {
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
