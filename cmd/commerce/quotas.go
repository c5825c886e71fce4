package main

import (
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/limit"
	"commerce/cart/service"
	"commerce/cmd/internal/server"
)

// failuresPerMinute is the number of invalid tokens that a client may send per minute. It is
// far above what programs with a stale token send by mistake, because many shops and shoppers
// may share one address. No rate is high enough to guess tokens. The limit only bounds the work
// for attempts.
const failuresPerMinute = 300

// useRedis adds a Redis client to parts, with its metrics and traces. Unless limits are turned
// off, it also adds the limits that all instances count together, and returns that of invalid API
// tokens. Call it before the first use of the client.
func (s *settings) useRedis(parts *server.Parts, rdb redis.UniversalClient) (apiFailures *limit.Quota) {
	parts.Redis = rdb
	parts.Metrics.ObserveRedis(rdb)
	parts.Traces.TraceRedis(rdb)
	if s.RateLimit == "off" {
		return nil
	}
	creations, _ := limit.Parse(s.CreateLimit) // checked when it was read
	parts.Creation = limit.NewQuota(limit.Config{Name: "create", Rates: creations, Redis: rdb, Log: parts.Log})
	parts.Guesses = service.NewGuesses(limit.Config{Redis: rdb, Log: parts.Log})
	parts.Failures = failures("credentials", parts, rdb)
	return failures("api_tokens", parts, rdb)
}

// failures returns a limit of invalid tokens. Access tokens and API tokens have their own, so that
// a flood of one kind does not disturb programs that send the other from the same address.
func failures(name string, parts *server.Parts, rdb redis.UniversalClient) *limit.Quota {
	return limit.NewQuota(limit.Config{
		Name: name, Rates: []limit.Rate{{Uses: failuresPerMinute, Per: time.Minute}}, Redis: rdb, Log: parts.Log,
	})
}
