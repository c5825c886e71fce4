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

// floorAdd runs a script that increases one field of a hash. It uses Gin, go-redis with
// the service's settings, and encoding/json.
func floorAdd(context.Context) error {
	rdb, err := connect.Redis(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	defer rdb.Close()
	add := redis.NewScript(floorAddLua)
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.POST("/cart/add", func(c *gin.Context) {
		var body struct {
			ProductID int64 `json:"product_id"`
			Quantity  int64 `json:"qty"`
		}
		if err := c.ShouldBindJSON(&body); err != nil {
			c.Status(http.StatusBadRequest)
			return
		}
		key := []string{"floor:" + c.GetHeader("X-Cart-Token")}
		n, err := add.Run(c.Request.Context(), rdb, key, body.ProductID, body.Quantity, 1_000_000, (720 * time.Hour).Milliseconds()).Int64()
		if err != nil {
			c.Status(http.StatusInternalServerError)
			return
		}
		c.JSON(http.StatusOK, gin.H{"product_id": body.ProductID, "quantity": n})
	})
	return http.ListenAndServe(os.Getenv("ADDR"), engine)
}
