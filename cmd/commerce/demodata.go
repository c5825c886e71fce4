package main

import (
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/alicebob/miniredis/v2"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/cart/catalog"
	"commerce/cmd/internal/pages"
	"commerce/deploy/sample"
	"commerce/subscriptions"
)

// startEmbeddedRedis starts a Redis in this process. Its clock does not advance by
// itself, so a goroutine advances it; otherwise no key would expire.
func startEmbeddedRedis() (*miniredis.Miniredis, error) {
	embedded := miniredis.NewMiniRedis()
	if err := embedded.Start(); err != nil {
		return nil, fmt.Errorf("start the embedded Redis: %w", err)
	}
	go func() {
		for range time.Tick(time.Second) {
			embedded.FastForward(time.Second)
		}
	}()
	return embedded, nil
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

// longList is the number of subscriptions in the demo's long list: 1,334 pages of 15.
const longList = 20_000

// demoSubscriptions returns the sample subscriptions and the long list.
func demoSubscriptions(now time.Time) *subscriptions.Memory {
	all := slices.AppendSeq(sample.Subscriptions(now), sample.LongList(longList, now))
	return subscriptions.NewMemory(append(sample.Customers(), sample.LongListCustomers(longList)...), all)
}

// offer returns what the demo offers to its page, except its backstage. It also sets the API tokens.
func (c *demoCommand) offer(a *assembly, now time.Time) (*pages.Demo, error) {
	demo := &pages.Demo{Reference: a.Reference, Customers: []pages.DemoCustomer{
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
	for store, text := range map[int64]*string{c.DefaultStore: &demo.APIToken, sample.LongListStore().ID: &demo.LongListToken} {
		secret, sum, err := auth.NewAPISecret(rand.Reader)
		if err != nil {
			return nil, fmt.Errorf("make the demo's API tokens: %w", err)
		}
		apiTokens[store] = auth.APIToken{ID: store, StoreID: store, Name: "demo", Hash: sum, CreatedAt: now}
		*text = fmt.Sprintf("%d|%s", store, secret)
	}
	a.APITokens = auth.NewAPITokens(auth.APITokensConfig{Source: apiTokens, Stores: a.Stores, Failures: a.apiFailures})
	return demo, nil
}

// expiredToken returns a customer's token that expired an hour ago.
func (c *demoCommand) expiredToken(customer string, now time.Time) (string, error) {
	tokens, err := auth.NewJWT(auth.JWTConfig{
		Secret: []byte(c.JWT.Secret), Issuer: c.JWT.Issuer, Audience: c.JWT.Audience,
		Now: func() time.Time { return now.Add(-2 * time.Hour) },
	})
	if err != nil {
		return "", err
	}
	return tokens.Sign(c.DefaultStore, customer, time.Hour)
}
