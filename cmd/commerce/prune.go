package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"commerce/cmd/internal/cli"
	"commerce/deploy/connect"
	"commerce/subscriptions"
	"commerce/subscriptions/postgres"
)

type pruneCommand struct {
	Database databaseSettings
}

// Settings implements cli.Runnable.
func (c *pruneCommand) Settings() []cli.Setting { return c.Database.settings(true) }

// pruneTimeout bounds each of the short transactions.
const pruneTimeout = time.Minute

// Run prunes the deletions of all stores, and prints how many it has deleted, also before an
// error.
func (c *pruneCommand) Run(ctx context.Context, out cli.Output) error {
	db, err := c.Database.openMigrated(ctx, connect.PostgresConfig{
		Writable: true, ApplicationName: "commerce prune", MaxConns: 1, StatementTimeout: pruneTimeout,
	})
	if err != nil {
		return err
	}
	defer db.Close()
	end := startWaiting(out.Errors, "deleting old records")
	deleted, err := postgres.Prune(ctx, db)
	end()
	if errors.Is(err, subscriptions.ErrNoChanges) {
		return errors.New("nothing to prune: the database is sharded by store, so it keeps no records of deletions")
	}
	fmt.Fprintf(out, "deleted the records of %d deletions older than %d days\n", deleted, subscriptions.KeepDeletions/(24*time.Hour))
	return err
}
