package main

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"time"

	"commerce/auth"
	"commerce/auth/limit"
	"commerce/auth/locale"
	"commerce/cart/catalog"
	"commerce/cmd/internal/backstage"
	"commerce/cmd/internal/pages"
	"commerce/cmd/internal/server"
	"commerce/deploy/sample"
	"commerce/subscriptions"
)

// demoMemory is the demo's data that the page's backstage calls change.
type demoMemory struct {
	catalog       *catalog.Memory
	subscriptions *subscriptions.Memory
}

// longList is the number of subscriptions in the demo's long list: 1,334 pages of 15.
const longList = 20_000

// demoSubscriptions returns the sample subscriptions and the long list.
func demoSubscriptions(now time.Time) *subscriptions.Memory {
	few := sample.Subscriptions(now)
	all := slices.AppendSeq(append(make([]subscriptions.Subscription, 0, len(few)+longList), few...), sample.LongList(longList, now))
	return subscriptions.NewMemory(append(sample.Customers(), sample.LongListCustomers(longList)...), all)
}

// offer returns what the demo offers to its page. It sets the API tokens of parts.
func (c *demoCommand) offer(parts *server.Parts, memory demoMemory, now time.Time, failures *limit.Quota) (*pages.Demo, error) {
	demo := &pages.Demo{Customers: demoCustomers(), Reference: parts.Reference}
	var err error
	for i := range demo.Customers {
		customer := &demo.Customers[i]
		if customer.JWT, err = parts.JWT.Sign(c.DefaultStore, customer.ID, 24*time.Hour); err != nil {
			return nil, fmt.Errorf("sign the demo's tokens: %w", err)
		}
	}
	demo.CustomerJWT = demo.Customers[0].JWT
	if demo.ExpiredJWT, err = c.expiredToken(demo.Customers[0].ID, now); err != nil {
		return nil, fmt.Errorf("sign the demo's expired token: %w", err)
	}
	apiTokens := make([]auth.APIToken, 2)
	if apiTokens[0], demo.APIToken, err = newAPIToken(1, c.DefaultStore, now); err != nil {
		return nil, err
	}
	if apiTokens[1], demo.LongListToken, err = newAPIToken(2, sample.LongListStore().ID, now); err != nil {
		return nil, err
	}
	parts.APITokens = auth.NewAPITokens(auth.APITokensConfig{
		Source: auth.NewMemoryAPITokens(apiTokens...), Stores: parts.Stores, Failures: failures,
	})
	demo.Backstage, err = backstage.Routes(backstage.Config{
		Store: c.store(), Catalog: memory.catalog, Subscriptions: memory.subscriptions,
	})
	return demo, err
}

func demoCustomers() []pages.DemoCustomer {
	return []pages.DemoCustomer{
		{ID: "1001", Name: locale.Text{locale.En: "Sara", locale.Ar: "سارة"}},
		{ID: "1002", Name: locale.Text{locale.En: "Omar", locale.Ar: "عمر"}},
		{ID: "1003", Name: locale.Text{locale.En: "Layla", locale.Ar: "ليلى"}},
		{ID: "1004", Name: locale.Text{locale.En: "Yousef", locale.Ar: "يوسف"}},
	}
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

// newAPIToken returns a new API token of a store, and its text.
func newAPIToken(id, store int64, now time.Time) (token auth.APIToken, text string, err error) {
	secret, sum, err := auth.NewAPISecret(rand.Reader)
	if err != nil {
		return auth.APIToken{}, "", fmt.Errorf("make the demo's API token: %w", err)
	}
	token = auth.APIToken{ID: id, StoreID: store, Name: "demo", Hash: sum, CreatedAt: now}
	return token, strconv.FormatInt(id, 10) + "|" + secret, nil
}
