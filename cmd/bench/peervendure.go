package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
)

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

// openVendure starts Vendure with its own Postgres database.
func openVendure(ctx context.Context, s *stage) (*peer, error) {
	node, err := newNodePeer(ctx, s, "vendure", "Vendure", "@vendure/core")
	if err != nil {
		return nil, err
	}
	database, err := s.emptyDatabase(ctx)
	if err != nil {
		return nil, err
	}
	node.run = "node server.mjs"
	node.settings = append(node.settings, "VENDURE_DISABLE_TELEMETRY=true", "DATABASE_URL="+database)
	var seeded struct{ Variants []string }
	if err := node.seed(ctx, &seeded, "node seed.mjs"); err != nil {
		return nil, err
	}
	p, err := node.open(ctx, s, "/health", stores(nil, database))
	if err != nil {
		return nil, err
	}
	p.newCart = func(ctx context.Context) (guestCart, error) {
		header, _, err := vendureMessage(nil, vendureRead, nil).send(ctx, p.url)
		if err != nil {
			return guestCart{}, err
		}
		session := header.Get("vendure-auth-token")
		if session == "" {
			return guestCart{}, errors.New("no session in the answer of Vendure")
		}
		guest := http.Header{"Authorization": {"Bearer " + session}}
		return guestCart{
			read: vendureMessage(guest, vendureRead, nil),
			add: func(product int) message {
				return vendureMessage(guest, vendureAdd, map[string]string{"variant": seeded.Variants[product]})
			},
			quantities: vendureQuantities,
		}, nil
	}
	return p, nil
}

func vendureMessage(header http.Header, query string, variables map[string]string) message {
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		panic(err) // it holds only texts
	}
	if header == nil {
		header = http.Header{}
	}
	return message{"/shop-api", header, body}
}

func vendureQuantities(answer []byte) ([]int, error) {
	var cart struct {
		Data struct {
			ActiveOrder struct {
				Lines []struct {
					Quantity int
				}
			}
		}
	}
	if err := json.Unmarshal(answer, &cart); err != nil {
		return nil, err
	}
	var all []int
	for _, line := range cart.Data.ActiveOrder.Lines {
		all = append(all, line.Quantity)
	}
	return all, nil
}
