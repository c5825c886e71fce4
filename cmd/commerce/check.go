package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"commerce/cmd/internal/cli"
	"commerce/deploy/inspect"
)

const checkDetails = `A finding is serious, a warning, or unknown if the server does not show the value to the user of the URL. The exit status is 1 if a finding is serious, 2 if a setting of this command is wrong, and otherwise 0. The command does not check a server whose URL is not set.`

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
			{Name: "DATABASE_REPLICA_URL", Hint: "URL", Secret: true, Help: "As for serve.", Value: cli.Text(&c.ReplicaURL, checkDatabaseURL)},
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

// checkInterval is the time between two checks by serve. It is shorter than a minute: repeated refusals
// within a minute are one entry of Redis's ACL LOG.
const checkInterval = 50 * time.Second

// startChecks checks the servers in the background until ctx ends or stop is called, which waits for its
// end. Each check ends within seconds, sets the metrics, and logs what the previous one did not find.
func (c *serveCommand) startChecks(ctx context.Context, s *onPostgres) (stop func()) {
	return background(ctx, func(ctx context.Context) {
		tick := time.NewTicker(checkInterval)
		defer tick.Stop()
		var previous []inspect.Finding
		var last inspect.Last
		for {
			findings, err := inspect.Servers(ctx, inspect.Config{
				RedisURL: c.RedisURL, DatabaseURL: s.url, ReplicaURL: s.replicaURL, MinReplicas: c.Redis.MinReplicas, Durable: c.Redis.Durable, Serving: true,
				Last: &last,
			})
			if err != nil || ctx.Err() != nil { // the process stops, so the check may be incomplete
				return
			}
			s.Metrics.ServersChecked(findings)
			logFindings(ctx, s.Log, findings, previous)
			previous = findings
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
}

// logFindings logs a line for each finding that is serious or a warning, unless the previous check had
// it. It logs one line for all unknown ones, because the service's user usually has no right to read
// settings.
func logFindings(ctx context.Context, log *slog.Logger, findings, previous []inspect.Finding) {
	hidden := 0
	for _, f := range findings {
		switch {
		case slices.ContainsFunc(previous, f.Repeats):
		case f.Level == inspect.Unknown:
			hidden++
		case f.Level != inspect.OK:
			log.WarnContext(ctx, "check: "+f.Message, "finding", string(f.Level), "code", f.Code, "server", f.Server, "change", f.Setting)
		}
	}
	if hidden > 0 {
		log.InfoContext(ctx, "check: some settings are not visible to this process. To see them, run `commerce check` with the Redis user check from deploy/redis/users.conf",
			"unknown", hidden)
	}
}

type findingLine struct {
	level           inspect.Level
	server, message string
	more            int // servers, beyond the first
}

// printFindings prints the findings, the worst ones first, and a summary, wrapped in a terminal.
func printFindings(out cli.Output, findings []inspect.Finding) error {
	lines := linesOf(findings)
	levels, servers := 0, 0
	for _, l := range lines {
		levels, servers = max(levels, len(l.level)), max(servers, utf8.RuneCountInString(l.server))
	}
	var text strings.Builder
	for _, l := range lines {
		cli.PrintWrapped(&text, lineWidth(out), fmt.Sprintf("%-*s  %-*s  ", levels, l.level, servers, l.server), l.message)
	}
	var counts []string
	for _, level := range inspect.Levels() {
		n := len(slices.DeleteFunc(slices.Clone(findings), func(f inspect.Finding) bool { return f.Level != level }))
		counts = append(counts, fmt.Sprintf("%d %s", n, level))
	}
	fmt.Fprintf(&text, "\n%s\n", strings.Join(counts, ", "))
	_, err := io.WriteString(out, text.String())
	return err
}

// linesOf returns a line for each finding that is not OK, and then one for each server that lists
// the checks that found no problem. Lines that differ only in their server are merged.
func linesOf(findings []inspect.Finding) (lines []findingLine) {
	var wrong, right []findingLine
	for _, f := range findings {
		kind, check, _ := strings.Cut(f.Code, "_")
		l := findingLine{level: f.Level, server: f.Server, message: f.Message + " Change: " + f.Setting}
		if strings.Contains(f.Server, ":") {
			l.server = kind + " " + f.Server
		}
		if f.Level == inspect.Unknown {
			l.message = f.Message + " Look up: " + f.Setting
		}
		if f.Level != inspect.OK {
			wrong = append(wrong, l)
			continue
		}
		l.message = strings.ReplaceAll(check, "_", " ")
		if at := slices.IndexFunc(right, func(r findingLine) bool { return r.server == l.server }); at >= 0 {
			right[at].message += ", " + l.message
		} else {
			right = append(right, l)
		}
	}
	for _, l := range append(wrong, right...) {
		if at := slices.IndexFunc(lines, func(k findingLine) bool { return k.level == l.level && k.message == l.message }); at >= 0 {
			lines[at].more++
		} else {
			lines = append(lines, l)
		}
	}
	for i, l := range lines {
		if l.more > 0 {
			lines[i].server += fmt.Sprintf(" and %d more", l.more)
		}
	}
	return lines
}

func lineWidth(out cli.Output) int {
	const narrow = 60 // columns; less leaves no room for a message
	if file, ok := out.Writer.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width >= narrow {
			return width
		}
	}
	return math.MaxInt
}
