package main

import (
	"context"
	"encoding/json"
	"slices"

	"commerce/deploy/connect"
	"commerce/deploy/inspect"
	"commerce/deploy/observe"
)

type checkCommand struct {
	Database    databaseSettings `embed:""`
	RedisURL    string           `name:"redis-url" env:"REDIS_URL" secret:"" placeholder:"URL" help:"Redis URL, as for serve. Use the Redis user check from deploy/redis/users.conf."`
	MinReplicas int64            `name:"redis-min-replicas" env:"REDIS_MIN_REPLICAS" default:"0" help:"As for serve."`
	Durability  string           `env:"DURABILITY" default:"memory" help:"As for serve: memory or replica."`
	JSON        bool             `name:"json" help:"Print the findings as JSON."`
}

// Help explains the exit status.
func (c *checkCommand) Help() string {
	return "A finding is serious, a warning, or unknown if the server does not show the value to the user of the URL. The exit status is 1 if a finding is serious, 2 if a setting of this command is wrong, and otherwise 0. " +
		"The command does not check a server whose URL is not set."
}

func (c *checkCommand) faults() faults {
	var f faults
	if c.RedisURL == "" && c.Database.URL == "" {
		f.add("DATABASE_URL", errRequired)
	}
	if c.Database.URL != "" {
		f.add("DATABASE_URL", c.Database.fault())
	}
	if c.RedisURL != "" {
		_, err := connect.NewRedisServers(c.RedisURL)
		f.add("REDIS_URL", err)
	}
	f.add("REDIS_MIN_REPLICAS", within(c.MinReplicas, 0, maxReplicas))
	f.add("DURABILITY", oneOf(c.Durability, "memory", "replica"))
	return f
}

// Run prints the findings.
func (c *checkCommand) Run(ctx context.Context, out output) error {
	findings, err := check(ctx, c.RedisURL, c.Database.URL, inspect.Expect{MinReplicas: int(c.MinReplicas), Durable: c.Durability == "replica"})
	if err != nil {
		return err
	}
	findings = append(findings, c.unset()...)
	if c.JSON {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(findings)
	} else {
		err = printFindings(out, findings)
	}
	if err == nil && slices.ContainsFunc(findings, func(f inspect.Finding) bool { return f.Level == inspect.Serious }) {
		return errPrinted
	}
	return err
}

// check observes and judges the servers.
func check(ctx context.Context, redisURL, databaseURL string, expect inspect.Expect) ([]inspect.Finding, error) {
	seen, err := observe.Servers(ctx, observe.Config{RedisURL: redisURL, DatabaseURL: databaseURL})
	if err != nil {
		return nil, err
	}
	return inspect.Judge(seen, expect), nil
}

// unset returns a finding for each server that was not checked.
func (c *checkCommand) unset() (all []inspect.Finding) {
	for _, s := range []struct{ code, server, url, setting string }{
		{"redis_answers", "Redis", c.RedisURL, "REDIS_URL"},
		{"postgres_answers", "Postgres", c.Database.URL, "DATABASE_URL"},
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
