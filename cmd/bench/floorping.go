package main

import (
	"context"
	"net/http"
	"os"
	"strings"

	"github.com/gin-gonic/gin"
)

// floorPing responds with 2 KB of constant JSON. It uses only Gin.
func floorPing(context.Context) error {
	body := []byte(`{"data":"` + strings.Repeat("x", 2048-len(`{"data":""}`)) + `"}`)
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.GET("/cart", func(c *gin.Context) {
		c.Data(http.StatusOK, "application/json; charset=utf-8", body)
	})
	return http.ListenAndServe(os.Getenv("ADDR"), engine)
}
