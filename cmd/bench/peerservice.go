package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
)

// openServicePeer starts this service.
func openServicePeer(ctx context.Context, s *stage) (*peer, error) {
	shop, err := openShop(ctx, s, s.binary)
	if err != nil {
		return nil, err
	}
	return &peer{
		server: &server{shop.server.process, stores(shop.redis, shop.database)},
		name:   thisService,
		start: func(ctx context.Context) (*process, error) {
			return startHTTP(ctx, shop.settings, responds("/openapi.yaml"), shop.binary, "serve")
		},
		newCart: func(context.Context) (guestCart, error) {
			guest := http.Header{"X-Public-Key": {"pk_demo"}, "X-Cart-Token": {rand.Text()}}
			return guestCart{
				read:       message{"/cart", guest, nil},
				add:        func(product int) message { return message{"/cart/add", guest, addition(product)} },
				quantities: quantitiesOfItems,
			}, nil
		},
	}, nil
}

// quantitiesOfItems reads the answer of the service, and that of the small cart.
func quantitiesOfItems(answer []byte) ([]int, error) {
	var cart struct {
		Data struct {
			Items []struct {
				Quantity int
			}
		}
	}
	if err := json.Unmarshal(answer, &cart); err != nil {
		return nil, err
	}
	var all []int
	for _, line := range cart.Data.Items {
		all = append(all, line.Quantity)
	}
	return all, nil
}
