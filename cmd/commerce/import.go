package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/schollz/progressbar/v3"

	"commerce/cmd/internal/cli"
	"commerce/deploy/connect"
	"commerce/deploy/ingest"
)

type importCommand struct {
	Database      databaseSettings
	Store         int64
	Products      string
	Subscriptions string
}

// Settings implements cli.Runnable.
func (c *importCommand) Settings() []cli.Setting {
	return append(c.Database.settings(true),
		storeFlag(&c.Store),
		cli.Setting{Name: "products", Hint: "FILE", Help: "Products with their plans and fields, one JSON object per line. docs/data.md describes both files.", Value: cli.Text(&c.Products, nil)},
		cli.Setting{Name: "subscriptions", Hint: "FILE", Help: "Subscriptions with their customers and cards, one JSON object per line.", Value: cli.Text(&c.Subscriptions, nil)},
	)
}

// Faults checks that there is something to import.
func (c *importCommand) Faults() (f cli.Faults) {
	if c.Products == "" && c.Subscriptions == "" {
		f.Add("--products or --subscriptions", errors.New("is required"))
	}
	return f
}

// Run imports the files, or lists their faults on standard error and writes nothing.
func (c *importCommand) Run(ctx context.Context, out cli.Output) error {
	files, size, err := c.open()
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	if err != nil {
		return err
	}
	db, err := c.Database.openMigrated(ctx, connect.PostgresConfig{Writable: true, ApplicationName: "commerce import", MaxConns: 1, StatementTimeout: -1})
	if err != nil {
		return err
	}
	defer db.Close()
	conn, err := db.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Release()
	err = c.write(ctx, conn.Conn(), out, files, size)
	if err != nil && ctx.Err() != nil {
		return errors.New("interrupted: nothing was written")
	}
	return err
}

// opened is a file to import that the command closes.
type opened struct {
	ingest.File
	io.Closer
}

// open opens the files. size is their total in bytes. The caller closes the files, also
// after an error.
func (c *importCommand) open() (files []opened, size int64, err error) {
	for _, f := range []struct{ flag, name string }{{"--products", c.Products}, {"--subscriptions", c.Subscriptions}} {
		if f.name == "" {
			continue
		}
		file, err := os.Open(f.name)
		if err != nil {
			return files, 0, &cli.BadSetting{Name: f.flag, Err: err}
		}
		of := ingest.Subscriptions
		if f.flag == "--products" {
			of = ingest.Products
		}
		files = append(files, opened{of(f.name, file), file})
		if info, err := file.Stat(); err == nil {
			size += info.Size()
		}
	}
	return files, size, nil
}

func (c *importCommand) write(ctx context.Context, conn *pgx.Conn, out cli.Output, files []opened, size int64) error {
	var all []ingest.File
	for _, f := range files {
		all = append(all, f.File)
	}
	bars := &importBars{out: out}
	written, err := ingest.Import(ctx, conn, c.Store, all, bars.start(size))
	bars.bar.end()
	var faults *ingest.Faults
	switch {
	case errors.Is(err, ingest.ErrNoStore):
		return &cli.BadSetting{Name: "--store", Err: fmt.Errorf("there is no store %d", c.Store)}
	case errors.As(err, &faults):
		report(out, faults)
		return fmt.Errorf("%w; nothing was written", err)
	case err != nil:
		return err
	}
	counts := make([]string, len(written))
	for i, t := range written {
		counts[i] = fmt.Sprintf("%s %d", t.Table, t.Rows)
	}
	fmt.Fprintf(out, "rows written: %s\n", strings.Join(counts, ", "))
	return nil
}

// report lists the first faults on standard error.
func report(out cli.Output, faults *ingest.Faults) {
	for _, f := range faults.First {
		fmt.Fprintln(out.Errors, f)
	}
	if more := faults.Total - int64(len(faults.First)); more > 0 {
		fmt.Fprintf(out.Errors, "and %d more\n", more)
	}
	if faults.ReferencesSkipped {
		fmt.Fprintln(out.Errors, "references between lines were not checked, because some lines cannot be read")
	}
}

// importBars shows on standard error how far an import is: the bytes read, then the lines
// written.
type importBars struct {
	out cli.Output
	bar progress
}

func (b *importBars) start(size int64) ingest.Progress {
	add := func(n int64) { _ = b.bar.Add64(n) }
	b.bar = startProgress(b.out.Errors, "reading", size, progressbar.OptionShowBytes(true))
	return ingest.Progress{
		Read:     add,
		Checking: func() { b.bar.Describe("checking") },
		Writing: func(lines int64) {
			b.bar.end()
			b.bar = startProgress(b.out.Errors, "writing lines", lines)
		},
		Written: add,
	}
}
