package server_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"commerce/auth"
	"commerce/cart/redisstore"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// Whatever calls shoppers have made, nothing in Redis names one who is erased, or has a text that this shopper's cart had.
func TestErase_LeavesNothingOfAShopper(t *testing.T) {
	t.Parallel()
	s := openShop(t, ephemeral.StartRedis(t).URL, limited, func(p *server.Parts) { p.RateLimit = false })
	sequences := uint64(20)
	if testing.Short() {
		sequences = 2
	}
	for seed := range sequences {
		t.Logf("seed %d", seed)
		c := &crowd{
			t: t, shop: s, Rand: rand.New(rand.NewPCG(seed, 0)), agents: s.agents(t),
			customers: []*shopper{s.customer(t, fmt.Sprint("customer-", seed)), s.customer(t, fmt.Sprint("customer@", seed))},
			texts:     map[string][]string{}, undone: map[string]string{}, merges: map[string]string{},
		}
		calls := []func(){c.enter, c.add, c.add, c.list, c.change, c.logIn, c.logIn, c.undo, c.undo, c.handOver, c.share, c.agent, c.listen}
		assert.NoError(t, s.Redis.FlushAll(t.Context()).Err())
		c.enter()
		for range 50 {
			calls[c.IntN(len(calls))]()
		}
		carts := redisstore.New(redisstore.Config{Client: s.Redis})
		for _, customer := range c.customers {
			c.erase(carts, customer.ID, auth.CustomerKey(customer.ID), redisstore.CustomerRef(s.ID, customer.ID))
		}
		for _, guest := range c.guests {
			token := auth.CartToken(guest.Token)
			c.erase(carts, guest.Token, token.Digest(), assert.Must(carts.GuestRefs(t.Context(), token))(t)...)
		}
	}
}

// crowd are shoppers and agents, whose calls come in an order that a seed decides. A customer is known by the ID, a
// guest by the token.
type crowd struct {
	t *testing.T
	*rand.Rand
	shop              *shop
	customers, guests []*shopper
	agents            []*agent
	texts             map[string][]string // who had each text in a cart
	undone            map[string]string   // customers by the token of a guest's cart that an undo has made
	merges            map[string]string   // the latest one of each customer
	erased            []string
}

func nameOfShopper(s *shopper) string { return cmp.Or(s.ID, s.Token) }

func (c *crowd) any(of ...*shopper) *shopper { return of[c.IntN(len(of))] }

func (c *crowd) anyone() *shopper { return c.any(c.any(c.guests...), c.any(c.customers...)) }

func (c *crowd) enter() { c.guests = append(c.guests, c.shop.visitor(c.t)) }

func (c *crowd) types(who *shopper) string {
	text := fmt.Sprintf("typed%012x", c.Uint64()>>16)
	c.texts[text] = []string{nameOfShopper(who)}
	return text
}

// call may be refused. It is keyed, stamped or neither.
func (c *crowd) call(who *shopper, method, path, body string) answer {
	var headers []string
	switch c.IntN(3) {
	case 0:
		headers = []string{"Idempotency-Key", c.key()}
	case 1:
		headers = []string{"X-Timestamp", fmt.Sprint(c.IntN(1e9))}
	}
	a := who.send(method, path, body, headers...)
	assert.Require(c.t, a.Status < http.StatusInternalServerError, "%s %s: %s", method, path, a.Raw)
	return a
}

func (c *crowd) key() string { return fmt.Sprintf("%032x", c.Uint64()) }

func (c *crowd) line(who *shopper) string {
	return fmt.Sprintf(`"product_id":5,"fields":{"Account email":"%s@example.com"},"notice":%q,"metadata":{"by":%q}`, c.types(who), c.types(who), c.types(who))
}

func (c *crowd) add() {
	who := c.anyone()
	c.call(who, "POST", "/cart/add", `{`+c.line(who)+`}`)
}

func (c *crowd) list() {
	who := c.anyone()
	c.call(who, "POST", "/cart/ops", fmt.Sprintf(`{"mode":"each","ops":[{"op":"add",%s},{"op":"metadata","metadata":{"for":%q}},{"op":"coupon","coupon":%q}]}`,
		c.line(who), c.types(who), [2]string{"TEN", c.types(who)}[c.IntN(2)]))
}

func (c *crowd) change() {
	who := c.anyone()
	for _, item := range who.cart().Items {
		if c.IntN(3) == 0 {
			c.call(who, "PATCH", "/cart/items/"+item.ID, fmt.Sprintf(`{"quantity":%d,"notice":%q}`, c.IntN(4), c.types(who)))
		}
	}
	if c.IntN(4) == 0 {
		c.call(who, "DELETE", "/cart/clear", "")
	}
}

func (c *crowd) share() { c.call(c.anyone(), "POST", "/cart/share", "") }

