package main

import (
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/quota"
	"commerce/cmd/internal/server"
)

// failuresPerMinute is how many invalid tokens a client may send. It is far above what programs with
// a stale token send by mistake: many shops and shoppers may share one address. Tokens cannot
// be guessed at any rate; the limit keeps attempts from costing work.
const failuresPerMinute = 300

// useRedis adds a client to the parts, and what needs it: the limits that all instances count
// together, unless they are turned off. The client must not be used yet.
func (s *settings) useRedis(parts *server.Parts, rdb redis.UniversalClient) {
	parts.Redis = rdb
	parts.Metrics.ObserveRedis(rdb)
	parts.Traces.TraceRedis(rdb)
	if s.RateLimit == "off" {
		return
	}
	creations, _ := quota.Parse(s.CreateLimit) // faults has checked it
	parts.Creation = quota.New(quota.Config{Name: "create", Rates: creations, Redis: rdb, Log: parts.Log})
	parts.Failures = quota.New(quota.Config{
		Name: "credentials", Rates: []quota.Rate{{Uses: failuresPerMinute, Per: time.Minute}}, Redis: rdb, Log: parts.Log,
	})
}
