package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"

	"commerce/cmd/internal/cli"
	"commerce/deploy/inspect"
)

// checkDetails explain the exit status.
const checkDetails = `A finding is serious, a warning, or unknown if the server does not show the value to the user of the URL. The exit status is 1 if a finding is serious, 2 if a setting of this command is wrong, and otherwise 0. The command does not check a server whose URL is not set.`

// newCheck returns the command that checks the Redis and Postgres servers.
func newCheck() cli.Command {
	var c inspect.Config
	var asJSON bool
	redis := redisSetting(&c.RedisURL, "Redis URL, as for serve. Use the Redis user check from deploy/redis/users.conf.")
	database := databaseSetting(&c.DatabaseURL)
	redis.Required, database.Required = false, false
	return cli.Command{
		Name: "check", Help: "Check the Redis and Postgres servers for settings that could lose carts or break promises.", Details: checkDetails,
		Settings: []cli.Setting{
			database, redis,
			minReplicasSetting(&c.MinReplicas, "As for serve."),
			durabilitySetting(&c.Durable, "As for serve: memory or replica."),
			{Name: "json", Help: "Print the findings as JSON.", Value: cli.Switch(&asJSON)},
		},
		Faults: func() (f cli.Faults) {
			if c.RedisURL == "" && c.DatabaseURL == "" {
				f.Add("DATABASE_URL", errors.New("is required, or REDIS_URL, or both"))
			}
			return f
		},
		Run: func(ctx context.Context, out cli.Output) error { return check(ctx, c, asJSON, out) },
	}
}

// check prints the findings.
func check(ctx context.Context, c inspect.Config, asJSON bool, out cli.Output) error {
	findings, err := inspect.Servers(ctx, c)
	if err != nil {
		return err
	}
	findings = append(findings, unset(c)...)
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(findings)
	} else {
		err = printFindings(out, findings)
	}
	if err == nil && slices.ContainsFunc(findings, func(f inspect.Finding) bool { return f.Level == inspect.Serious }) {
		return cli.ErrPrinted
	}
	return err
}

// unset returns a finding for each server that was not checked.
func unset(c inspect.Config) (all []inspect.Finding) {
	for _, s := range []struct{ code, server, url, setting string }{
		{"redis_answers", "Redis", c.RedisURL, "REDIS_URL"},
		{"postgres_answers", "Postgres", c.DatabaseURL, "DATABASE_URL"},
	} {
		if s.url == "" {
			all = append(all, inspect.Finding{
				Code: s.code, Level: inspect.Unknown, Server: s.server, Setting: s.setting,
				Message: s.server + " was not checked, because its URL is not set.",
			})
		}
	}
	return all
}

// startCheck checks the servers in the background and logs what is wrong. The check ends within
// seconds. It ends earlier if ctx ends or stop is called, which waits for its end.
func (c *serveCommand) startCheck(ctx context.Context, log *slog.Logger) (stop func()) {
	return background(ctx, func(ctx context.Context) {
		findings, err := inspect.Servers(ctx, inspect.Config{
			RedisURL: c.RedisURL, DatabaseURL: c.Database.URL, MinReplicas: c.RedisMinReplicas, Durable: c.Durable, Serving: true,
		})
		if err != nil || ctx.Err() != nil { // the process stops, so the check may be incomplete
			return
		}
		logFindings(ctx, log, findings)
	})
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
