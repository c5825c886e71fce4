package main

import (
	"context"
	"log/slog"

	"commerce/deploy/inspect"
)

// startCheck checks the servers in the background and logs what is wrong. The check ends within
// seconds. It ends earlier if ctx ends or stop is called, which waits for its end.
func (c *serveCommand) startCheck(ctx context.Context, log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		findings, err := check(ctx, c.RedisURL, c.Database.URL, inspect.Expect{MinReplicas: int(c.RedisMinReplicas), Durable: c.Durability == "replica", Serving: true})
		if err != nil || ctx.Err() != nil { // the process stops, so the check may be incomplete
			return
		}
		logFindings(ctx, log, findings)
	}()
	return func() {
		cancel()
		<-done
	}
}

// logFindings logs a line for each finding that is serious or a warning. It logs one line for
// all unknown ones, because the service's user usually has no right to read settings.
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
		log.InfoContext(ctx, "check: some settings are not visible to this process. To see them, run `commerce check` with the Redis user check from deploy/redis/users.conf",
			"unknown", len(hidden))
	}
}
