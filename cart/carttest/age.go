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

// Age lets time pass for the carts under keys, as if they had been written so much
// earlier. Redis' own clock, by which carts are judged, cannot be set.
func Age(ctx context.Context, client redis.UniversalClient, by time.Duration, keys ...string) error {
	for _, key := range keys {
		if err := client.Eval(ctx, ageLua, []string{key}, by.Milliseconds()).Err(); err != nil {
			return fmt.Errorf("age %s: %w", key, err)
		}
	}
	return nil
}
