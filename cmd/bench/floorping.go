package main

import (
	"context"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
)

// floorPing responds with 2 KB of constant JSON. It uses only Gin.
func floorPing(_ context.Context, engine *gin.Engine) error {
	body := []byte(`{"data":"` + strings.Repeat("x", 2048-len(`{"data":""}`)) + `"}`)
	engine.GET("/cart", func(c *gin.Context) {
		c.Data(http.StatusOK, "application/json; charset=utf-8", body)
	})
	return serveFloor(engine)
}
