// Package carttest has products and limits for tests, and makes carts in Redis older.
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

// Age makes the carts under keys older, as if they had been written earlier by that duration. Tests need
// it because Redis' clock cannot be set.
func Age(ctx context.Context, client redis.UniversalClient, by time.Duration, keys ...string) error {
	if _, single := client.(*redis.Client); single {
		return age(ctx, client, by, keys...)
	}
	for _, key := range keys { // in a cluster, keys may be in different slots
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
