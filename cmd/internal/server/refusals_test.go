package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
)

// refusal is a call that is refused, with the members that the refusal names. It never issues a token.
type refusal struct {
	who                *shopper
	method, path, body string
	headers            []string
	status             int
	code               string
	members            []string
}

func wantRefused(t *testing.T, rows []refusal) {
	t.Helper()
	for _, r := range rows {
		a := r.who.refused(r.status, r.code, r.method, r.path, r.body, r.headers...).names(t, r.members...)
		assert.That(t, a.Header.Get("X-Cart-Token") == "", "%s %s: issues a token", r.path, r.body)
		for member, sentences := range a.Body.Errors {
			assert.That(t, len(sentences) == 1, "%s %s: names %s %d times", r.path, r.body, member, len(sentences))
		}
	}
}

const (
	offer, redeem, undo, share = "/cart/handover", "/cart/handover/redeem", "/cart/merge/undo", "/cart/share"

	// redeemerKey is an Idempotency-Key that is long enough to redeem a code.
	redeemerKey = "0123456789abcdef012345"
)

func withKey(key string) []string { return []string{"Idempotency-Key", key} }

func TestHandover_RefusesByMember(t *testing.T) {
	s := newShop(t)
	code := s.guest(t).fill("1×1").handOver()
	guest, customer := s.guest(t), s.customer(t, "1001").fill("1×1")
	both := s.guest(t).fill("2×1").logIn("1002")
	intruder := &shopper{t: t, shop: s, JWT: "x.y.z"}
	wantRefused(t, []refusal{
		{guest, "POST", offer, "", nil, 422, "cart_empty", nil},
		{customer, "POST", offer, "", nil, 422, "guest_only", nil},
		{both, "POST", offer, "", nil, 422, "guest_only", nil},
		{intruder, "POST", offer, "[]", nil, 401, "unauthenticated", []string{"Authorization"}},
		{guest, "POST", offer, "[]", nil, 400, "malformed_json", nil},
		{guest, "POST", offer, "{", nil, 400, "malformed_json", nil},
		{guest, "POST", offer, "{}", []string{"Content-Type", "text/plain"}, 415, "unsupported_media_type", []string{"Content-Type"}},
		{guest, "GET", redeem, "", nil, 405, "method_not_allowed", nil},
		{guest, "POST", redeem, "{", withKey("short"), 400, "malformed_json", nil},
		{guest, "POST", redeem, "", withKey(redeemerKey), 400, "malformed_json", nil},
		{intruder, "POST", redeem, "{", withKey(redeemerKey), 401, "unauthenticated", []string{"Authorization"}},
		{guest, "POST", redeem, `{}`, nil, 422, "validation_failed", []string{"code"}},
		{guest, "POST", redeem, `{"code":null}`, withKey(redeemerKey), 422, "validation_failed", []string{"code"}},
		{guest, "POST", redeem, `{"code":7,"preview":"yes","keep_agent":1}`, withKey(redeemerKey), 422, "validation_failed", []string{"code", "keep_agent", "preview"}},
		{guest, "POST", redeem, codeBody(code), nil, 400, "invalid_parameter", []string{"Idempotency-Key"}},
		{guest, "POST", redeem, codeBody(code), withKey(redeemerKey[1:]), 400, "invalid_parameter", []string{"Idempotency-Key"}},
		{guest, "POST", redeem, codeBody(code), withKey("00000000-0000-0000-0000-000000000000"), 400, "invalid_parameter", []string{"Idempotency-Key"}},
		{guest, "POST", redeem, `{"code":"` + code + `","preview":true}`, withKey("not visible é"), 400, "invalid_parameter", []string{"Idempotency-Key"}},
	})
	assert.That(t, both.refused(422, "guest_only", "POST", offer, "").Body.Data.Merge != nil, "a refusal has no report of the merge")
	guest.ok("POST", redeem, codeBody(code), withKey(redeemerKey)...) // no refusal has used it up
}

