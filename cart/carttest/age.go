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

// Age makes the carts under keys older, one after the other, as if they had been written earlier by
// that duration. Tests need it because Redis' clock cannot be set.
func Age(ctx context.Context, client redis.UniversalClient, by time.Duration, keys ...string) error {
	for _, key := range keys {
		if err := ageScript.Run(ctx, client, []string{key}, by.Milliseconds()).Err(); err != nil && err != redis.Nil {
			return fmt.Errorf("age %s: %w", key, err)
		}
	}
	return nil
}
