package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/deploy/migrations"
)

var (
	nextPage   = regexp.MustCompile(`"next_page_url":"([^"]+)"`)
	codeOfLink = regexp.MustCompile(`"code":"([^"]+)"`)
)

// mall is a service of two stores. Each cart and each subscription has an owner, and contains
// marks that only answers to this owner may show.
type mall struct {
	t            testing.TB
	service      *service
	client       *http.Client
	redis        *redis.Client
	defaultStore int64
	tokens       apiTokens
	owners       []*owner
	programs     map[int64]*program // by store
	planted      map[string]string  // dumps of Redis's values, by key
	agentsCart   string             // the id of an agent's cart in store 1
	asked        int                // requests
}

// owner is the owner of a cart with one line, and with a change under an idempotency key.
type owner struct {
	name    string
	cart    cartOf
	key     publicKey
	product int64
	merged  cartOf // of the guest's token with which the cart began; zero for none
	marks   []string
	etag    string
	code    string          // that hands a guest's cart over
	share   string          // a code of its lines
	keys    map[string]bool // of Redis
}

// program reads the subscriptions of a store.
type program struct {
	marks        []string
	subscription int64 // ID that only this store has; both stores have 900009
	email        string
	link, cursor string // as parameters of a query
}

// Cart tokens of the mall. guestToken opens a cart in either store.
const (
	guestToken   = "a-token-of-guests-in-both-st"
	otherToken   = "a-token-of-the-other-guest-0"
	claimedToken = "a-token-whose-cart-was-merge"
	madeUpToken  = "a-made-up-token-of-nobody-00"
)

const plantedKey = "a-planted-idempotency-key"

func openMall(t testing.TB, defaultStore int64) *mall {
	t.Helper()
	server, database := ephemeral.StartRedis(t), catalog(t)
	settings := []string{"DATABASE_URL=" + database}
	m := &mall{t: t, redis: server.Admin(), defaultStore: defaultStore, client: &http.Client{Timeout: callLimit, Transport: &http.Transport{}}}
	t.Cleanup(m.client.CloseIdleConnections)
	plantRows(t, database)
	command(t, settings, "migrate", "up") // so that changes can be read in this copy of a database
	token := func(store int) string {
		return command(t, settings, "token", "store", "--store", fmt.Sprint(store), "--name", "torture")
	}
	m.tokens = apiTokens{one: token(storeOne), two: token(storeTwo), revoked: token(storeOne)}
	id, _, _ := strings.Cut(m.tokens.revoked, "|")
	command(t, settings, "token", "revoke", id)
	if defaultStore != 0 {
		settings = append(settings, fmt.Sprintf("DEFAULT_STORE=%d", defaultStore))
	}
	m.service = startService(t, append(settings, "REDIS_URL="+server.URL, "JWT_ISSUER="+jwtIssuer,
		"UCP=on", "UCP_PROFILES=trust", "PUBLIC_URL=http://localhost", "TRUSTED_PROXIES=127.0.0.1")...)
	m.plantCarts()
	m.plantPrograms()
	return m
}

// plantRows adds products to store 2, and subscriptions to both stores. The currency of the
// store's planted subscriptions is a mark.
func plantRows(t testing.TB, database string) {
	t.Helper()
	db := assert.Must(pgx.Connect(t.Context(), database))(t)
	defer db.Close(context.WithoutCancel(t.Context()))
	assert.Must(db.Exec(t.Context(), `
		INSERT INTO products (store_id, id, name, slug, type, price, original_price)
		SELECT 2, id, 'Product ' || id, 'product-' || id, 'digital', 1000, 1000 FROM generate_series(2001, 2010) id;
		INSERT INTO customers (store_id, id, email) VALUES
			(1, 9001, 'planted-store-1@example.com'), (2, 9002, 'planted-store-2@example.com');
		INSERT INTO subscriptions (store_id, id, customer_id, calling_code, status, external_customer_id, starts_at, ends_at,
			current_period_start, current_period_end, duration, order_id, price_amount, currency, product_id, variant_id)
		SELECT store, id, 9000 + store, '', 'active', 'planted-external-' || store, now(), now() + interval '1 month',
			now(), now() + interval '1 month', 'monthly', 91000000 + store, 1000, currency, product, plan
		FROM (VALUES (1, 900001, 'JOD', 4, 41), (1, 900009, 'JOD', 4, 41), (2, 900002, 'TND', 22, 221), (2, 900009, 'TND', 22, 221))
			AS planted (store, id, currency, product, plan)`))(t)
}