func TestShare_RefusesByMember(t *testing.T) {
	t.Parallel()
	url := embeddedRedis(t)
	s := openShop(t, url)
	owner := s.guest(t).fill("1×1")
	code := owner.share()
	guest, both := s.guest(t), s.guest(t).fill("2×1").logIn("1002")
	intruder := &shopper{t: t, shop: s, JWT: "x.y.z"}
	add := `{"op":"add_shared","code":"` + code + `"}`
	wantRefused(t, []refusal{
		{guest, "POST", share, "", nil, 422, "cart_empty", nil},
		{s.visitor(t), "POST", share, "", nil, 422, "cart_empty", nil},
		{owner, "POST", share, "[]", nil, 400, "malformed_json", nil},
		{owner, "POST", share, "{", nil, 400, "malformed_json", nil},
		{owner, "POST", share, "{}", []string{"Content-Type", "text/plain"}, 415, "unsupported_media_type", []string{"Content-Type"}},
		{owner, "POST", share, "", withKey("é"), 400, "invalid_parameter", []string{"Idempotency-Key"}},
		{intruder, "POST", share, "", nil, 401, "unauthenticated", []string{"Authorization"}},
		{intruder, "GET", share + "/" + code, "", nil, 401, "unauthenticated", []string{"Authorization"}},
		{guest, "GET", share + "/" + code + "A", "", nil, 404, "not_found", []string{"code"}},
		{guest, "GET", share + "/%C3%A9", "", nil, 404, "not_found", []string{"code"}},
		{guest, "GET", share + "/" + strings.Repeat("A", 4000), "", nil, 404, "not_found", []string{"code"}},
		{guest, "DELETE", share + "/" + code, "", nil, 404, "not_found", []string{"code"}},
		{s.customer(t, "1001"), "DELETE", share + "/" + code, "", nil, 404, "not_found", []string{"code"}},
		{both, "DELETE", share + "/" + code, "", nil, 404, "not_found", []string{"code"}},
		{guest, "POST", share + "/" + code, "", nil, 405, "method_not_allowed", nil},
		{guest, "POST", "/cart/ops", `{"mode":"each","ops":[{"op":"add_shared"}]}`, nil, 422, "validation_failed", []string{"ops.0.code"}},
		{guest, "POST", "/cart/ops", `{"mode":"each","ops":[{"op":"add_shared","code":7}]}`, nil, 422, "validation_failed", []string{"ops.0.code"}},
		{guest, "POST", "/cart/ops", `{"ops":[` + add + `]}`, nil, 422, "validation_failed", []string{"mode"}},
		{guest, "POST", "/cart/ops", `{"mode":"each","ops":[` + add + `,{"op":"clear"}]}`, nil, 422, "validation_failed", []string{"ops.0.op"}},
		{guest, "POST", "/cart/ops", `{"mode":"all","ops":[{"op":"clear"},` + add + `,` + add + `]}`, nil, 422, "validation_failed", []string{"mode", "ops.1.op", "ops.2.op"}},
		{guest, "POST", "/cart/ops", addsShared(""), nil, 404, "not_found", []string{"ops.0.code"}},
	})
	owner.ok("DELETE", share+"/"+code, "not read", "Content-Type", "text/plain")
	for range 10 {
		code = owner.share()
	}
	owner.refused(422, "validation_failed", "POST", share, "").names(t)
	openShop(t, url).guest(t).refused(404, "not_found", "GET", share+"/"+code, "") // of another store
}

