package main

import (
	"context"
	_ "embed"
	"net/http"
	"os"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"commerce/deploy/connect"
)

//go:embed flooradd.lua
var floorAddLua string

// floorAdd runs a script that changes one line of a cart, and responds with the whole
// cart, as an add of the service does. It uses Gin, go-redis with the service's settings,
// and encoding/json.
func floorAdd(_ context.Context, engine *gin.Engine) error {
	rdb, err := connect.Redis(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	defer rdb.Close()
	add := redis.NewScript(floorAddLua)
	engine.POST("/cart/add", func(c *gin.Context) {
		var body struct {
			ProductID int64 `json:"product_id"`
			Quantity  int64 `json:"qty"`
		}
		if err := c.ShouldBindJSON(&body); err != nil {
			c.Status(http.StatusBadRequest)
			return
		}
		line, err := newFloorLine(body.ProductID, body.Quantity)
		if err != nil {
			c.Status(http.StatusInternalServerError)
			return
		}
		key := []string{"floor:" + c.GetHeader("X-Cart-Token")}
		stored, err := add.Run(c.Request.Context(), rdb, key, body.ProductID, line, 1_000_000, (720 * time.Hour).Milliseconds()).StringSlice()
		if err != nil {
			c.Status(http.StatusInternalServerError)
			return
		}
		lines := make(floorCart, 0, len(stored)/2)
		for i := 1; i < len(stored); i += 2 {
			if err := lines.add(stored[i]); err != nil {
				c.Status(http.StatusInternalServerError)
				return
			}
		}
		c.JSON(http.StatusOK, gin.H{"data": lines})
	})
	return serveFloor(engine)
}
