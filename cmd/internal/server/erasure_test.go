package server_test

import (
	"fmt"
	"strings"
	"testing"

	"commerce/auth"
	"commerce/cart/redisstore"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// After every kind of call that stores something, nothing in Redis names a shopper who is erased, or has this shopper's texts.
func TestErase_LeavesNothingOfAShopper(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"planted-customer", "planted@customer"} {
		s := openShop(t, ephemeral.StartRedis(t).URL, limited, func(p *server.Parts) { p.RateLimit = false })
		carts := redisstore.New(redisstore.Config{Client: s.Redis, Beside: server.Beside()})
		typed := func(n int) string {
			return fmt.Sprintf(`"product_id":5,"fields":{"Account email":"planted%d@example.com"},"notice":"planted","metadata":{"by":"planted"}`, n)
		}
		guest := s.visitor(t)
		guest.add("{"+typed(1)+"}", "Idempotency-Key", "planted-1")
		guest.add("{"+typed(2)+"}", "X-Timestamp", "planted-2")
		guest.ok("POST", "/cart/ops", `{"mode":"each","ops":[{"op":"add",`+typed(3)+`},{"op":"metadata","metadata":{"for":"planted"}},{"op":"coupon","coupon":"PLANTED"}]}`, "Idempotency-Key", "planted-3")
		guest.share()
		here := guest.logIn(id)
		here.ok("PATCH", "/cart/items/"+here.cart().Items[0].ID, `{"quantity":2,"notice":"planted"}`)
		here.share("Idempotency-Key", "planted-4")
		back, _, _ := here.undo()
		other := s.visitor(t).fill("1×1")
		other.add("{" + typed(4) + "}")
		here.ok("POST", redeem, codeBody(other.handOver()), withKey(redeemerKey)...)
		here.ok("POST", "/cart/ops", addsShared(s.guest(t).fill("2×1").share()))
		agent := s.agent(t)
		made := agent.call("create_cart", "", elements("1×1 5×1"), redeemerKey)
		person := s.sharing(t, made)
		person.add("{" + typed(5) + "}")
		agent.call("update_cart", made.Cart.ID, elements("1×2"), redeemerKey+"x")
		knock(t, s.URL+"/cart/events", "X-Public-Key", s.Key, "X-Cart-Token", person.Token)
		person.handOver()
		left := s.visitor(t)
		left.add("{" + typed(6) + "}")
		left.ok("DELETE", "/cart/clear", "")

		assert.That(t, strings.Count(fmt.Sprint(s.everything(t)), "planted") > 20, "little was stored")
		refs := []redisstore.Ref{redisstore.CustomerRef(s.ID, id)}
		never := []string{"planted", strings.TrimPrefix(auth.CustomerKey(id), "~")}
		for _, token := range []string{guest.Token, back.Token, other.Token, person.Token, left.Token} {
			refs = append(refs, assert.Must(carts.GuestRefs(t.Context(), auth.CartToken(token)))(t)...)
			never = append(never, auth.CartToken(token).Digest())
		}
		for _, ref := range refs {
			shown := assert.Must(carts.Holdings(t.Context(), ref))(t)
			assert.Equal(t, len(assert.Must(carts.Erase(t.Context(), ref))(t)), len(shown), "keys that are erased, of those that are shown")
		}
		for _, entry := range s.everything(t) {
			for _, text := range never {
				assert.That(t, !strings.Contains(strings.ToLower(entry), strings.ToLower(text)), "%s is left: %s", text, entry)
			}
		}
	}
}

// everything returns all keys of Redis with what they hold.
func (s *shop) everything(t *testing.T) (entries []string) {
	t.Helper()
	for _, key := range assert.Must(s.Redis.Keys(t.Context(), "*").Result())(t) {
		switch kind := s.Redis.Type(t.Context(), key).Val(); kind {
		case "hash":
			entries = append(entries, fmt.Sprint(key, " ", s.Redis.HGetAll(t.Context(), key).Val()))
		case "string":
			entries = append(entries, fmt.Sprint(key, " ", s.Redis.Get(t.Context(), key).Val()))
		default:
			assert.That(t, kind == "none", "%s is a %s, which this test cannot read", key, kind)
		}
	}
	return entries
}
