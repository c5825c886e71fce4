package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// openMedusa starts Medusa with its own Postgres database and Redis server.
func openMedusa(ctx context.Context, s *stage) (*peer, error) {
	node, err := newNodePeer(ctx, s, "medusa", "Medusa", "@medusajs/medusa")
	if err != nil {
		return nil, err
	}
	redis, err := s.redis(ctx)
	if err != nil {
		return nil, err
	}
	database, err := s.emptyDatabase(ctx)
	if err != nil {
		return nil, err
	}
	const medusa = "node node_modules/@medusajs/cli/cli.js "
	node.run = medusa + "start"
	node.settings = append(node.settings,
		"MEDUSA_DISABLE_TELEMETRY=true", "MEDUSA_FF_CACHING=true", "DATABASE_URL="+database, "REDIS_URL="+redis.url)
	var seeded struct {
		Key, Region string
		Variants    []string
	}
	if err := node.seed(ctx, &seeded, medusa+"db:migrate", medusa+"exec ./seed.js"); err != nil {
		return nil, err
	}
	p, err := node.open(ctx, s, "/health", stores(redis, database))
	if err != nil {
		return nil, err
	}
	header := http.Header{"X-Publishable-Api-Key": {seeded.Key}}
	p.newCart = func(ctx context.Context) (guestCart, error) {
		_, answer, err := message{"/store/carts", header, fmt.Appendf(nil, `{"region_id":%q}`, seeded.Region)}.send(ctx, p.url)
		if err != nil {
			return guestCart{}, err
		}
		var created struct {
			Cart struct{ ID string }
		}
		if err := json.Unmarshal(answer, &created); err != nil {
			return guestCart{}, err
		}
		path := "/store/carts/" + created.Cart.ID
		return guestCart{
			read: message{path, header, nil},
			add: func(product int) message {
				return message{path + "/line-items", header, fmt.Appendf(nil, `{"variant_id":%q,"quantity":1}`, seeded.Variants[product])}
			},
			quantities: medusaQuantities,
		}, nil
	}
	return p, nil
}

func medusaQuantities(answer []byte) ([]int, error) {
	var read struct {
		Cart struct {
			Items []struct {
				Quantity int
			}
		}
	}
	if err := json.Unmarshal(answer, &read); err != nil {
		return nil, err
	}
	var all []int
	for _, line := range read.Cart.Items {
		all = append(all, line.Quantity)
	}
	return all, nil
}
