package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"commerce/deploy/connect"
	"commerce/deploy/heap"
)

// floors are the floor programs, by name. Each returns the handler of its one route.
// Benchmarks run them as separate processes.
func floors() map[string]func(context.Context) (handle, error) {
	return map[string]func(context.Context) (handle, error){
		"floor-ping":    floorPing,
		"floor-get":     floorGet,
		"floor-shared":  floorShared,
		"floor-hgetall": floorHGETALL,
		"floor-script":  floorScript,
		"floor-add":     floorAdd,
		"floor-list":    floorList,
	}
}

// handle returns the body of a response, which is encoded with encoding/json unless it is
// bytes.
type handle func(*gin.Context) (any, error)

// runFloor serves a floor with the collector's settings of the service.
func runFloor(ctx context.Context, open func(context.Context) (handle, error)) error {
	if _, err := heap.Configure(); err != nil {
		return err
	}
	answer, err := open(ctx)
	if err != nil {
		return err
	}
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.Any("/floor", func(c *gin.Context) {
		switch body, err := answer(c); body := body.(type) {
		case []byte:
			c.Data(http.StatusOK, "application/json; charset=utf-8", body)
		default:
			if err != nil {
				c.Status(http.StatusInternalServerError)
				return
			}
			c.JSON(http.StatusOK, gin.H{"data": body})
		}
	})
	return http.ListenAndServe(os.Getenv("ADDR"), engine)
}

// floorPing responds with 2 KB of constant JSON. It uses only Gin.
func floorPing(context.Context) (handle, error) {
	body := constant(2 << 10)
	return func(*gin.Context) (any, error) { return body, nil }, nil
}

// constant returns JSON of so many bytes.
func constant(size int) []byte {
	return []byte(`{"data":"` + strings.Repeat("x", size-len(`{"data":""}`)) + `"}`)
}

// floorGet reads a hash of five lines and responds with them. It uses Gin, go-redis with
// the service's settings, and encoding/json.
func floorGet(ctx context.Context) (handle, error) {
	rdb, err := withFloorHash(ctx)
	if err != nil {
		return nil, err
	}
	return func(c *gin.Context) (any, error) {
		stored, err := rdb.HGetAll(c.Request.Context(), floorKey).Result()
		if err != nil {
			return nil, err
		}
		return decodeLines(maps.Values(stored), len(stored))
	}, nil
}

// floorKey is the key of a hash of five lines.
const floorKey = "floor"

func withFloorHash(ctx context.Context) (redis.UniversalClient, error) {
	rdb, err := connect.Redis(os.Getenv("REDIS_URL"))
	if err != nil {
		return nil, err
	}
	for i := range int64(fewLines) {
		line, err := newFloorLine(firstProduct+i, 1)
		if err != nil {
			return nil, err
		}
		if err := rdb.HSet(ctx, floorKey, i, line).Err(); err != nil {
			return nil, err
		}
	}
	return rdb, nil
}

//go:embed flooradd.lua
var floorAddLua string

// floorAdd runs a script that changes one line of a cart, and responds with the whole
// cart, as an add of the service does. It uses Gin, go-redis with the service's settings,
// and encoding/json.
func floorAdd(context.Context) (handle, error) {
	rdb, err := connect.Redis(os.Getenv("REDIS_URL"))
	if err != nil {
		return nil, err
	}
	add := redis.NewScript(floorAddLua)
	return func(c *gin.Context) (any, error) {
		var body struct {
			ProductID int64 `json:"product_id"`
			Quantity  int64 `json:"qty"`
		}
		if err := c.ShouldBindJSON(&body); err != nil {
			return nil, err
		}
		line, err := newFloorLine(body.ProductID, body.Quantity)
		if err != nil {
			return nil, err
		}
		key := []string{"floor:" + c.GetHeader("X-Cart-Token")}
		stored, err := add.Run(c.Request.Context(), rdb, key, body.ProductID, line, 1_000_000, (720 * time.Hour).Milliseconds()).StringSlice()
		if err != nil {
			return nil, err
		}
		values := func(yield func(string) bool) {
			for i := 1; i < len(stored) && yield(stored[i]); i += 2 {
			}
		}
		return decodeLines(values, len(stored)/2)
	}, nil
}

// floorLine is a line of a cart as a program without a catalog stores it: with everything
// that a storefront shows of it, about 490 bytes as JSON.
type floorLine struct {
	ID             string     `json:"id"`
	ProductID      int64      `json:"product_id"`
	Name           string     `json:"name"`
	Slug           string     `json:"slug"`
	Type           string     `json:"type"`
	Description    string     `json:"description"`
	Image          floorImage `json:"image"`
	Quantity       int64      `json:"quantity"`
	UnitPrice      float64    `json:"unit_price"`
	TotalPrice     float64    `json:"total_price"`
	FormattedPrice string     `json:"formatted_price"`
	FormattedTotal string     `json:"formatted_total"`
	Currency       string     `json:"currency"`
	Status         int        `json:"status"`
	Unlimited      bool       `json:"unlimited_stock"`
	AddedAt        string     `json:"added_at"`
}

type floorImage struct {
	URL string `json:"url"`
	Alt string `json:"alt"`
}

// newFloorLine returns a line as JSON.
func newFloorLine(product, quantity int64) ([]byte, error) {
	id := strconv.FormatInt(product, 10)
	return json.Marshal(floorLine{
		ID: id, ProductID: product, Name: "Game credit " + id, Slug: "game-credit-" + id, Type: "digital",
		Description: "Credit for the game, delivered by e-mail within a minute after the payment is made",
		Image:       floorImage{URL: "https://cdn.example.com/products/game-credit-" + id + ".webp", Alt: "Game credit " + id},
		Quantity:    quantity, UnitPrice: 10.01, TotalPrice: 10.01 * float64(quantity),
		FormattedPrice: "SAR 10.01", FormattedTotal: fmt.Sprintf("SAR %.2f", 10.01*float64(quantity)),
		Currency: "SAR", Status: 1, Unlimited: true, AddedAt: "2026-01-01T00:00:00Z",
	})
}

// decodeLines decodes n stored lines.
func decodeLines(stored iter.Seq[string], n int) ([]floorLine, error) {
	lines := make([]floorLine, 0, n)
	for text := range stored {
		var line floorLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, nil
}
