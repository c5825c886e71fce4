package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart/catalog"
	"commerce/cart/money"
	"commerce/cart/redisstore"
	"commerce/cmd/internal/backstage"
	"commerce/cmd/internal/cli"
	"commerce/cmd/internal/pages"
	"commerce/cmd/internal/server"
	"commerce/deploy/connect"
	"commerce/deploy/sample"
	"commerce/subscriptions"
	"commerce/subscriptions/history"
)

type demoCommand struct {
	settings
	guarded bool // listens on loopback only, because of JWT_SECRET
}

// newDemo returns the command that runs the demo. The default of ADDR depends on JWT_SECRET, and there is no JWT_JWKS_URL.
func newDemo() cli.Command {
	c := &demoCommand{}
	all := slices.DeleteFunc(c.settings.declare(), func(s cli.Setting) bool { return s.Name == "JWT_JWKS_URL" })
	for i := range all {
		switch all[i].Name {
		case "ADDR":
			all[i].Default = ""
			all[i].Help = "Address of the public API. Default: 127.0.0.1:8080 if JWT_SECRET is set, otherwise :8080."
		case "JWT_AUDIENCE":
			all[i].Help = "Audience that tokens must have. Default: any."
		}
	}
	return cli.Command{
		Name: "demo", Help: "Run the service in one process, with sample data and without Redis or Postgres.",
		Settings: all, Faults: c.faults, OpenLog: c.openLog, Fail: c.fail, Run: c.run,
	}
}

// faults sets the demo's own defaults, and adds what only the demo can tell.
func (c *demoCommand) faults() cli.Faults {
	c.complete()
	f := c.settings.faults()
	if os.Getenv("JWT_JWKS_URL") != "" {
		f.Add("JWT_JWKS_URL", errors.New("the demo signs its customers' tokens: unset it, and use JWT_SECRET instead"))
	}
	if c.store() == nil {
		f.Add("DEFAULT_STORE", fmt.Errorf("the demo has no store %d", c.DefaultStore))
	}
	return f
}

func (c *demoCommand) run(ctx context.Context, out cli.Output) error {
	a, err := c.begin(ctx, out)
	if err != nil {
		return err
	}
	defer a.close()
	if c.guarded {
		a.Log.Warn("only this machine can connect, because the demo gives everyone tokens that your JWT_SECRET signs; set ADDR to change this")
	}
	sockets, err := c.listen()
	if err != nil {
		return err
	}
	embedded, err := startEmbeddedRedis(ctx)
	if err != nil {
		return err
	}
	a.atEnd(embedded.Close)
	const limit = 5 * time.Second // of a Redis that is only late when the machine is busy
	a.Carts.Budget = limit
	if err := c.useRedis(a, "redis://"+embedded.Addr(), connect.Within(limit)); err != nil {
		return err
	}
	now := time.Now()
	stores := append(sample.Stores(), sample.LongListStore())
	stores[0].CartURL = c.cartURL(sockets)
	a.Stores = auth.NewMemoryStores(money.Known, stores...)
	catalog, subs := sampleCatalog(now), demoSubscriptions(now)
	a.Carts.Catalog, a.Carts.Coupons, a.Subscriptions = catalog, catalog, subs
	past := history.NewMemory(subs)
	past.Record(sample.Pasts(now)...)
	for _, e := range extras() {
		if e.demo != nil {
			e.demo(&inMemory{a, subs, past})
		}
	}
	demo, err := c.offer(a, now)
	if err != nil {
		return err
	}
	// On a loopback address, others can still come through a browser of this machine.
	at, err := net.ResolveTCPAddr("tcp", c.Addr)
	a.Local = err == nil && at.IP.IsLoopback()
	a.LocalProfiles = true
	demo.Backstage = backstage.Routes(c.store(), catalog, subs, redisstore.New(a.Redis))
	if a.Playground != nil {
		a.Playground.Demo = demo
	}
	return c.serve(ctx, sockets, a.Parts, &server.Admin{Metrics: a.Metrics}, 0, func() { c.welcome(out, sockets, demo.CustomerJWT, demo.APIToken) })
}

func (c *demoCommand) complete() {
	c.DefaultStore = cmp.Or(c.DefaultStore, 1)
	c.Playground, c.UCP = cmp.Or(c.Playground, "on"), cmp.Or(c.UCP, "on")
	c.LogFormat = cmp.Or(c.LogFormat, "text")
	c.LogLevel = cmp.Or[slog.Leveler](c.LogLevel, slog.LevelWarn) // requests would push the addresses off the terminal
	if c.CORSOrigins == nil {
		c.CORSOrigins = []string{"*"}
	}
	c.HandoverKey = cmp.Or(c.HandoverKey, rand.Text()+rand.Text())
	c.guarded = len(c.JWT.Secret) > 0 && c.Addr == ""
	if c.guarded {
		c.Addr = "127.0.0.1:8080"
	}
	c.Addr = cmp.Or(c.Addr, ":8080")
	if len(c.JWT.Secret) == 0 {
		c.JWT.Secret = []byte(rand.Text() + rand.Text())
	}
}