func (m *mall) plantCarts() {
	m.t.Helper()
	made := m.ask(credentials{}, "POST", "/ucp/"+storeOneKey+"/carts", `{"line_items":[{"item":{"id":"1015"},"quantity":1}]}`, agentHeader...)
	id := agentsID.FindSubmatch(made.body)
	assert.Require(m.t, made.status == http.StatusCreated && id != nil, "create an agent's cart: %d %s", made.status, made.body)
	m.agentsCart = string(id[1])
	one, two := publicKey{value: storeOneKey, store: storeOne}, publicKey{value: storeTwoKey, store: storeTwo}
	m.owners = []*owner{
		{name: "guest", cart: cartOf{store: 1, token: guestToken}, key: one, product: 1011},
		{name: "guest of the other store", cart: cartOf{store: 2, token: guestToken}, key: two, product: 2001},
		{name: "other guest", cart: cartOf{store: 1, token: otherToken}, key: one, product: 1012},
		{name: "customer", cart: cartOf{store: 1, sub: "1001"}, key: one, product: 1013},
		{name: "customer of the other store", cart: cartOf{store: 2, sub: "1001"}, key: two, product: 2002},
		{name: "neighbor", cart: cartOf{store: 1, sub: "1002"}, key: one, product: 1014, merged: cartOf{store: 1, token: claimedToken}},
	}
	for _, o := range m.owners {
		before := m.stored()
		mark := "notice-" + o.slug() + "!"
		body := fmt.Sprintf(`{"product_id":%d,"qty":2,"notice":%q}`, o.product, mark)
		token := o.cart.token
		first := o.credentials(m.t, o.cart.token)
		if o.merged != (cartOf{}) {
			first = credentials{key: o.key, token: cartToken{value: o.merged.token}}
			token = o.merged.token
		}
		m.must(m.ask(first, "POST", "/cart/add", body, "Idempotency-Key", plantedKey+o.slug()))
		m.must(m.ask(o.credentials(m.t, token), "GET", "/cart", "")) // merges
		o.etag = m.must(m.ask(o.credentials(m.t, o.cart.token), "GET", "/cart", "")).header.Get("ETag")
		link := func(path string) string {
			return codeOfLink.FindStringSubmatch(string(m.must(m.ask(o.credentials(m.t, token), "POST", path, "")).body))[1]
		}
		if o.share = link("/cart/share"); o.cart.sub == "" {
			o.code = link("/cart/handover")
		}
		id, _, _ := strings.Cut(strings.Trim(o.etag, `"`), ".")
		o.marks = []string{mark, fmt.Sprintf("product-%d", o.product), id}
		o.keys = map[string]bool{}
		m.planted = m.stored()
		for key, dump := range m.planted {
			if before[key] != dump {
				o.keys[key] = true
			}
		}
	}
}

// slug is the name without spaces.
func (o *owner) slug() string { return strings.ReplaceAll(o.name, " ", "-") }

// has reports whether the owner may change a cart, or could do so before it was merged.
func (o *owner) has(c cartOf) bool { return c != cartOf{} && (c == o.cart || c == o.merged) }

// credentials returns the credentials that give an owner access to the cart.
func (o *owner) credentials(t testing.TB, token string) credentials {
	c := credentials{key: o.key, token: cartToken{value: token}}
	if o.cart.sub != "" {
		c.bearer.values = []string{"Bearer " + customerToken(t, o.cart.store, o.cart.sub)}
	}
	return c
}

func (m *mall) plantPrograms() {
	m.t.Helper()
	m.programs = map[int64]*program{
		storeOne: {subscription: 900001, marks: []string{"planted-store-1", "planted-external-1", "91000001", `"JOD"`}},
		storeTwo: {subscription: 900002, marks: []string{"planted-store-2", "planted-external-2", "91000002", `"TND"`}},
	}
	for store, p := range m.programs {
		p.email = fmt.Sprintf("planted-store-%d@example.com", store)
		c := credentials{bearer: bearer{values: []string{"Bearer " + map[int64]string{1: m.tokens.one, 2: m.tokens.two}[store]}}}
		var list struct {
			Data struct {
				Next string `json:"next"`
			} `json:"data"`
		}
		page := m.must(m.ask(c, "GET", "/subscriptions?per_page=1", ""))
		link := nextPage.FindStringSubmatch(string(page.body))
		assert.Require(m.t, link != nil, "no next page: %s", page.body)
		p.link = assert.Must(url.Parse(strings.ReplaceAll(link[1], `\u0026`, "&")))(m.t).RawQuery
		changes := m.must(m.ask(c, "GET", "/subscriptions/changes?limit=1", ""))
		assert.NoError(m.t, json.Unmarshal(changes.body, &list))
		p.cursor = "after=" + list.Data.Next
	}
}

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (m *mall) must(a answer) answer {
	m.t.Helper()
	if a.status != http.StatusOK {
		m.t.Fatalf("got %d %s; the log:\n%s", a.status, a.body, m.service.said(0))
	}
	return a
}

