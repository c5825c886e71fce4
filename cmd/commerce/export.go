package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/cart/money"
	"commerce/cart/wire"
	"commerce/cmd/internal/cli"
	"commerce/deploy/connect"
	"commerce/subscriptions"
)

type exportCommand struct {
	Database                        databaseSettings
	Store                           int64
	Format, Output, After, Language string
}

// Settings implements cli.Runnable.
func (c *exportCommand) Settings() []cli.Setting {
	return append(c.Database.settings(true),
		storeFlag(&c.Store),
		cli.Setting{Name: "format", Default: "ndjson", Help: "ndjson or csv.", Value: cli.Word(&c.Format, "ndjson", "csv")},
		cli.Setting{Name: "output", Hint: "FILE", Help: "File to write. If it has an earlier export, even an interrupted one, the export continues it. Default: standard output, as with -.", Value: cli.Text(&c.Output, nil)},
		cli.Setting{Name: "after", Hint: "CURSOR", Help: "Write only what has changed after this cursor. Ignored if the file has an export to continue.", Value: cli.Text(&c.After, nil)},
		cli.Setting{Name: "language", Help: "Language of texts. Default: the store's.", Value: cli.Word(&c.Language, "", "en", "ar")},
	)
}

// exportTimeout bounds the statements for one page, and the count of all changes.
const exportTimeout = time.Minute

var exportFormats = map[string]subscriptions.Format{"ndjson": subscriptions.NDJSON, "csv": subscriptions.CSV}

// Faults checks that the cursor is one of the store.
func (c *exportCommand) Faults() (f cli.Faults) {
	if _, ok := subscriptions.ParseCursor(c.After, c.Store); c.After != "" && c.Store > 0 && !ok {
		f.Add("--after", fmt.Errorf("is not a cursor of store %d", c.Store))
	}
	return f
}

// Run writes the export. After an interrupt it ends with the current page.
func (c *exportCommand) Run(ctx context.Context, out cli.Output) error {
	db, err := c.Database.openMigrated(ctx, connect.PostgresConfig{
		ApplicationName: "commerce export", MaxConns: 2, StatementTimeout: exportTimeout, Edit: planOnce,
	})
	if err != nil {
		return err
	}
	defer db.Close()
	log := slog.New(slog.NewTextHandler(out.Errors, nil))
	exported, err := c.findStore(ctx, db, log)
	if err != nil {
		return err
	}
	e := export{
		stream: subscriptions.Stream{Store: exported, Format: exportFormats[c.Format]},
		source: subscriptions.NewPostgres(subscriptions.PostgresConfig{Pool: db, Wait: reach, Budget: exportTimeout, Log: log}),
		writer: wire.NewWriter(nil, cmp.Or(locale.Locale(c.Language), exported.Locale), money.NewFormatter()),
	}
	e.stream.Source = e.source
	e.stream.After, _ = subscriptions.ParseCursor(c.After, c.Store) // faults has checked it
	if c.Output == "" || c.Output == "-" {
		return e.toOutput(ctx, out)
	}
	return e.toFile(ctx, c.Output, out)
}

func (c *exportCommand) findStore(ctx context.Context, db *pgxpool.Pool, log *slog.Logger) (*store.Store, error) {
	stores := auth.NewPostgresStores(auth.PostgresStoresConfig{DB: db, KnownCurrency: money.Known, Patience: reach, Log: log})
	found, err := stores.ByID(ctx, c.Store)
	if errors.Is(err, auth.ErrNoStore) {
		return nil, &cli.BadSetting{Name: "--store", Err: fmt.Errorf("there is no store %d", c.Store)}
	}
	return found, err
}

// export is one run of the command.
type export struct {
	source *subscriptions.Postgres
	stream subscriptions.Stream
	writer *wire.Writer
}

// toOutput writes to standard output. On a terminal, a progress bar would be in the way.
func (e *export) toOutput(ctx context.Context, out cli.Output) error {
	progress := out.Errors
	if isTerminal(out.Writer) {
		progress = io.Discard
	}
	_, last, err := e.write(ctx, out, progress)
	hint := "run the command again"
	if last != nil {
		hint = fmt.Sprintf("add --after %s", last.Text(e.stream.Store.ID))
	}
	return e.explain(err, hint, "start again without --after")
}

// toFile writes a file, or continues the export that it has.
func (e *export) toFile(ctx context.Context, name string, out cli.Output) (err error) {
	file, at, err := openExport(name, e.stream.Format, e.stream.Store.ID)
	if errors.Is(err, subscriptions.ErrOtherFormat) {
		return &cli.BadSetting{Name: "--format", Err: err}
	}
	if err != nil {
		return &cli.BadSetting{Name: "--output", Err: err}
	}
	defer func() { err = errors.Join(err, file.close()) }()
	if at.End > 0 {
		e.stream.After, e.stream.Continues = at.After, true
	}
	changes, _, err := e.write(ctx, file, out.Errors)
	if err != nil {
		return e.explain(err, "run the command again", "start with a new file")
	}
	_, err = fmt.Fprintf(out, "wrote %d changes to %s\n", changes, name)
	return err
}

// explain adds to an error how to continue, or how to start again if that is impossible.
func (e *export) explain(err error, goOn, restart string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, subscriptions.ErrCursorExpired):
		return fmt.Errorf("the changes after the cursor are no longer known, or it is of another database: %s", restart)
	}
	if refused, ok := errors.AsType[*problem.Error](err); ok && refused.Cause != nil {
		err = refused.Cause // its sentence is for callers over HTTP
	}
	return fmt.Errorf("%w: to go on, %s", err, goOn)
}

var errInterrupted = errors.New("interrupted")

// write writes the stream, one page at a time, and shows on progress how far it is. It
// returns the number of changes and the cursor of the last page that was written, nil if
// there is none. After an interrupt it ends with the current page.
func (e *export) write(ctx context.Context, w, progress io.Writer) (changes int, last *subscriptions.Cursor, err error) {
	total, err := e.source.Remaining(ctx, e.stream.Store.ID, e.stream.After)
	if err != nil {
		return 0, nil, fmt.Errorf("count changes: %w", err)
	}
	bar := startProgress(progress, "changes", total)
	defer bar.end()
	for page, err := range e.stream.Pages(context.WithoutCancel(ctx), e.writer) {
		switch {
		case err != nil:
			return changes, last, fmt.Errorf("read changes: %w", err)
		case page.Changes == 0 && e.stream.Continues:
			continue // the file ends with this cursor already
		}
		if _, err := w.Write(page.Lines); err != nil {
			return changes, last, fmt.Errorf("write: %w", err)
		}
		last = &page.Next
		changes += page.Changes
		_ = bar.Add(page.Changes)
		if ctx.Err() != nil {
			return changes, last, errInterrupted
		}
	}
	return changes, last, nil
}
