package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"

	"commerce/auth"
	"commerce/cmd/bench/results"
)

// jwtSecret signs customers' tokens.
const jwtSecret = "the secret of the benchmark, which needs 32 bytes"

// serviceSettings returns the environment of `commerce serve`. The service trusts
// X-Forwarded-For, so that each client has its own rate limit.
func serviceSettings(database string, redis *process) []string {
	return []string{
		"DATABASE_URL=" + database, "REDIS_URL=" + redis.url,
		"JWT_SECRET=" + jwtSecret, "TRUSTED_PROXIES=127.0.0.1", "CREATE_LIMIT=off",
	}
}

// cartBench is a benchmark of carts.
type cartBench struct {
	name   string
	floors []string
	cases  []cartCase
}

// cartCase is one kind of request to the service. Its comparisons are with floors and
// with earlier cases of the service.
type cartCase struct {
	name     string
	clients  func(*shop) clients
	compared []results.Comparison
}

func (b cartBench) run(ctx context.Context, s *stage) (results.Benchmark, error) {
	cases, err := b.open(ctx, s)
	if err != nil {
		return results.Benchmark{}, err
	}
	return measure(ctx, s.options, b.name, "Redis", cases)
}

// open starts the floors and the services. Each case of the second service follows the
// same case of the first one.
func (b cartBench) open(ctx context.Context, s *stage) ([]testCase, error) {
	all, err := openFloors(ctx, s, b.floors)
	if err != nil {
		return nil, err
	}
	shops, err := openShops(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, c := range b.cases {
		for _, shop := range shops {
			compared := c.compared
			if shop.label != "" {
				compared = []results.Comparison{{Cost: results.CPU, Of: c.name}}
			}
			all = append(all, testCase{name: c.name + shop.label, server: shop.server, clients: c.clients(shop), compared: compared})
		}
	}
	return all, nil
}

// withDefaultGC follows the name of a floor that runs with Go's default collector.
const withDefaultGC = ", default GC"

// twice returns each floor with the collector's settings of the service, and with Go's
// defaults.
func twice(floors ...string) []string {
	var all []string
	for _, name := range floors {
		all = append(all, name, name+withDefaultGC)
	}
	return all
}

// openFloors starts floors. They share a Redis server.
func openFloors(ctx context.Context, s *stage, names []string) ([]testCase, error) {
	redis, err := s.redis(ctx)
	if err != nil {
		return nil, err
	}
	var all []testCase
	for _, name := range names {
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
	label    string // follows the names of its cases
	binary   string
	server   *server
	redis    *process
	database string
	settings []string
	tokens   *auth.JWT
}

// openShops starts the service, and the second service if there is one.
func openShops(ctx context.Context, s *stage) ([]*shop, error) {
	first, err := openShop(ctx, s, s.binary)
	if err != nil || s.against == "" {
		return []*shop{first}, err
	}
	second, err := openShop(ctx, s, s.against)
	if err != nil {
		return nil, err
	}
	second.label = " [against]"
	return []*shop{first, second}, nil
}

// openShop starts a service. Settings are added to the usual ones.
func openShop(ctx context.Context, s *stage, binary string, settings ...string) (*shop, error) {
	return openShopVia(ctx, s, binary, func(*url.URL) {}, settings...)
}

// openShopVia starts a service that uses an edited URL of its database.
func openShopVia(ctx context.Context, s *stage, binary string, edit func(*url.URL), settings ...string) (*shop, error) {
	database, err := s.database(ctx, binary, 0)
	if err != nil {
		return nil, err
	}
	if err := addProducts(ctx, database); err != nil {
		return nil, err
	}
	via, err := url.Parse(database)
	if err != nil {
		return nil, err
	}
	edit(via)
	// Without pings the replication stream has nothing but the service's changes. A replica
	// need not wait for others.
	redis, err := s.redis(ctx, "--repl-ping-replica-period", "3600", "--repl-diskless-sync-delay", "0")
	if err != nil {
		return nil, err
	}
	settings = append(serviceSettings(via.String(), redis), settings...)
	service, err := s.http(ctx, settings, responds("/openapi.yaml"), binary, "serve")
	if err != nil {
		return nil, err
	}
	tokens, err := auth.NewJWT(auth.JWTConfig{Secret: []byte(jwtSecret)})
	return &shop{binary: binary, server: &server{service, only(redis)}, redis: redis, database: via.String(), settings: settings, tokens: tokens}, err
}

// The products of a benchmark are in store 1, without plans, fields or limits.
const (
	firstProduct = 9001
	products     = 100
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
