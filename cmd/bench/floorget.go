package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strconv"

	"github.com/gin-gonic/gin"

	"commerce/deploy/connect"
)

// floorLine is a line of a cart, about 150 bytes of JSON.
type floorLine struct {
	ID        string `json:"id"`
	ProductID int64  `json:"product_id"`
	Name      string `json:"name"`
	Slug      string `json:"slug"`
	Quantity  int64  `json:"quantity"`
	UnitPrice int64  `json:"unit_price"`
	Currency  string `json:"currency"`
	AddedAt   string `json:"added_at"`
}

// floorGet reads a hash of five lines and responds with them. It uses Gin, go-redis with
// the service's settings, and encoding/json.
func floorGet(ctx context.Context) error {
	rdb, err := connect.Redis(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	defer rdb.Close()
	const key = "floor"
	for i := range int64(fewLines) {
		line, err := json.Marshal(floorLine{
			ID: strconv.FormatInt(firstProduct+i, 10), ProductID: firstProduct + i, Name: "Game credit", Slug: "game-credit",
			Quantity: 1, UnitPrice: 1000, Currency: "SAR", AddedAt: "2026-01-01T00:00:00Z",
		})
		if err != nil {
			return err
		}
		if err := rdb.HSet(ctx, key, i, line).Err(); err != nil {
			return err
		}
	}
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.GET("/cart", func(c *gin.Context) {
		stored, err := rdb.HGetAll(c.Request.Context(), key).Result()
		if err != nil {
			c.Status(http.StatusInternalServerError)
			return
		}
		lines := make([]floorLine, 0, len(stored))
		for _, value := range stored {
			var line floorLine
			if err := json.Unmarshal([]byte(value), &line); err != nil {
				c.Status(http.StatusInternalServerError)
				return
			}
			lines = append(lines, line)
		}
		c.JSON(http.StatusOK, gin.H{"data": lines})
	})
	return http.ListenAndServe(os.Getenv("ADDR"), engine)
}
