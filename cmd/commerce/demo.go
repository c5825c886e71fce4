package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"

	"commerce/auth"
	"commerce/auth/store"
	"commerce/cart/catalog"
	"commerce/cart/money"
	"commerce/cmd/internal/cli"
	"commerce/cmd/internal/server"
	"commerce/deploy/connect"
	"commerce/deploy/sample"
)

type demoCommand struct {
	settings
	guarded bool // listens on loopback only, because of JWT_SECRET
}

// Settings implements cli.Runnable. The default of ADDR depends on JWT_SECRET.
func (c *demoCommand) Settings() []cli.Setting {
	all := c.settings.Settings()
	for i := range all {
		if all[i].Name == "ADDR" {
			all[i].Default = ""
			all[i].Help = "Address of the public API. Default: 127.0.0.1:8080 if JWT_SECRET is set, otherwise :8080."
		}
	}
	return all
}

// Faults adds what only the demo can tell.
func (c *demoCommand) Faults() cli.Faults {
	f := c.settings.Faults()
	if c.JWT.JWKSURL != "" {
		f.Add("JWT_JWKS_URL", errors.New("the demo signs its customers' tokens: set JWT_SECRET instead"))
	}
	if c.storeKey() == "" {
		f.Add("DEFAULT_STORE", fmt.Errorf("the demo has no store %d", c.DefaultStore))
	}
	return f
}

// Run serves the sample stores from memory until ctx ends.
func (c *demoCommand) Run(ctx context.Context, out cli.Output) error {
	log := c.logger(out)
	if c.guarded {
		log.Warn("only this machine can connect, because the demo gives everyone tokens that your JWT_SECRET signs; set ADDR to change this")
	}
	traces, flush, err := c.openTraces(ctx, log)
	if err != nil {
		return err
	}
	defer flush()
	parts, err := c.parts(log)
	if err != nil {
		return err
	}
	parts.Traces = traces
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
	apiFailures := c.useRedis(&parts, rdb)
	now := time.Now()
	parts.Stores = auth.NewMemoryStores(money.Known, append(sample.Stores(), sample.LongListStore())...)
	memory := demoMemory{sampleCatalog(now, parts.BasePath), demoSubscriptions(now)}
	parts.Catalog, parts.Coupons, parts.Subscriptions = memory.catalog, memory.catalog, memory.subscriptions
	demo, err := c.offer(&parts, memory, now, apiFailures)
	if err != nil {
		return err
	}
	if parts.Playground != nil {
		parts.Playground.Demo = demo
	}
	return c.run(ctx, parts, &server.Admin{Metrics: parts.Metrics}, 0, func(sockets listeners) { c.welcome(out, sockets, demo.CustomerJWT, demo.APIToken) })
}

// sampleCatalog returns the products and coupons of the sample stores, with pictures below
// the base path.
func sampleCatalog(now time.Time, basePath string) *catalog.Memory {
	products := sample.Products()
	for _, list := range products {
		for _, p := range list {
			p.Image.URL = basePath + p.Image.URL
		}
	}
	memory := catalog.NewMemory(products)
	for store, coupons := range sample.Coupons(now) {
		for _, c := range coupons {
			memory.PutCoupon(store, c)
		}
	}
	for _, u := range sample.CouponUses() {
		memory.PutUse(u.Store, u.Code, u.Customer, u.Order)
	}
	return memory
}

// Complete sets the demo's own defaults.
func (c *demoCommand) Complete() {
	if c.DefaultStore == 0 {
		c.DefaultStore = 1
	}
	if c.CORSOrigins == nil {
		c.CORSOrigins = []string{"*"}
	}
	if c.Playground == "" {
		c.Playground = "on"
	}
	if c.Docs == "" {
		c.Docs = "on"
	}
	if c.LogFormat == "" {
		c.LogFormat = "text"
	}
	c.guarded = c.JWT.Secret != "" && c.Addr == ""
	switch {
	case c.guarded:
		c.Addr = "127.0.0.1:8080"
	case c.Addr == "":
		c.Addr = ":8080"
	}
	if c.JWT.Secret == "" && c.JWT.JWKSURL == "" {
		c.JWT.Secret = rand.Text() + rand.Text()
	}
}

// startEmbeddedRedis starts a Redis in this process. Its clock does not advance by
// itself, so a goroutine advances it until ctx ends; otherwise no key would expire.
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

// welcome prints the demo's URLs, its tokens and calls to paste. A token has a line of its own, so
// that a triple click selects it.
func (c *demoCommand) welcome(out cli.Output, sockets listeners, token, apiToken string) {
	_, port, _ := net.SplitHostPort(sockets.public.Addr().String())
	url := "http://localhost:" + port + strings.TrimSuffix(c.BasePath, "/")
	reference := "/docs"
	if c.Docs == "off" {
		reference = "/openapi.yaml"
	}
	bold := boldFor(out.Writer)
	fmt.Fprintf(out, `Demo of the Merchant Commerce Service. Everything runs in this process, and all
data is lost when it stops (Ctrl-C).

  URL            %[1]s
  Store          %[5]s   (X-Public-Key; default store of the demo)
  Operators      http://%[4]s   (/readyz, /metrics and more)
  Reference      %[1]s%[10]s

%[7]s
%[2]s

%[8]s
%[3]s

%[9]s

URL=%[1]s
JWT=%[2]s
API_TOKEN='%[3]s'
curl -sw '\n' $URL/cart/add -H 'Content-Type: application/json' \
  -H "Authorization: Bearer $JWT" -d '{"product_id":%[6]d,"qty":2}'
curl -sw '\n' $URL/cart -H "Authorization: Bearer $JWT"
curl -sw '\n' "$URL/subscriptions?customerEmail=sara@example.com" \
  -H "Authorization: Bearer $API_TOKEN"

`, url, token, apiToken, sockets.admin.Addr(), c.storeKey(), sample.Products()[c.DefaultStore][0].ID,
		bold("Customer JWT"), bold("API token"), bold("To try it, open the URL in a browser, or paste this into another terminal:"), reference)
}

// storeKey returns the publishable key of the demo's default store, "" if there is no
// store with that id.
func (c *demoCommand) storeKey() string {
	if s := c.store(); s != nil {
		return s.PublicKeys[0]
	}
	return ""
}

// store returns the demo's default store, nil if there is no store with that id.
func (c *demoCommand) store() *store.Store {
	for _, s := range sample.Stores() {
		if s.ID == c.DefaultStore {
			return s
		}
	}
	return nil
}
