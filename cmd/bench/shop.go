package main

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"commerce/auth"
)

// jwtSecret signs customers' tokens.
const jwtSecret = "the secret of the benchmark, which needs 32 bytes"

// shop is a service with its own database and Redis server, so that two builds may use
// different storage layouts.
type shop struct {
	*server
	label    string // follows the names of its cases
	binary   string
	redis    *process
	database string
	settings []string
	tokens   *auth.JWT
	merchant http.Header // of store 1
}

// opening is how to open a shop.
type opening struct {
	binary          string
	subscriptions   int
	redis, postgres string // addresses of proxies; "" for none
	settings        []string
}

// openShops starts the service, and the second service if there is one.
func openShops(ctx context.Context, s *stage, subscriptions int) ([]*shop, error) {
	first, err := openShop(ctx, s, opening{binary: s.binary, subscriptions: subscriptions})
	if err != nil || s.against == "" {
		return []*shop{first}, err
	}
	second, err := openShop(ctx, s, opening{binary: s.against, subscriptions: subscriptions})
	if err != nil {
		return nil, err
	}
	second.label = " [against]"
	return []*shop{first, second}, nil
}

// openShop starts a service on a new database with the sample data and a new Redis server. The
// service trusts X-Forwarded-For, so that each client has its own rate limit.
func openShop(ctx context.Context, s *stage, o opening) (*shop, error) {
	tokens, err := auth.NewJWT(auth.JWTConfig{Secret: []byte(jwtSecret)})
	if err != nil {
		return nil, err
	}
	shop := &shop{binary: o.binary, tokens: tokens}
	if shop.database, err = s.samples.filled(ctx, o.binary, o.subscriptions); err != nil {
		return nil, err
	}
	if shop.redis, err = s.redis(ctx, "redis-server"); err != nil {
		return nil, err
	}
	own := []string{"DATABASE_URL=" + shop.database, "REDIS_URL=" + shop.redis.url, "JWT_SECRET=" + jwtSecret}
	token, err := call(ctx, o.binary, own, "token", "store", "--store", "1", "--name", "bench")
	if err != nil {
		return nil, err
	}
	shop.merchant = http.Header{"Authorization": {"Bearer " + token}}
	shop.settings = append(own, "TRUSTED_PROXIES=127.0.0.1", "CREATE_LIMIT=off")
	if o.redis != "" {
		shop.settings = append(shop.settings, "REDIS_URL=redis://"+o.redis)
	}
	if o.postgres != "" {
		via, err := url.Parse(shop.database)
		if err != nil {
			return nil, err
		}
		via.Host = o.postgres
		shop.settings = append(shop.settings, "DATABASE_URL="+via.String())
	}
	shop.settings = append(shop.settings, o.settings...)
	service, err := s.http(ctx, shop.settings, "/openapi.yaml", o.binary, "serve")
	shop.server = &server{service, stores(shop.redis, shop.database)}
	return shop, err
}

// stores returns the process ids of a Redis server and of the other sessions of a database; nil
// and an empty URL mean none.
func stores(redis *process, database string) func(context.Context) ([]int, error) {
	return func(ctx context.Context) (pids []int, err error) {
		if redis != nil {
			pids = append(pids, redis.pid())
		}
		if database == "" {
			return pids, nil
		}
		db, err := pgx.Connect(ctx, database)
		if err != nil {
			return nil, err
		}
		defer db.Close(ctx)
		rows, err := db.Query(ctx, "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
		if err != nil {
			return nil, err
		}
		sessions, err := pgx.CollectRows(rows, pgx.RowTo[int])
		return append(pids, sessions...), err
	}
}

// The products of a benchmark are in store 1, without plans, fields or limits.
const firstProduct, products = 9001, 100

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

// client connects to a Redis server.
func (p *process) client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: strings.TrimPrefix(p.url, "redis://"), DisableIdentity: true})
}

// shopper returns the headers of someone whose cart has the given number of lines.
type shopper func(s *shop, ctx context.Context, lines int) (http.Header, error)

// newGuest returns a guest.
func (s *shop) newGuest(ctx context.Context, lines int) (http.Header, error) {
	guest := http.Header{"X-Public-Key": {"pk_demo"}, "X-Cart-Token": {crand.Text()}}
	return guest, s.fill(ctx, guest, lines)
}

// newCustomer returns a customer.
func (s *shop) newCustomer(ctx context.Context, lines int) (http.Header, error) {
	token, err := s.tokens.Sign(1, "bench-"+crand.Text(), time.Hour)
	if err != nil {
		return nil, err
	}
	customer := http.Header{"X-Public-Key": {"pk_demo"}, "Authorization": {"Bearer " + token}}
	return customer, s.fill(ctx, customer, lines)
}

// newMerged returns a customer who still sends the token of a guest's cart that was already
// merged.
func (s *shop) newMerged(ctx context.Context, lines int) (http.Header, error) {
	merged, err := s.newCustomer(ctx, 0)
	if err != nil {
		return nil, err
	}
	guest, err := s.newGuest(ctx, lines)
	if err != nil {
		return nil, err
	}
	merged.Set("X-Cart-Token", guest.Get("X-Cart-Token"))
	if _, err := s.call(ctx, http.MethodGet, "/cart", merged, nil, nil); err != nil {
		return nil, err
	}
	return merged, s.confirm(ctx, merged, lines)
}

func (s *shop) fill(ctx context.Context, header http.Header, lines int) error {
	for i := range lines {
		if _, err := s.call(ctx, http.MethodPost, "/cart/add", header, addition(i), nil); err != nil {
			return err
		}
	}
	return s.confirm(ctx, header, lines)
}

// addition returns the body that adds one unit of the ith product.
func addition(i int) []byte { return fmt.Appendf(nil, `{"product_id":%d,"qty":1}`, firstProduct+i) }

// confirm fails unless the cart has the given number of lines, so that a case measures
// what its name says.
func (s *shop) confirm(ctx context.Context, header http.Header, lines int) error {
	var answer struct {
		Data struct{ Lines int }
	}
	if _, err := s.call(ctx, http.MethodGet, "/cart/count", header, nil, &answer); err != nil {
		return err
	}
	if answer.Data.Lines != lines {
		return fmt.Errorf("a cart has %d lines, not %d", answer.Data.Lines, lines)
	}
	return nil
}

// someAddress returns one of many addresses, to stay below the rate limit of each.
func someAddress() string { return fmt.Sprintf("198.19.%d.1", rand.IntN(256)) }

// call sends one unmeasured request and decodes the response into into, unless into is
// nil. It retries 503 and 504, which a busy machine can cause.
func (s *shop) call(ctx context.Context, method, path string, header http.Header, body []byte, into any) (http.Header, error) {
	for tries := 1; ; tries++ {
		response, err := s.open(ctx, method, path, header, body)
		if err != nil {
			return nil, err
		}
		defer discard(response.Body)
		switch {
		case unavailable(response.StatusCode) && tries < 10:
			time.Sleep(100 * time.Millisecond)
		case response.StatusCode != http.StatusOK:
			return nil, fmt.Errorf("%s %s: %s", method, path, response.Status)
		case into == nil:
			return response.Header, nil
		default:
			return response.Header, json.NewDecoder(response.Body).Decode(into)
		}
	}
}

// open sends one unmeasured request. The caller must read the response's body to its end.
func (s *shop) open(ctx context.Context, method, path string, header http.Header, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = header.Clone()
	r.Header.Set("X-Forwarded-For", someAddress())
	return http.DefaultClient.Do(r)
}
