package main

import (
	"context"
	"log/slog"

	"commerce/deploy/inspect"
)

// startCheck checks the servers in the background, and logs what is wrong. It ends by itself
// within seconds, or when ctx ends or the returned function is called, which waits for it.
func (c *serveCommand) startCheck(ctx context.Context, log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		findings, err := check(ctx, c.RedisURL, c.Database.URL, inspect.Expect{MinReplicas: int(c.RedisMinReplicas), Durable: c.Durability == "replica"})
		if err != nil || ctx.Err() != nil { // the process stops, so servers only seem not to answer
			return
		}
		logFindings(ctx, log, findings)
	}()
	return func() {
		cancel()
		<-done
	}
}

// logFindings logs a line for each finding that is serious or a warning, and one line for all
// that are unknown, because the service's user may usually not read settings.
func logFindings(ctx context.Context, log *slog.Logger, findings []inspect.Finding) {
	var hidden []string
	for _, f := range findings {
		switch f.Level {
		case inspect.Serious, inspect.Warning:
			log.WarnContext(ctx, "check: "+f.Message, "finding", string(f.Level), "code", f.Code, "server", f.Server, "change", f.Setting)
		case inspect.Unknown:
			hidden = append(hidden, f.Code)
		}
	}
	if len(hidden) > 0 {
		log.InfoContext(ctx, "check: not everything is visible to this process. Run `commerce check` with the Redis user check of deploy/redis/users.conf",
			"unknown", len(hidden))
	}
}
