package main

import (
	"context"
	"net"
	"net/http"
	"os"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"commerce/deploy/heap"
)

// floors are the floor programs, by name. Each adds its one route to a router, and
// serves with it until ctx ends. Benchmarks run them as separate processes.
func floors() map[string]func(context.Context, *gin.Engine) error {
	return map[string]func(context.Context, *gin.Engine) error{
		"floor-list": floorList,
		"floor-ping": floorPing,
		"floor-get":  floorGet,
		"floor-add":  floorAdd,
	}
}

// defaultGC is the argument of a floor that runs with Go's default collector.
const defaultGC = "default-gc"

// runFloor runs a floor with the collector's settings of the service, or with Go's
// defaults.
func runFloor(ctx context.Context, floor func(context.Context, *gin.Engine) error, args []string) error {
	if len(args) == 0 || args[0] != defaultGC {
		if _, err := heap.Configure(0); err != nil {
			return err
		}
	}
	gin.SetMode(gin.ReleaseMode)
	return floor(ctx, gin.New())
}

// serveFloor serves the floor, and its metrics on another address like the service.
func serveFloor(engine *gin.Engine) error {
	admin, err := net.Listen("tcp", os.Getenv("ADMIN_ADDR"))
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	go func() { failed <- http.Serve(admin, promhttp.Handler()) }()
	go func() { failed <- http.ListenAndServe(os.Getenv("ADDR"), engine) }()
	return <-failed
}