// moves makes a call that may move a guest's cart, and notes who has its texts then.
func (c *crowd) moves(from *shopper, call func() (to *shopper)) {
	shown := string(from.send("GET", "/cart", "").Raw)
	to := call()
	if to == nil {
		return
	}
	for text := range c.texts {
		if strings.Contains(shown, text) {
			c.texts[text] = append(c.texts[text], nameOfShopper(to))
		}
	}
	if from.cart().Version == 0 { // it has moved
		delete(c.undone, from.Token)
	}
}

func (c *crowd) logIn() {
	guest, customer := c.any(c.guests...), c.any(c.customers...)
	c.moves(guest, func() *shopper {
		if merge := guest.logIn(customer.ID).cart().Merge; merge != nil {
			c.merges[customer.ID] = merge.ID
		}
		return customer
	})
}

func (c *crowd) undo() {
	customer := c.any(c.customers...)
	a := c.call(customer, "POST", "/cart/merge/undo", undoBody(cmp.Or(c.merges[customer.ID], "5APZMAR32G")))
	if a.Status == http.StatusOK {
		guest := c.shop.guest(c.t)
		guest.Token = decode[struct{ Data struct{ Undone undoneBody } }](c.t, a.Raw).Data.Undone.GuestCart
		repeated := slices.ContainsFunc(c.guests, func(g *shopper) bool { return g.Token == guest.Token })
		if !repeated && guest.cart().Version > 0 { // something was taken out
			c.undone[guest.Token] = customer.ID
		}
		c.guests = append(c.guests, guest)
	}
}

func (c *crowd) handOver() {
	from, to := c.any(c.guests...), c.any(c.anyone(), c.shop.guest(c.t))
	offer := c.call(from, "POST", "/cart/handover", "")
	if offer.Status != http.StatusOK {
		return
	}
	to = &shopper{t: c.t, shop: c.shop, Token: to.Token, JWT: to.JWT, ID: to.ID}
	c.moves(from, func() *shopper {
		if a := to.send("POST", "/cart/handover/redeem", codeBody(codeIn(c.t, offer)), "Idempotency-Key", c.key()); a.Status != http.StatusOK {
			return nil
		}
		if to.ID == "" {
			c.guests = append(c.guests, to)
		}
		return to
	})
}

// agent creates a cart, which a guest takes over who keeps the agent.
func (c *crowd) agent() {
	a := c.agents[c.IntN(len(c.agents))]
	made := a.call("create_cart", "", elements("1×1 5×1"), c.key())
	person := c.shop.sharing(c.t, made)
	c.guests = append(c.guests, person)
	c.call(person, "POST", "/cart/add", `{`+c.line(person)+`}`)
	a.call("update_cart", made.Cart.ID, elements("1×2"), c.key())
	a.call("update_cart", made.Cart.ID, a.call("get_cart", made.Cart.ID, "", "").asShown(""), c.key())
}

func (c *crowd) listen() {
	who := c.anyone()
	r := who.request("GET", "/cart/events", nil)
	knock(c.t, r.URL.String(), "X-Public-Key", c.shop.Key, "X-Cart-Token", who.Token, "Authorization", r.Header.Get("Authorization"))
}

// erase erases a shopper, of whom nothing is left. A text is left while another shopper has had it in a cart.
func (c *crowd) erase(carts *redisstore.Store, name, digest string, refs ...redisstore.Ref) {
	for _, ref := range refs {
		shown := assert.Must(carts.Holdings(c.t.Context(), ref))(c.t)
		erased := assert.Must(carts.Erase(c.t.Context(), ref))(c.t)
		assert.Equal(c.t, len(shown), len(erased), "keys that are shown, of those that are erased")
	}
	left := c.dump()
	never := []string{name, strings.TrimPrefix(digest, "~")}
	c.erased = append(c.erased, name)
	for text, by := range c.texts {
		if !slices.ContainsFunc(by, func(name string) bool { return !slices.Contains(c.erased, name) }) {
			never = append(never, text)
		}
	}
	for token, customer := range c.undone {
		if customer == name {
			never = append(never, auth.CartToken(token).Digest())
		}
	}
	for _, text := range never {
		for _, entry := range left {
			assert.Require(c.t, !strings.Contains(entry, text), "%s of %s is left: %s", text, name, entry)
		}
	}
}

// dump returns all keys of Redis with what they hold.
func (c *crowd) dump() (entries []string) {
	ctx, redis := c.t.Context(), c.shop.Redis
	for _, key := range assert.Must(redis.Keys(ctx, "*").Result())(c.t) {
		switch kind := redis.Type(ctx, key).Val(); kind {
		case "hash":
			entries = append(entries, fmt.Sprint(key, " ", redis.HGetAll(ctx, key).Val()))
		case "string":
			entries = append(entries, fmt.Sprint(key, " ", redis.Get(ctx, key).Val()))
		default:
			assert.That(c.t, kind == "none", "%s is a %s, which this test cannot read", key, kind)
		}
	}
	return entries
}
