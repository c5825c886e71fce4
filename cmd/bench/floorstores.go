package main

import (
	"context"
	"runtime"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
)

// perPipeline is how many commands the floors of a Redis server send in one request.
const perPipeline = 16

// floorHGETALL sends a pipeline that reads a hash of five lines.
func floorHGETALL(ctx context.Context) (handle, error) {
	return floorPipeline(ctx, func(pipe redis.Pipeliner) { pipe.Do(ctx, "hgetall", floorKey) })
}

// floorScript sends a pipeline of the smallest script.
func floorScript(ctx context.Context) (handle, error) {
	const script = "return 1"
	return floorPipeline(ctx, func(pipe redis.Pipeliner) { pipe.EvalSha(ctx, redis.NewScript(script).Hash(), nil) }, script)
}

func floorPipeline(ctx context.Context, add func(redis.Pipeliner), scripts ...string) (handle, error) {
	rdb, err := withFloorHash(ctx)
	if err != nil {
		return nil, err
	}
	for _, script := range scripts {
		if err := rdb.ScriptLoad(ctx, script).Err(); err != nil {
			return nil, err
		}
	}
	return func(*gin.Context) (any, error) {
		_, err := rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for range perPipeline {
				add(pipe)
			}
			return nil
		})
		return []byte("{}"), err
	}, nil
}

// floorShared reads a hash of five lines in a round trip that its callers share, and responds with 6 KB of constant JSON,
// the size of the service's cart. It does nothing else for a request: this is the least that a read can take with net/http.
func floorShared(ctx context.Context) (handle, error) {
	rdb, err := withFloorHash(ctx)
	if err != nil {
		return nil, err
	}
	body, reads := constant(6<<10), make(chan chan error, 1024)
	go func() {
		for first := range reads {
			runtime.Gosched() // lets other callers join
			batch := append(waiting(reads), first)
			_, err := rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
				for range batch {
					pipe.Do(ctx, "hgetall", floorKey)
				}
				return nil
			})
			for _, done := range batch {
				done <- err
			}
		}
	}()
	return func(*gin.Context) (any, error) {
		done := make(chan error, 1)
		reads <- done
		return body, <-done
	}, nil
}

// waiting returns what waits in a channel now.
func waiting(reads <-chan chan error) []chan error {
	batch := make([]chan error, 0, len(reads)+1)
	for range len(reads) {
		batch = append(batch, <-reads)
	}
	return batch
}