// ask sends a request with exactly these credentials, from an address of its own, since a client may send
// only a few wrong codes.
func (m *mall) ask(c credentials, method, path, body string, headers ...string) answer {
	m.t.Helper()
	r := assert.Must(http.NewRequestWithContext(m.t.Context(), method, m.service.URL()+path, strings.NewReader(body)))(m.t)
	m.asked++
	r.Header.Set("X-Forwarded-For", netip.AddrFrom4([4]byte{10, byte(m.asked >> 16), byte(m.asked >> 8), byte(m.asked)}).String())
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if c.key.value != "" {
		r.Header.Set("X-Public-Key", c.key.value)
	}
	if c.token.value != "" {
		r.Header.Set("X-Cart-Token", c.token.value)
	}
	r.Header["Authorization"] = c.bearer.values
	response := assert.Must(m.client.Do(r))(m.t)
	defer response.Body.Close()
	return answer{response.StatusCode, response.Header, assert.Must(io.ReadAll(response.Body))(m.t)}
}

// stored returns dumps of all values in Redis, by key, except for what only refuses late copies of a commit.
func (m *mall) stored() map[string]string {
	m.t.Helper()
	const all = `
		local function remains(k)
			return redis.call('TYPE', k).ok == 'hash' and redis.call('HLEN', k) == 2 and redis.call('HEXISTS', k, 'n') + redis.call('HEXISTS', k, 'l') == 2
		end
		local r = {}
		for _, k in ipairs(redis.call('KEYS', '*')) do
			if not remains(k) then r[#r+1] = k r[#r+1] = redis.call('DUMP', k) end
		end
		return r`
	flat := assert.Must(m.redis.Eval(context.WithoutCancel(m.t.Context()), all, nil).StringSlice())(m.t)
	found := map[string]string{}
	for i := 0; i+1 < len(flat); i += 2 {
		found[flat[i]] = flat[i+1]
	}
	return found
}

// restore restores the planted data.
func (m *mall) restore(now map[string]string) {
	m.t.Helper()
	if maps.Equal(now, m.planted) {
		return
	}
	ctx := m.t.Context()
	assert.Must(m.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.FlushAll(ctx)
		for key, dump := range m.planted {
			p.Restore(ctx, key, time.Hour, dump)
		}
		return nil
	}))(m.t)
}

// shows reports whether an answer contains one of these marks.
func (a answer) shows(marks []string) bool {
	var headers bytes.Buffer
	_ = a.header.Write(&headers)
	for _, mark := range marks {
		if bytes.Contains(a.body, []byte(mark)) || bytes.Contains(headers.Bytes(), []byte(mark)) {
			return true
		}
	}
	return false
}

// The products that these tests add to the sample data of store 1. They have no fields and
// unlimited stock.
const (
	firstProduct = 1001
	lastProduct  = 1200
)

// catalog returns the URL of a new database with the sample data and these products.
func catalog(t testing.TB) string {
	t.Helper()
	program := compiled(t)
	return ephemeral.PostgresFrom(t, "torture_"+migrations.Digest(), func(ctx context.Context, url string) error { return stock(ctx, program, url) })
}

// startPostgres starts a server with the sample data and these products.
func startPostgres(t testing.TB) *ephemeral.Server {
	t.Helper()
	server := ephemeral.StartPostgres(t)
	assert.NoError(t, stock(t.Context(), compiled(t), server.URL))
	return server
}

// stock adds the sample data and these products to a database.
func stock(ctx context.Context, program, url string) error {
	for _, command := range [][]string{{"migrate", "up"}, {"seed"}} {
		if _, err := execute(program, []string{"DATABASE_URL=" + url}, command...); err != nil {
			return err
		}
	}
	db, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	_, err = db.Exec(ctx, `
		INSERT INTO products (store_id, id, name, slug, type, price, original_price)
		SELECT 1, id, 'Product ' || id, 'product-' || id, 'digital', 1000, 1000 FROM generate_series($1::bigint, $2) id`,
		firstProduct, lastProduct)
	return err
}
