package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"time"

	"github.com/alicebob/miniredis/v2"

	"commerce/auth"
	"commerce/cart/catalog"
	"commerce/cmd/internal/server"
	"commerce/deploy/connect"
	"commerce/deploy/sample"
)

type demoCommand struct {
	settings `embed:""`
}

// Run serves the sample stores from memory until it is told to end.
func (c *demoCommand) Run(ctx context.Context, out output) error {
	c.demoDefaults()
	log, err := c.logger(out)
	if err != nil {
		return err
	}
	parts, err := c.parts(log)
	if err != nil {
		return err
	}
	if parts.JWT, err = c.JWT.verifier(); err != nil {
		return err
	}
	embedded, err := startEmbeddedRedis(ctx)
	if err != nil {
		return err
	}
	defer embedded.Close()
	rdb, err := connect.Redis("redis://" + embedded.Addr())
	if err != nil {
		return err
	}
	defer rdb.Close()
	parts.Redis = rdb
	memory := sampleCatalog(time.Now())
	parts.Catalog, parts.Coupons = memory, memory
	parts.Stores = auth.NewMemoryStores(sample.Stores()...)

	handler, err := server.Assemble(parts)
	if err != nil {
		return fmt.Errorf("assemble: %w", err)
	}
	token, err := parts.JWT.Sign(c.DefaultStore, "1001", 24*time.Hour)
	if err != nil {
		return fmt.Errorf("sign the demo's token: %w", err)
	}
	sockets, err := c.listen()
	if err != nil {
		return err
	}
	c.welcome(out, sockets.public.Addr(), token)
	admin := &server.Admin{Metrics: parts.Metrics, Version: version}
	return sockets.serve(ctx, handler, admin, log)
}

// sampleCatalog holds what the sample stores sell.
func sampleCatalog(now time.Time) *catalog.Memory {
	memory := catalog.NewMemory(sample.Products())
	for store, coupons := range sample.Coupons(now) {
		for _, c := range coupons {
			memory.PutCoupon(store, c)
		}
	}
	return memory
}

// demoDefaults fills in what only the demo may decide by itself.
func (c *demoCommand) demoDefaults() {
	if c.DefaultStore == 0 {
		c.DefaultStore = 1
	}
	if c.CORSOrigins == nil {
		c.CORSOrigins = []string{"*"}
	}
	if c.LogFormat == "" {
		c.LogFormat = "text"
	}
	if c.JWT.Secret == "" && c.JWT.JWKSURL == "" {
		c.JWT.Secret = rand.Text() + rand.Text()
	}
}

// startEmbeddedRedis runs a Redis in this process. Its clock stands still by
// itself, so TTLs are made to pass.
func startEmbeddedRedis(ctx context.Context) (*miniredis.Miniredis, error) {
	embedded := miniredis.NewMiniRedis()
	if err := embedded.Start(); err != nil {
		return nil, fmt.Errorf("start the embedded Redis: %w", err)
	}
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				embedded.FastForward(time.Second)
			}
		}
	}()
	return embedded, nil
}

// welcome says what runs where, and what to try.
func (c *demoCommand) welcome(out output, addr net.Addr, token string) {
	_, port, _ := net.SplitHostPort(addr.String())
	url := "http://localhost:" + port + c.BasePath
	fmt.Fprintf(out, `Merchant Commerce Service, demo: everything in this process, nothing is kept.

  URL            %[1]s
  Store          pk_demo   (X-Public-Key; the default here)
  Customer JWT   %[2]s

Try:
  curl -s %[1]s/cart/add -H 'Content-Type: application/json' -d '{"product_id":1,"qty":2}'
  curl -s %[1]s/cart -H 'Authorization: Bearer <the JWT above>'

API description: %[1]s/openapi.yaml   Stop with Ctrl-C.

`, url, token)
}
