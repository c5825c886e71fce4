package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
)

// openSmall starts a small cart on Node and Redis, as a team may write it.
func openSmall(ctx context.Context, s *stage) (*peer, error) {
	node, err := newNodePeer(ctx, s, "small", "small cart on Fastify", "fastify")
	if err != nil {
		return nil, err
	}
	redis, err := s.redis(ctx)
	if err != nil {
		return nil, err
	}
	node.run, node.settings = "node server.js", append(node.settings, "REDIS_URL="+redis.url)
	p, err := node.open(ctx, s, "/cart", stores(redis, ""))
	if err != nil {
		return nil, err
	}
	p.newCart = func(context.Context) (guestCart, error) {
		guest := http.Header{"X-Cart-Token": {rand.Text()}}
		return guestCart{
			read: message{"/cart", guest, nil},
			add: func(product int) message {
				return message{"/cart/add", guest, fmt.Appendf(nil, `{"product_id":%d,"qty":1}`, product+1)}
			},
			quantities: quantitiesOfItems,
		}, nil
	}
	return p, nil
}
