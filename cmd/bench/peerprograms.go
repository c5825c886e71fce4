package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// openService starts this service.
func openService(ctx context.Context, s *stage) (*peer, error) {
	shop, err := openShop(ctx, s, opening{binary: s.binary})
	if err != nil {
		return nil, err
	}
	return &peer{
		server: shop.server,
		name:   thisService,
		start: func(ctx context.Context) (*process, error) {
			return s.http(ctx, shop.settings, "/openapi.yaml", shop.binary, "serve")
		},
		newCart: func(context.Context, string) (guestCart, error) {
			return cartAt(http.Header{"X-Public-Key": {"pk_demo"}}, firstProduct), nil
		},
	}, nil
}

// cartAt is a new cart of the service or of the small cart, which have the same calls.
func cartAt(guest http.Header, first int) guestCart {
	guest.Set("X-Cart-Token", rand.Text())
	type cart struct {
		Data struct{ Items []line }
	}
	return guestCart{
		read: message{"/cart", guest, nil},
		add: func(product int) message {
			return message{"/cart/add", guest, fmt.Appendf(nil, `{"product_id":%d,"qty":1}`, first+product)}
		},
		lines: linesAt(func(c *cart) []line { return c.Data.Items }),
	}
}

// small is a small cart on Node and Redis, as a team may write it.
func small() program {
	return program{
		folder: "small", title: "small cart on Fastify", main: "fastify", run: "node server.js", ready: "/cart", redis: true,
		newCart: func(context.Context, string, seeded) (guestCart, error) { return cartAt(http.Header{}, 1), nil },
	}
}

func medusa() program {
	const cli = "node node_modules/@medusajs/cli/cli.js "
	return program{
		folder: "medusa", title: "Medusa", main: "@medusajs/medusa", run: cli + "start", ready: "/health", redis: true, database: true,
		settings: []string{"MEDUSA_DISABLE_TELEMETRY=true", "MEDUSA_FF_CACHING=true"},
		seed:     []string{cli + "db:migrate", cli + "exec ./seed.js"},
		newCart: func(ctx context.Context, url string, shop seeded) (guestCart, error) {
			header := http.Header{"X-Publishable-Api-Key": {shop.Key}}
			_, answer, err := message{"/store/carts", header, fmt.Appendf(nil, `{"region_id":%q}`, shop.Region)}.send(ctx, url)
			if err != nil {
				return guestCart{}, err
			}
			var created struct{ Cart struct{ ID string } }
			if err := json.Unmarshal(answer, &created); err != nil {
				return guestCart{}, err
			}
			path := "/store/carts/" + created.Cart.ID
			return guestCart{
				read: message{path, header, nil},
				add: func(product int) message {
					return message{path + "/line-items", header, fmt.Appendf(nil, `{"variant_id":%q,"quantity":1}`, shop.Variants[product])}
				},
				lines: linesAt(func(c *struct{ Cart struct{ Items []line } }) []line { return c.Cart.Items }),
			}, nil
		},
	}
}

// vendureCart selects what a storefront shows of a cart, and what the service answers too.
const vendureCart = `id code currencyCode totalQuantity subTotal subTotalWithTax total totalWithTax couponCodes
	discounts { description amountWithTax }
	lines { id quantity unitPriceWithTax linePriceWithTax featuredAsset { preview }
		productVariant { id sku name stockLevel product { slug } } }`

const (
	vendureRead = `query { activeOrder { ` + vendureCart + ` } }`
	vendureAdd  = `mutation Add($variant: ID!) { addItemToOrder(productVariantId: $variant, quantity: 1) {
	... on Order { ` + vendureCart + ` } ... on ErrorResult { errorCode message } } }`
)

func vendure() program {
	query := func(header http.Header, query, variant string) message {
		return message{"/shop-api", header, fmt.Appendf(nil, `{"query":%q,"variables":{"variant":%q}}`, query, variant)}
	}
	return program{
		folder: "vendure", title: "Vendure", main: "@vendure/core", run: "node server.mjs", ready: "/health", database: true,
		settings: []string{"VENDURE_DISABLE_TELEMETRY=true"}, seed: []string{"node seed.mjs"},
		newCart: func(ctx context.Context, url string, shop seeded) (guestCart, error) {
			header, _, err := query(http.Header{}, vendureRead, "").send(ctx, url)
			session := header.Get("vendure-auth-token")
			if err == nil && session == "" {
				err = errors.New("no session in the answer of Vendure")
			}
			guest := http.Header{"Authorization": {"Bearer " + session}}
			type cart struct {
				Data struct{ ActiveOrder struct{ Lines []line } }
			}
			return guestCart{
				read:  query(guest, vendureRead, ""),
				add:   func(product int) message { return query(guest, vendureAdd, shop.Variants[product]) },
				lines: linesAt(func(c *cart) []line { return c.Data.ActiveOrder.Lines }),
			}, err
		},
	}
}
