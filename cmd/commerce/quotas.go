package main

import (
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/quota"
)

// failuresPerMinute is how many invalid tokens a client may send. It is far above what programs with
// a stale token send by mistake: many shops and shoppers may share one address. Tokens cannot
// be guessed at any rate; the limit keeps attempts from costing work.
const failuresPerMinute = 300

// quotas are the limits of a client that all instances count together. They are nil, which
// limits nothing, if they are turned off.
type quotas struct {
	creation *quota.Quota // of guests' carts
	failures *quota.Quota // invalid tokens
}

func (s *settings) quotas(rdb redis.UniversalClient, log *slog.Logger) quotas {
	if s.RateLimit == "off" {
		return quotas{}
	}
	creations, _ := quota.Parse(s.CreateLimit) // faults has checked it
	return quotas{
		creation: quota.New(quota.Config{Name: "create", Rates: creations, Redis: rdb, Log: log}),
		failures: quota.New(quota.Config{
			Name: "credentials", Rates: []quota.Rate{{Uses: failuresPerMinute, Per: time.Minute}}, Redis: rdb, Log: log,
		}),
	}
}
