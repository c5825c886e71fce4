// Package carttest changes carts in Redis as tests need them.
package carttest

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed age.lua
var ageLua string

var ageScript = redis.NewScript(ageLua)

// Age lets time pass for the carts under keys, as if they had been written so much
// earlier. Redis' own clock, by which carts are judged, cannot be set.
func Age(ctx context.Context, client redis.UniversalClient, by time.Duration, keys ...string) error {
	if _, single := client.(*redis.Client); single {
		return age(ctx, client, by, keys...)
	}
	for _, key := range keys { // of a cluster, which has each in a slot of its own
		if err := age(ctx, client, by, key); err != nil {
			return err
		}
	}
	return nil
}

func age(ctx context.Context, client redis.UniversalClient, by time.Duration, keys ...string) error {
	if err := ageScript.Run(ctx, client, keys, by.Milliseconds()).Err(); err != nil && err != redis.Nil {
		return fmt.Errorf("age %d keys: %w", len(keys), err)
	}
	return nil
}