// welcome prints the demo's addresses, its tokens, calls to paste, and the URL last, where a reader
// looks first. A token has a line of its own, so that a triple click selects it.
func (c *demoCommand) welcome(out cli.Output, sockets listeners, token, apiToken string) {
	url := c.localURL(sockets)
	reference := "/docs"
	if c.Playground == "off" {
		reference = "/openapi.yaml"
	}
	bold := boldFor(out.Writer)
	fmt.Fprintf(out, `Demo of the Merchant Commerce Service. Everything runs in this process, and all
data is lost when it stops (Ctrl-C). With LOG_LEVEL=info, it logs requests.

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

%[11]s

`, url, token, apiToken, sockets.admin.Addr(), c.store().PublicKeys[0], sample.Products()[c.DefaultStore][0].ID,
		bold("Customer JWT"), bold("API token"), bold("To try it, paste this into another terminal:"), reference, bold("Open "+url))
}

func (c *demoCommand) localURL(sockets listeners) string {
	_, port, _ := net.SplitHostPort(sockets.public.Addr().String())
	return "http://localhost:" + port + strings.TrimSuffix(c.BasePath, "/")
}

// cartURL is the URL of the page that takes handed-over carts: the playground, if there is one.
func (c *demoCommand) cartURL(sockets listeners) string {
	base := strings.TrimSuffix(c.BasePath, "/")
	switch public := strings.TrimSuffix(c.PublicURL, "/"); {
	case c.Playground == "off":
		return ""
	case public != "":
		return strings.TrimSuffix(public, base) + base + "/"
	}
	return c.localURL(sockets) + "/"
}

func (c *demoCommand) store() *store.Store {
	for _, s := range sample.Stores() {
		if s.ID == c.DefaultStore {
			return s
		}
	}
	return nil
}

// startEmbeddedRedis starts a Redis in this process. Its clock does not advance by
// itself, so a goroutine advances it until ctx ends; otherwise no key would expire.
func startEmbeddedRedis(ctx context.Context) (*miniredis.Miniredis, error) {
	embedded := miniredis.NewMiniRedis()
	if err := embedded.Start(); err != nil {
		return nil, fmt.Errorf("start the embedded Redis: %w", err)
	}
	go func() {
		for second := time.Tick(time.Second); ; {
			select {
			case <-second:
				embedded.FastForward(time.Second)
			case <-ctx.Done():
				return
			}
		}
	}()
	return embedded, nil
}

func sampleCatalog(now time.Time) *catalog.Memory {
	memory := catalog.NewMemory(sample.Products())
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

// longList is the number of subscriptions in the demo's long list: 1,334 pages of 15.
const longList = 20_000

func demoSubscriptions(now time.Time) *subscriptions.Memory {
	customers, all := sample.LongList(longList, now)
	return subscriptions.NewMemory(append(sample.Customers(), customers...), append(sample.Subscriptions(now), all...))
}

// offer returns what the demo offers to its page, except its backstage. It also sets the API tokens.
func (c *demoCommand) offer(a *assembly, now time.Time) (*pages.Demo, error) {
	demo := &pages.Demo{Agent: a.UCP, Customers: []pages.DemoCustomer{
		{ID: "1001", Name: locale.Text{locale.En: "Sara", locale.Ar: "سارة"}},
		{ID: "1002", Name: locale.Text{locale.En: "Omar", locale.Ar: "عمر"}},
		{ID: "1003", Name: locale.Text{locale.En: "Layla", locale.Ar: "ليلى"}},
		{ID: "1004", Name: locale.Text{locale.En: "Yousef", locale.Ar: "يوسف"}},
	}}
	var err error
	for i := range demo.Customers {
		customer := &demo.Customers[i]
		if customer.JWT, err = a.JWT.Sign(c.DefaultStore, customer.ID, 24*time.Hour); err != nil {
			return nil, fmt.Errorf("sign the demo's tokens: %w", err)
		}
	}
	demo.CustomerJWT = demo.Customers[0].JWT
	if demo.ExpiredJWT, err = c.expiredToken(demo.Customers[0].ID, now); err != nil {
		return nil, fmt.Errorf("sign the demo's expired token: %w", err)
	}
	apiTokens := auth.MemoryAPITokens{}
	for store, text := range map[int64]*string{
		c.DefaultStore:            &demo.APIToken,
		sample.LongListStore().ID: &demo.LongListToken,
	} {
		secret, sum := auth.NewAPISecret()
		apiTokens[store] = auth.APIToken{ID: store, StoreID: store, Name: "demo", Hash: sum, CreatedAt: now}
		*text = fmt.Sprintf("%d|%s", store, secret)
	}
	a.APITokens = auth.NewAPITokens(auth.APITokensConfig{Source: apiTokens, Stores: a.Stores, Failures: a.apiFailures})
	return demo, nil
}

func (c *demoCommand) expiredToken(customer string, now time.Time) (string, error) {
	past := c.JWT.JWTConfig
	past.Now = func() time.Time { return now.Add(-2 * time.Hour) }
	tokens, err := auth.NewJWT(past)
	if err != nil {
		return "", err
	}
	return tokens.Sign(c.DefaultStore, customer, time.Hour)
}
