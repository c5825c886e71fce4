package main

import (
	"context"
	"net/http"
	"os"

	"github.com/gin-gonic/gin"

	"commerce/deploy/connect"
)

// floorGet reads a hash of five lines and responds with them. It uses Gin, go-redis with
// the service's settings, and encoding/json.
func floorGet(ctx context.Context, engine *gin.Engine) error {
	rdb, err := connect.Redis(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	defer rdb.Close()
	const key = "floor"
	for i := range int64(fewLines) {
		line, err := newFloorLine(firstProduct+i, 1)
		if err != nil {
			return err
		}
		if err := rdb.HSet(ctx, key, i, line).Err(); err != nil {
			return err
		}
	}
	engine.GET("/cart", func(c *gin.Context) {
		stored, err := rdb.HGetAll(c.Request.Context(), key).Result()
		if err != nil {
			c.Status(http.StatusInternalServerError)
			return
		}
		lines := make(floorCart, 0, len(stored))
		for _, line := range stored {
			if err := lines.add(line); err != nil {
				c.Status(http.StatusInternalServerError)
				return
			}
		}
		c.JSON(http.StatusOK, gin.H{"data": lines})
	})
	return serveFloor(engine)
}