func TestUndo_RefusesByMember(t *testing.T) {
	s := newShop(t)
	owner := s.guest(t).fill("1×1").logIn("1")
	late := s.guest(t).fill("2×1").logIn("4")
	id, lateID := owner.cart().Merge.ID, late.cart().Merge.ID
	wantRefused(t, []refusal{
		{s.guest(t), "POST", undo, undoBody(id), nil, 401, "unauthenticated", []string{"Authorization"}},
		{owner, "POST", undo, "", nil, 400, "malformed_json", nil},
		{owner, "POST", undo, `{}`, nil, 422, "validation_failed", []string{"id"}},
		{owner, "POST", undo, `{"id":5}`, nil, 422, "validation_failed", []string{"id"}},
		{owner, "POST", undo, `{"id":""}`, nil, 404, "not_found", []string{"id"}},
		{owner, "POST", undo, undoBody("AAAAAAAAAA"), nil, 404, "not_found", []string{"id"}},
		{owner, "POST", undo, undoBody(strings.Repeat("}:*", 3000)), nil, 404, "not_found", []string{"id"}},
		{s.customer(t, "2"), "POST", undo, undoBody(id), nil, 404, "not_found", []string{"id"}},
		{s.customer(t, "3"), "POST", undo, undoBody(id), nil, 404, "not_found", []string{"id"}},
	})
	s.pass(t, 14*time.Minute) // of the 15 in which a merge can be undone
	owner.wantLines("1×1")
	owner.ok("POST", undo, undoBody(id))
	s.pass(t, 2*time.Minute)
	late.refused(404, "not_found", "POST", undo, undoBody(lateID)).names(t, "id")
	late.wantLines("2×1")
}

func TestHandoverKey_WithoutItNothingIsDerived(t *testing.T) {
	s := newShop(t, func(p *server.Parts) { p.Carts.Keys = nil })
	c, here := s.guest(t).fill("1×1"), s.guest(t).fill("1×1").logIn("1")
	id := here.cart().Merge.ID
	for _, call := range [][3]string{{"POST", offer, "{}"}, {"POST", redeem, codeBody("x")}, {"POST", share}, {"GET", share + "/x"}, {"DELETE", share + "/x"}, {"POST", "/cart/ops", addsShared("x")}} {
		c.refused(404, "not_found", call[0], call[1], call[2], withKey(redeemerKey)...)
	}
	here.refused(404, "not_found", "POST", undo, undoBody(id))
	for _, path := range []string{offer, redeem} {
		response, _ := exchange(t, c.request("GET", path, nil)) // the document has this path, so a 404 is not one of GET
		assert.Equal(t, response.StatusCode, http.StatusNotFound, "GET %s", path)
	}
	c.wantLines("1×1")
	for _, key := range s.keys(t) {
		assert.That(t, !strings.Contains(key, ":came"), "%s is stored for nothing", key)
	}
}

// A code is sealed and read without Redis, but a cart is not.
func TestRedisDown_LinksAreUnavailable(t *testing.T) {
	t.Parallel()
	redis := miniredis.RunT(t)
	s := openShop(t, "redis://"+redis.Addr(), hasty)
	phone, stranger := s.guest(t).fill("1×1"), s.guest(t)
	code, customer, visitor := phone.handOver(), s.customer(t, "1001"), s.visitor(t)
	shared := share + "/" + handoverKeys.Name() + "-code-of-26-characters"
	redis.Close()
	for _, c := range []struct {
		who  []*shopper
		call [3]string
	}{
		{[]*shopper{phone}, [3]string{"POST", offer}},
		{[]*shopper{stranger, customer, visitor}, [3]string{"POST", redeem, codeBody(code)}},
		{[]*shopper{stranger, customer, visitor}, [3]string{"POST", redeem, `{"code":"` + code + `","preview":true}`}},
		{[]*shopper{customer, visitor}, [3]string{"POST", share}},
		{[]*shopper{stranger, customer, visitor}, [3]string{"GET", shared}},
		{[]*shopper{customer, visitor}, [3]string{"DELETE", shared}},
		{[]*shopper{stranger, customer, visitor}, [3]string{"POST", "/cart/ops", addsShared(strings.TrimPrefix(shared, share+"/"))}},
		{[]*shopper{customer}, [3]string{"POST", undo, undoBody("AAAAAAAAAA")}},
	} {
		for _, who := range c.who {
			a := who.refused(503, "unavailable", c.call[0], c.call[1], c.call[2], withKey(redeemerKey)...)
			assert.That(t, a.Header.Get("Retry-After") != "", "%v: no Retry-After", c.call)
		}
	}
}
