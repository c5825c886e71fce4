package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"commerce/auth"
)

// jwtSecret signs customers' tokens.
const jwtSecret = "the secret of the benchmark, which needs 32 bytes"

// serviceSettings returns the environment of `commerce serve`. The service trusts
// X-Forwarded-For, so that each client has its own rate limit.
func serviceSettings(database string, redis *process) []string {
	return []string{
		"DATABASE_URL=" + database, "REDIS_URL=" + redis.url,
		"JWT_SECRET=" + jwtSecret, "TRUSTED_PROXIES=127.0.0.1",
	}
}

// cartBench is a benchmark of carts.
type cartBench struct {
	name   string
	floors []string // cases are compared with the last one
	cases  []cartCase
}

// cartCase is one kind of request.
type cartCase struct {
	name    string
	clients func(*shop) clients
}

func (b cartBench) run(ctx context.Context, o options) (results, error) {
	s, err := newStage(o)
	if err != nil {
		return results{}, err
	}
	defer s.close()
	cases, err := b.open(ctx, s)
	if err != nil {
		return results{}, err
	}
	return measure(ctx, o, b.name, cases)
}

// open starts the floors and the services. Each case of the second service follows the
// same case of the first one.
func (b cartBench) open(ctx context.Context, s *stage) ([]testCase, error) {
	all, err := b.openFloors(ctx, s)
	if err != nil {
		return nil, err
	}
	binary, err := s.service(ctx)
	if err != nil {
		return nil, err
	}
	first, err := openShop(ctx, s, binary)
	if err != nil {
		return nil, err
	}
	var second *shop
	if s.against != "" {
		if second, err = openShop(ctx, s, s.against); err != nil {
			return nil, err
		}
	}
	floor := comparison{of: b.floors[len(b.floors)-1], cost: wholeCost}
	for _, c := range b.cases {
		all = append(all, testCase{c.name, first.server, c.clients(first), []comparison{floor}})
		if second != nil {
			all = append(all, testCase{
				c.name + " [against]", second.server, c.clients(second),
				[]comparison{floor, {of: c.name, cost: wholeCost}},
			})
		}
	}
	return all, nil
}

func (b cartBench) openFloors(ctx context.Context, s *stage) ([]testCase, error) {
	redis, err := s.redis(ctx)
	if err != nil {
		return nil, err
	}
	var all []testCase
	for _, name := range b.floors {
		p, err := s.floor(ctx, []string{"REDIS_URL=" + redis.url}, name)
		if err != nil {
			return nil, err
		}
		all = append(all, testCase{name: name, server: &server{p, only(redis)}, clients: floorClients(name, p.url)})
	}
	return all, nil
}

func only(p *process) func(context.Context) ([]int, error) {
	return func(context.Context) ([]int, error) { return []int{p.pid()}, nil }
}

// shop is a service with its own database and Redis server, so that two builds may use
// different storage layouts.
type shop struct {
	server *server
	tokens *auth.JWT
}

func openShop(ctx context.Context, s *stage, binary string) (*shop, error) {
	database, err := s.database(ctx, binary, 0)
	if err != nil {
		return nil, err
	}
	if err := addProducts(ctx, database); err != nil {
		return nil, err
	}
	redis, err := s.redis(ctx)
	if err != nil {
		return nil, err
	}
	service, err := s.http(ctx, serviceSettings(database, redis), "/openapi.yaml", binary, "serve")
	if err != nil {
		return nil, err
	}
	tokens, err := auth.NewJWT(auth.JWTConfig{Secret: []byte(jwtSecret)})
	return &shop{&server{service, only(redis)}, tokens}, err
}

// The products of a benchmark are in store 1, without plans, fields or limits.
const (
	firstProduct = 9001
	products     = 50
)

func addProducts(ctx context.Context, database string) error {
	db, err := pgx.Connect(ctx, database)
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	_, err = db.Exec(ctx, `INSERT INTO products (store_id, id, name, slug, type, price, original_price, image_url, image_alt)
		SELECT 1, id, 'Game credit ' || id, 'game-credit-' || id, 'digital', 1000 + id, 1000 + id,
			'https://cdn.example.com/products/game-credit-' || id || '.webp', 'Game credit ' || id
		FROM generate_series($1::bigint, $2::bigint) id`, firstProduct, firstProduct+products-1)
	if err != nil {
		return fmt.Errorf("add products: %w", err)
	}
	return nil
}
