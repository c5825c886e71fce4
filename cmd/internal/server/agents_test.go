package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/price"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// agent is an AI agent, which calls over REST or over MCP.
type agent struct {
	*shopper
	mcp     bool
	profile string // of its platform
	headers []string
}

const agentProfile = "https://platform.example/profile.json"

func (s *shop) agents(t testing.TB) []*agent {
	t.Helper()
	return []*agent{s.agent(t), {shopper: s.guest(t), mcp: true, profile: agentProfile}}
}

func (s *shop) agent(t testing.TB) *agent {
	t.Helper()
	return &agent{shopper: s.guest(t), profile: agentProfile}
}

type reply struct {
	answer
	Cart  agentCart
	Fault struct { // of the protocol
		Code, Content string
		ContinueURL   string `json:"continue_url"`
		RetryAfter    int64  `json:"retry_after"`
	}
	RPC int64 // code of JSON-RPC's error
}

// messages are those of the response, such as "error out_of_stock $.line_items[0] recoverable".
func (r reply) messages() []string {
	var all []string
	for _, m := range r.Cart.Messages {
		if m.Code != "tax_included" {
			all = append(all, m.String())
		}
	}
	return all
}

// lines are such as "1×2 4.p41×1".
func (r reply) lines() string {
	var all []string
	for _, l := range r.Cart.Items {
		all = append(all, fmt.Sprint(l.Item.ID, "×", l.Quantity))
	}
	return strings.Join(all, " ")
}

// call makes a call. cart is JSON, "" for none; key is the Idempotency-Key, "" for none.
func (a *agent) call(operation, id, cart, key string) reply {
	a.t.Helper()
	if a.mcp {
		arguments := map[string]any{}
		meta := map[string]any{"ucp-agent": map[string]any{"profile": a.profile}}
		if key != "" {
			meta["idempotency-key"] = key
		}
		arguments["meta"] = meta
		if operation != "create_cart" {
			arguments["id"] = id
		}
		if cart != "" {
			arguments["cart"] = json.RawMessage(cart)
		}
		body := assert.Must(json.Marshal(map[string]any{
			"jsonrpc": "2.0", "id": "r1", "method": "tools/call", "params": map[string]any{"name": operation, "arguments": arguments},
		}))(a.t)
		return a.rpc(string(body))
	}
	headers := append([]string{"UCP-Agent", `profile="` + a.profile + `"`}, a.headers...)
	if key != "" {
		headers = append(headers, "Idempotency-Key", key)
	}
	base := "/ucp/" + a.shop.Key + "/carts"
	var r reply
	switch operation {
	case "create_cart":
		r.answer = a.send("POST", base, cart, headers...)
	case "get_cart":
		r.answer = a.send("GET", base+"/"+id, "", headers...)
	case "update_cart":
		r.answer = a.send("PUT", base+"/"+id, cart, headers...)
	case "cancel_cart":
		r.answer = a.send("POST", base+"/"+id+"/cancel", cart, headers...)
	}
	if r.Status >= 300 {
		assert.NoError(a.t, json.Unmarshal(r.Raw, &r.Fault))
	} else {
		assert.NoError(a.t, json.Unmarshal(r.Raw, &r.Cart))
	}
	return r
}

func (a *agent) rpc(body string) reply {
	a.t.Helper()
	r := reply{answer: a.send("POST", "/ucp/"+a.shop.Key+"/mcp", body, a.headers...)}
	if len(r.Raw) == 0 {
		return r
	}
	var envelope struct {
		JSONRPC string
		Result  *struct{ StructuredContent json.RawMessage }
		Error   *struct {
			Code int64
			Data json.RawMessage
		}
	}
	assert.NoError(a.t, json.Unmarshal(r.Raw, &envelope))
	assert.That(a.t, envelope.JSONRPC == "2.0" && (envelope.Result == nil) != (envelope.Error == nil), "no response of JSON-RPC: %s", r.Raw)
	if envelope.Error != nil {
		r.RPC = envelope.Error.Code
		assert.NoError(a.t, json.Unmarshal(envelope.Error.Data, &r.Fault))
	} else if shown := envelope.Result.StructuredContent; shown != nil {
		assert.NoError(a.t, json.Unmarshal(shown, &r.Cart))
	}
	return r
}

// create makes a cart with lines such as "1×2 4.p41×1".
func (a *agent) create(lines string) reply {
	a.t.Helper()
	r := a.call("create_cart", "", elements(lines), "")
	assert.Require(a.t, r.Cart.ID != "", "no cart: %s", r.Raw)
	return r
}

// elements is a cart with lines such as "1×2 4.p41×1".
func elements(lines string) string {
	var all []string
	for line := range strings.FieldsSeq(lines) {
		item, quantity, _ := strings.Cut(line, "×")
		all = append(all, `{"item":{"id":"`+item+`"},"quantity":`+quantity+`}`)
	}
	return `{"line_items":[` + strings.Join(all, ",") + `]}`
}

// asShown is a cart with the lines of a reply, and their IDs.
func (r reply) asShown(more string) string {
	var all []string
	for _, l := range r.Cart.Items {
		all = append(all, fmt.Sprintf(`{"id":%q,"item":{"id":%q},"quantity":%d}`, l.ID, l.Item.ID, l.Quantity))
	}
	if more != "" {
		all = append(all, more)
	}
	return `{"line_items":[` + strings.Join(all, ",") + `]}`
}

func onEachFace(t *testing.T, test func(*testing.T, *shop, *agent), edits ...func(*server.Parts)) {
	t.Helper()
	onEachRedis(t, func(t *testing.T, s *shop) {
		for _, a := range s.agents(t) {
			test(t, s, a)
		}
	}, edits...)
}

func TestAgent_CreatesReadsReplacesAndCancels(t *testing.T) {
	onEachFace(t, func(t *testing.T, s *shop, a *agent) {
		made := a.create("1×2 4.p41×1")
		status := http.StatusCreated
		if a.mcp {
			status = http.StatusOK
		}
		assert.Equal(t, made.Status, status, "status of a create")
		assert.Equal(t, made.lines(), "1×2 4.p41×1", "lines")
		assert.Equal(t, made.Cart.total("total"), int64(11900), "total")
		assert.That(t, strings.HasPrefix(made.Cart.ContinueURL, "https://shop.example.com/cart#handover="), "continue_url %q", made.Cart.ContinueURL)
		read := a.call("get_cart", made.Cart.ID, "", "")
		assert.Equal(t, read.lines()+read.Cart.ID+read.Cart.UCP.Status, made.lines()+made.Cart.ID+"success", "as read")
		replaced := a.call("update_cart", made.Cart.ID, elements("1×3 2×1"), "")
		assert.Equal(t, replaced.lines(), "1×3 2×1", "replaced")
		canceled := a.call("cancel_cart", made.Cart.ID, "", "")
		assert.Equal(t, canceled.lines(), "1×3 2×1", "canceled, as it was")
		for _, operation := range []string{"get_cart", "update_cart", "cancel_cart"} {
			gone := a.call(operation, made.Cart.ID, elements("1×1"), "")
			assert.Equal(t, gone.messages(), []string{"error not_found unrecoverable"}, "%s of a canceled cart", operation)
			assert.That(t, gone.Status == 200 && gone.Cart.UCP.Status == "error" && gone.Cart.ContinueURL == "https://shop.example.com/cart", "%s", gone.Raw)
		}
		s.wantTTLs(t)
	})
}

// sharing returns a person who has taken an agent's cart over, and keeps the agent.
func (s *shop) sharing(t *testing.T, made reply) *shopper {
	t.Helper()
	code := strings.TrimPrefix(made.Cart.ContinueURL, "https://shop.example.com/cart#handover=")
	person := s.guest(t)
	person.ok("POST", "/cart/handover/redeem", `{"code":"`+code+`","keep_agent":true}`, "Idempotency-Key", redeemerKey)
	return person
}

// withNamedID is a cart with an item, and the id that the message about the empty cart ends with.
func (r reply) withNamedID() string {
	words := strings.Fields(r.Cart.Messages[len(r.Cart.Messages)-1].Content)
	return fmt.Sprintf(`{"line_items":[{"id":%q,"item":{"id":"1"},"quantity":2}]}`, words[len(words)-1])
}

// An agent cannot undo a shopper's change that it has not seen.
func TestAgent_UndoesNothingUnseen(t *testing.T) {
	onEachFace(t, func(t *testing.T, s *shop, a *agent) {
		made := a.create("1×1")
		person := s.sharing(t, made)
		person.add(`{"product_id":2}`)
		for _, stale := range []string{elements("1×2"), made.asShown("")} {
			refused := a.call("update_cart", made.Cart.ID, stale, "")
			assert.Equal(t, refused.Cart.ContinueURL, linksTo, "continue_url of a cart that the shopper has")
			assert.Equal(t, refused.messages(), []string{"error cart_changed recoverable", "warning low_stock $.line_items[1]"}, "messages")
			assert.Equal(t, refused.lines(), "1×1 2×1", "the cart as it is")
			again := a.call("cancel_cart", made.Cart.ID, stale, "")
			assert.Equal(t, again.messages()[0], "error cart_changed recoverable", "messages of a cancellation")
		}
		seen := a.call("get_cart", made.Cart.ID, "", "")
		redone := a.call("update_cart", made.Cart.ID, seen.asShown(`{"item":{"id":"4.p41"},"quantity":1}`), "")
		assert.Equal(t, redone.lines(), "1×1 2×1 4.p41×1", "redone")
		person.wantLines("1×1 2×1 4.p41×1")

		person.ok("DELETE", "/cart/clear", "")
		emptied := a.call("update_cart", made.Cart.ID, elements("1×2"), "")
		assert.Equal(t, emptied.messages(), []string{"error cart_changed recoverable"}, "messages of an empty cart")
		again := a.call("update_cart", made.Cart.ID, emptied.withNamedID(), "")
		assert.Equal(t, again.lines(), "1×2", "with the id that the message names")
	})
}

// The stores' tests have all that an agent may have missed.
func TestAgent_IsToldOfUnknownIDsAndOfACartThatMoved(t *testing.T) {
	onEachFace(t, func(t *testing.T, s *shop, a *agent) {
		made, another := a.create("1×1"), a.create("1×1").Cart.Items[0].ID
		for _, id := range []string{"li_1", another, made.Cart.Items[0].ID[:4] + another[4:]} {
			own := a.call("update_cart", made.Cart.ID, `{"line_items":[{"id":"`+id+`","item":{"id":"1"},"quantity":2}]}`, "")
			assert.Equal(t, own.lines()+fmt.Sprint(own.messages()), "1×2[warning line_id_unknown $.line_items[0].id]", "with the id %s", id)
		}
		person := s.sharing(t, made)
		person.redeem("TEN")
		refused := a.call("update_cart", made.Cart.ID, strings.TrimSuffix(made.asShown(""), "}")+`,"discounts":{"codes":["","FIVE"]}}`, "")
		assert.Equal(t, refused.messages(), []string{"error cart_changed recoverable"}, "messages after the shopper's change")
		assert.Equal(t, refused.Cart.Discounts.Codes, []string{"TEN"}, "codes of the cart as it is")

		person.logIn("1001").ok("GET", "/cart", "")
		assert.Equal(t, a.call("get_cart", made.Cart.ID, "", "").messages(), []string{"warning cart_moved"}, "messages after the login")
		for _, match := range []string{"", "*"} {
			if a.headers = nil; match != "" {
				a.headers = []string{"If-Match", match}
			}
			refused = a.call("update_cart", made.Cart.ID, elements("1×2"), "")
			assert.Equal(t, refused.lines()+fmt.Sprint(refused.messages()), "[warning cart_moved error cart_changed recoverable]", "unseen, with If-Match %q", match)
		}
		a.headers = nil
		assert.Equal(t, a.call("update_cart", made.Cart.ID, refused.withNamedID(), "").lines(), "1×2", "with the id that the message names")
	})
}

func TestAgent_NamesWhatCannotBeBought(t *testing.T) {
	onEachFace(t, func(t *testing.T, s *shop, a *agent) {
		mixed := a.create("1×1 99×1 3×1 6×1 5×1 4×1 7×1 2×9 x×1 1.f0123456789abcdef×1 4.p9×1")
		assert.Equal(t, mixed.lines(), "1×1", "the rest is applied")
		assert.Equal(t, mixed.messages(), []string{
			"error item_unavailable $.line_items[1] recoverable",
			"error item_unavailable $.line_items[2] recoverable",
			"error out_of_stock $.line_items[3].quantity recoverable",
			"error field_missing $.line_items[4] requires_buyer_input",
			"error plan_unavailable $.line_items[5] recoverable",
			"error quantity_out_of_range $.line_items[6].quantity recoverable",
			"error insufficient_stock $.line_items[7].quantity recoverable",
			"error item_unavailable $.line_items[8] recoverable",
			"error item_unavailable $.line_items[9] recoverable",
			"error plan_unavailable $.line_items[10] recoverable",
		}, "messages")
		none := a.call("create_cart", "", elements("6×1 5×1"), "")
		assert.Equal(t, none.messages(), []string{
			"error out_of_stock $.line_items[0].quantity unrecoverable", "error field_missing $.line_items[1] requires_buyer_input",
		}, "messages without a cart")
		assert.That(t, none.Status == 200 && none.Cart.UCP.Status == "error" && none.Cart.ID == "", "%s", none.Raw)
		for _, empty := range []string{`{"line_items":[]}`, `{"line_items":[],"discounts":{"codes":["TEN"]}}`} {
			assert.Equal(t, a.call("create_cart", "", empty, "").messages(), []string{"error cart_empty unrecoverable"}, "messages about %s", empty)
		}

		// What goes wrong later is said about the line.
		s.Catalog.Put(s.ID, &cart.Product{ID: 1, Name: locale.Named("P"), Active: false, MinQuantity: 1, Price: 4950})
		assert.Equal(t, a.call("get_cart", mixed.Cart.ID, "", "").messages(), []string{"error item_unavailable $.line_items[0] recoverable"}, "of a product that is no longer sold")
		s.Catalog.Put(s.ID, &cart.Product{ID: 1, Name: locale.Named("P"), Active: true, MinQuantity: 1, Price: 4950})
	})
}

func TestAgent_NamesEveryMemberAtFault(t *testing.T) {
	onEachFace(t, func(t *testing.T, s *shop, a *agent) {
		made := a.create("1×1")
		item := func(members string) string { return `{"line_items":[{` + members + `}]}` }
		for sent, want := range map[string]string{
			`{}`:                  "$.line_items",
			`{"line_items":null}`: "$.line_items",
			`{"line_items":{}}`:   "$.line_items",
			`{"line_items":[7,{"item":{"id":1},"quantity":0},{}]}`:                                                   "$.line_items[0] $.line_items[1].item.id $.line_items[1].quantity $.line_items[2].item $.line_items[2].quantity",
			item(`"item":"1","quantity":1`):                                                                          "$.line_items[0].item",
			item(`"item":{},"quantity":1`):                                                                           "$.line_items[0].item.id",
			item(`"item":{"id":"1"},"quantity":1.5`):                                                                 "$.line_items[0].quantity",
			item(`"item":{"id":"1"},"quantity":"1"`):                                                                 "$.line_items[0].quantity",
			item(`"item":{"id":"1"},"quantity":-1`):                                                                  "$.line_items[0].quantity",
			item(`"item":{"id":"1"},"quantity":9007199254740992`):                                                    "$.line_items[0].quantity",
			item(`"item":{"id":"1"},"quantity":1e400`):                                                               "$.line_items[0].quantity",
			item(`"item":{"id":"1"},"quantity":1,"id":7`):                                                            "$.line_items[0].id",
			item(`"item":{"id":"1"},"quantity":1,"parent_id":[]`):                                                    "$.line_items[0].parent_id",
			`{"line_items":[],"buyer":[],"context":"x","signals":1}`:                                                 "$.buyer $.context $.signals",
			`{"line_items":[],"buyer":{"email":1,"phone_number":{}}}`:                                                "$.buyer.email $.buyer.phone_number",
			`{"line_items":[],"context":{"language":1,"eligibility":["com.example.gold","x","com.example.gold",1]}}`: "$.context.language $.context.eligibility[1] $.context.eligibility[2] $.context.eligibility[3]",
			`{"line_items":[],"signals":{"dev.ucp.buyer_ip":1,"it's":1,"com.example.x":1}}`:                          `$.signals['dev.ucp.buyer_ip'] $.signals['it\'s']`,
			`{"line_items":[],"attribution":{"gclid":1}}`:                                                            "$.attribution.gclid",
			`{"line_items":[],"discounts":[]}`:                                                                       "$.discounts",
			`{"line_items":[],"discounts":{"codes":"TEN"}}`:                                                          "$.discounts.codes",
			`{"line_items":[],"discounts":{"codes":[1]}}`:                                                            "$.discounts.codes[0]",
			`{"line_items":[` + strings.Repeat(`{},`, 500) + `{}]}`:                                                  "$.line_items",
			`{"line_items":[],"discounts":{"codes":[` + strings.Repeat(`"A",`, 50) + `"A"]}}`:                        "$.discounts.codes",
		} {
			for _, operation := range []string{"create_cart", "update_cart"} {
				r := a.call(operation, made.Cart.ID, sent, "")
				var paths []string
				for _, m := range r.Cart.Messages {
					assert.That(t, m.Code == "validation_failed" && m.Severity == "recoverable" && m.Content != "", "%s: %+v", sent, m)
					paths = append(paths, m.Path)
				}
				assert.Equal(t, strings.Join(paths, " "), want, "%s %.100s: paths", operation, sent)
				assert.That(t, r.Status == 200 && r.Cart.UCP.Status == "error", "%s", r.Raw)
			}
		}
		var said []string
		for _, m := range a.call("create_cart", "", `{"line_items":[{"item":{"id":7}}]}`, "").Cart.Messages {
			said = append(said, m.Content)
		}
		assert.Equal(t, said, []string{
			"This value is not valid. Expected: string.", "This value is required. Expected: integer, minimum 1, below 2^53.",
		}, "about a wrong id and no quantity")
		other := a.call("update_cart", made.Cart.ID, `{"id":"another","line_items":[]}`, "")
		assert.Equal(t, other.messages(), []string{"error validation_failed $.id recoverable"}, "another id in the body")
		assert.Equal(t, a.call("get_cart", made.Cart.ID, "", "").lines(), "1×1", "the cart after all refusals")
		fine := `{"id":"` + made.Cart.ID + `","line_items":[{"item":{"id":"1","title":"x"},"quantity":2.0,"id":null,"x":1}],"buyer":null,` +
			`"context":{"eligibility":["com.example.gold"]},"signals":{"com.example.x":{}},"attribution":{"gclid":"x"},"unknown":1}`
		assert.Equal(t, a.call("update_cart", made.Cart.ID, fine, "").lines(), "1×2", "what the schemas allow")
	})
}

func TestAgent_HasDiscountCodes(t *testing.T) {
	onEachFace(t, func(t *testing.T, s *shop, a *agent) {
		with := func(codes string) string {
			return `{"line_items":[{"item":{"id":"1"},"quantity":1}],"discounts":{"codes":` + codes + `}}`
		}
		made := a.call("create_cart", "", with(`["ten"]`), "")
		id := made.Cart.ID
		assert.Equal(t, made.Cart.Discounts.Codes, []string{"ten"}, "codes as they were sent")
		assert.Equal(t, made.Cart.total("items_discount"), int64(-495), "discount")
		same := a.call("update_cart", id, with(`["\u200fT\u200bEN"]`), "")
		assert.That(t, same.Cart.total("items_discount") == -495 && same.Cart.Items[0].ID == made.Cart.Items[0].ID,
			"the same code in another spelling changed the cart: %+v", same.Cart)
		shopper := s.sharing(t, same)
		etag := shopper.ok("GET", "/cart", "").Header.Get("ETag")
		seen := a.call("get_cart", id, "", "")
		unchanged := a.call("update_cart", id, strings.TrimSuffix(seen.asShown(""), "}")+`,"discounts":{"codes":["TEN","OLD","EXTRA"]}}`, "")
		assert.That(t, unchanged.Cart.total("items_discount") == -495 && len(unchanged.messages()) == 2, "codes that the cart has, and refused ones: %s", unchanged.Raw)
		shopper.ok("PATCH", "/cart/items/1", `{"notice":"N"}`, "If-Match", etag)
		a.call("update_cart", id, a.call("get_cart", id, "", "").asShown(""), "")
		for codes, want := range map[string][]string{
			`["OLD"]`:                             {"warning discount_code_expired $.discounts.codes[0]"},
			`["NONE"]`:                            {"warning discount_code_invalid $.discounts.codes[0]"},
			`[" "]`:                               {"warning discount_code_invalid $.discounts.codes[0]"},
			`["\u0000TEN"]`:                       {"warning discount_code_invalid $.discounts.codes[0]"},
			`["` + strings.Repeat("A", 65) + `"]`: {"warning discount_code_invalid $.discounts.codes[0]"},
			`["OLD","EXTRA"," ","TEN"]`: {
				"warning discount_code_invalid $.discounts.codes[2]", "warning discount_code_expired $.discounts.codes[0]",
				"warning discount_code_combination_disallowed $.discounts.codes[3]",
			},
		} {
			a.call("update_cart", id, with(`["TEN"]`), "")
			refused := a.call("update_cart", id, with(codes), "")
			assert.Equal(t, refused.messages(), want, "%s: messages", codes)
			left := map[int]int64{1: 0, 3: -248}[len(want)] // EXTRA, 5 % of 49.50, is left
			assert.Equal(t, refused.Cart.total("items_discount"), left, "%s: discount", codes)
		}
		a.call("update_cart", id, with(`["TEN"]`), "")
		assert.Equal(t, len(a.call("update_cart", id, with(`[`+strings.Repeat(`"TEN",`, 49)+`"TEN"]`), "").messages()), 0, "messages of one code 50 times")
		assert.Equal(t, a.call("update_cart", id, elements("1×2"), "").Cart.Discounts.Codes, []string{"TEN"}, "codes without discounts in the request")
		assert.Equal(t, len(a.call("update_cart", id, with(`[]`), "").Cart.Discounts.Codes), 0, "codes of an empty list")
		s.Catalog.PutCoupon(s.ID, &price.Coupon{Code: "BRIEF", Kind: price.Fixed, Amount: 100, Combines: true})
		a.call("update_cart", id, with(`["BRIEF","EXTRA"]`), "")
		s.Catalog.DeleteCoupon(s.ID, "BRIEF")
		more := a.call("update_cart", id, with(`["BRIEF","EXTRA","PLUS"]`), "")
		assert.Equal(t, more.messages(), []string{"warning discount_code_invalid $.discounts.codes[0]"}, "messages about a code that the cart has, and that is gone")
		assert.Equal(t, more.Cart.total("items_discount"), int64(-448), "discount of the others")
		alone := a.call("create_cart", "", `{"line_items":[],"discounts":{"codes":["TEN"]}}`, "")
		assert.Equal(t, alone.Cart.UCP.Status, "error", "status of a coupon without a line")
	})
}

// The rows of the protocol's tables of errors (overview, Error Codes), of discovery and of this service's own.
func TestAgent_GetsTheProtocolsErrors(t *testing.T) {
	profiles := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/html":
			fmt.Fprint(w, "<html>")
		case "/old":
			fmt.Fprint(w, `{"ucp":{"version":"2026-01-23","services":{},"payment_handlers":{}}}`)
		case "/checkout":
			fmt.Fprint(w, `{"ucp":{"version":"2026-04-08","services":{},"payment_handlers":{},"capabilities":{"dev.ucp.shopping.checkout":[{"version":"2026-04-08"}]}}}`)
		case "/plain":
			fmt.Fprint(w, `{"ucp":{"version":"2026-04-08","services":{},"payment_handlers":{},"capabilities":{"dev.ucp.shopping.cart":[{"version":"2026-04-08"}]}}}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(profiles.Close)
	s := newShop(t, func(p *server.Parts) {
		p.TrustProfiles, p.LocalProfiles, p.Deadline = false, true, ephemeral.Patience(20*time.Second)
	})
	const first = "the-first-random-key-long-enough"
	rows := []struct {
		code   string
		status int
		rpc    int64
		call   func(*agent) reply
	}{
		{"invalid_profile_url", 400, -32001, func(a *agent) reply { a.profile = ""; return a.call("get_cart", "x", "", "") }},
		{"invalid_profile_url", 400, -32001, func(a *agent) reply { a.profile = "ftp://x"; return a.call("get_cart", "x", "", "") }},
		{"invalid_profile_url", 400, -32001, func(a *agent) reply {
			a.headers = []string{"Origin", "https://shop.example.com"}
			return a.call("get_cart", "x", "", "")
		}},
		{"invalid_profile_url", 400, -32001, func(a *agent) reply {
			a.headers = []string{"X-Forwarded-For", "203.0.113.9"}
			return a.call("get_cart", "x", "", "")
		}},
		{"profile_unreachable", 424, -32001, func(a *agent) reply { a.profile = profiles.URL + "/none"; return a.call("get_cart", "x", "", "") }},
		{"profile_malformed", 422, -32001, func(a *agent) reply { a.profile = profiles.URL + "/html"; return a.call("get_cart", "x", "", "") }},
		{"version_unsupported", 422, -32001, func(a *agent) reply { a.profile = profiles.URL + "/old"; return a.call("get_cart", "x", "", "") }},
		{"unauthenticated", 401, -32000, func(a *agent) reply {
			a.headers = []string{"Authorization", "Bearer x"}
			return a.call("get_cart", "x", "", "")
		}},
		{"idempotency_conflict", 409, -32000, func(a *agent) reply {
			if made := a.call("create_cart", "", elements("1×1"), first); made.Status == http.StatusServiceUnavailable {
				return made
			}
			return a.call("create_cart", "", elements("1×2"), first)
		}},
		{"version_mismatch", 412, -32000, func(a *agent) reply {
			id := a.create("1×1").Cart.ID
			a.headers = []string{"If-Match", `"x.1-y"`}
			return a.call("update_cart", id, elements("1×2"), "")
		}},
		{"body_too_large", 413, -32600, func(a *agent) reply { return a.call("create_cart", "", `{"x":"`+strings.Repeat("x", 64<<10)+`"}`, "") }},
		{"unsupported_media_type", 415, -32600, func(a *agent) reply {
			a.headers = []string{"Content-Type", "text/plain"}
			return a.call("create_cart", "", elements("1×1"), "")
		}},
		// The id of a new cart, which opens it, is derived from the key.
		{"invalid_parameter", 400, -32602, func(a *agent) reply { return a.call("create_cart", "", elements("1×1"), "0123456789abcdef01234") }},
		{"invalid_parameter", 400, -32602, func(a *agent) reply {
			return a.call("create_cart", "", elements("1×1"), "00000000-0000-0000-0000-000000000000")
		}},
	}
	for _, row := range rows {
		for _, a := range s.agents(t) {
			a.profile = profiles.URL + "/plain"
			var r reply
			ephemeral.Eventually(t, "a fetch that the limits allow", func() bool {
				r = row.call(a)
				return r.Status != http.StatusServiceUnavailable
			})
			assert.That(t, r.Status == row.status && r.Fault.Code == row.code && r.Fault.Content != "", "%s over MCP %t: got %d %s", row.code, a.mcp, r.Status, r.Raw)
			assert.That(t, !strings.Contains(s.Log.String(), `"level":"ERROR"`), "%s: logged as a failure of the service", row.code)
			assert.That(t, !a.mcp || r.RPC == row.rpc, "%s: the code of JSON-RPC is %d, want %d", row.code, r.RPC, row.rpc)
		}
	}
	for _, a := range s.agents(t) {
		a.profile = profiles.URL + "/checkout"
		var r reply
		ephemeral.Eventually(t, "a fetch that the limits allow", func() bool {
			r = a.call("create_cart", "", elements("1×1"), "")
			assert.That(t, r.Status != 503 || r.Header.Get("Retry-After") != "", "no Retry-After: %v", r.Header)
			return r.Status != http.StatusServiceUnavailable
		})
		assert.Equal(t, r.messages(), []string{"error capabilities_incompatible unrecoverable"}, "messages without a common capability")
		assert.That(t, r.Status == 200 && len(r.Cart.UCP.Capabilities) == 0, "%s", r.Raw)
		a.profile = profiles.URL + "/plain"
		plain := a.call("create_cart", "", `{"line_items":[{"item":{"id":"1"},"quantity":1}],"discounts":{"codes":["TEN"]}}`, "")
		assert.That(t, plain.Cart.total("total") == 4950 && plain.Cart.Discounts.Codes == nil && len(plain.messages()) == 0, "discounts, which are not negotiated: %s", plain.Raw)
	}
}

// Errors of the server itself have the protocol's form too.
func TestAgent_GetsBareErrorsOfTheServer(t *testing.T) {
	now := time.Now() // stands still, so that no calls are earned back
	limited := &agent{mcp: true}
	s := newShop(t, func(p *server.Parts) { p.RateLimit, p.BasePath, p.Now = true, "/v1", func() time.Time { return now } })
	for _, a := range []struct {
		status             int
		code, method, path string
	}{
		{404, "not_found", "GET", "/ucp/" + s.Key},
		{404, "not_found", "GET", "/ucp/"},
		{404, "not_found", "GET", "/ucp/x/carts/y"},
		{405, "method_not_allowed", "GET", "/ucp/" + s.Key + "/carts"},
		{405, "method_not_allowed", "GET", "/ucp/" + s.Key + "/mcp"},
		{405, "method_not_allowed", "DELETE", "/ucp/" + s.Key + "/mcp"},
		{404, "not_found", "POST", "/ucp/x/mcp"},
	} {
		got := s.guest(t).send(a.method, a.path, "")
		assert.That(t, got.Status == a.status && bytes.Contains(got.Raw, []byte(`"code":"`+a.code+`","content":"`)), "%s %s: %d %s", a.method, a.path, got.Status, got.Raw)
		assert.That(t, strings.HasPrefix(string(got.Raw), `{"jsonrpc":"2.0","id":null,"error":{"code":-32000`) == strings.HasSuffix(a.path, "/mcp"), "%s %s: %s", a.method, a.path, got.Raw)
	}
	limited.shopper = s.guest(t)
	var last reply
	for range 2000 {
		if last = limited.rpc(`{"jsonrpc":"2.0","id":1,"method":"ping"}`); last.Status != 200 {
			break
		}
	}
	assert.That(t, last.Status == 429 && last.Fault.Code == "rate_limited" && last.Fault.RetryAfter >= 1 && last.Header.Get("Retry-After") != "", "%d %s", last.Status, last.Raw)
}

// No address of a platform exceeds its own rate here.
func TestAgent_CountsForItsProfileToo(t *testing.T) {
	now := time.Now()
	s := newShop(t, limited, func(p *server.Parts) { p.Now = func() time.Time { return now } })
	a := &agent{shopper: s.guest(t), profile: agentProfile}
	statuses := map[int]int{}
	for i := range 5001 {
		a.headers = []string{"X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i%11)}
		statuses[a.call("get_cart", "none", "", "").Status]++
	}
	assert.Equal(t, statuses, map[int]int{200: 5000, 429: 1}, "answers by status")
	a.profile += "/of-another"
	assert.Equal(t, a.call("get_cart", "none", "", "").Status, 200, "status for another profile")
}

func TestAgent_FindsTheStoreByTheHost(t *testing.T) {
	s := newShop(t, func(p *server.Parts) {
		p.BasePath, p.PublicURL, p.TrustedProxies = "/v1", "https://api.example.com", []string{"127.0.0.2"}
		other := store.Store{ID: nextStore(), PublicKeys: []string{"pk_other"}, Host: "other.example.com", Currency: "USD", Locale: "en"}
		p.DefaultStore = 0
		keyless := store.Store{ID: nextStore(), Host: "keyless.example.com", Currency: "USD", Locale: "en"}
		p.Stores = withStore{withStore{p.Stores, &other}, &keyless}
	})
	root := *s
	root.URL = strings.TrimSuffix(s.URL, "/v1")
	endpoint := func(host string, headers ...string) string {
		c := root.guest(t)
		r := c.request("GET", "/.well-known/ucp", nil, headers...)
		r.Host = host
		a := c.do(r)
		if a.Status != 200 {
			return fmt.Sprint(a.Status)
		}
		assert.Equal(t, a.Header.Get("Cache-Control"), "public, max-age=300", "Cache-Control")
		var found struct {
			UCP struct {
				Services map[string][]struct{ Transport, Endpoint string }
			}
		}
		assert.NoError(t, json.Unmarshal(a.Raw, &found))
		both := found.UCP.Services["dev.ucp.shopping"]
		assert.That(t, len(both) == 2 && both[1].Endpoint == both[0].Endpoint+"/mcp", "%s", a.Raw)
		return both[0].Endpoint
	}
	own := "https://api.example.com/v1/ucp/" + s.Key
	assert.Equal(t, endpoint("other.example.com:8443"), "https://api.example.com/v1/ucp/pk_other", "endpoint of a store's host")
	assert.Equal(t, endpoint("OTHER.example.com"), "https://api.example.com/v1/ucp/pk_other", "endpoint of a store's host in capitals")
	assert.Equal(t, endpoint("nobody.example.com"), own, "endpoint of another host")
	assert.Equal(t, endpoint("keyless.example.com"), "404", "status for a store without a publishable key")
	assert.Equal(t, endpoint("nobody.example.com", "X-Forwarded-Host", "other.example.com"), own, "endpoint of a forwarded host, from no proxy")
	assert.Equal(t, s.guest(t).send("GET", "/.well-known/ucp", "").Status, 404, "status below the base path")
	assert.Equal(t, root.guest(t).send("HEAD", "/.well-known/ucp", "").Status, 200, "status of HEAD")
}

// withStore is a directory that has one more store, by its host, and then no sole store.
type withStore struct {
	auth.StoreDirectory
	more *store.Store
}

func (d withStore) ByHost(ctx context.Context, host string) (*store.Store, error) {
	if host, _, _ := strings.Cut(strings.ToLower(host), ":"); host == d.more.Host {
		return d.more, nil
	}
	return d.StoreDirectory.ByHost(ctx, host)
}

// Otherwise an agent could fill Redis with what it may not even store.
func TestAgent_ARefusedCallStoresNothing(t *testing.T) {
	onEachFace(t, func(t *testing.T, s *shop, a *agent) {
		n := 0
		key := func() string { n++; return fmt.Sprintf("a-random-key-long-enough-%d-%t", n, a.mcp) }
		held, used := a.create("1×1").Cart.ID, key()
		a.call("create_cart", "", elements("1×2"), used)
		before := s.dump(t)
		for name, refused := range map[string]func(*agent) reply{
			"nothing can be bought": func(a *agent) reply { return a.call("create_cart", "", elements("6×1 99×1"), key()) },
			"the same without key":  func(a *agent) reply { return a.call("create_cart", "", elements("6×1"), "") },
			"no line":               func(a *agent) reply { return a.call("create_cart", "", elements(""), key()) },
			"a coupon alone": func(a *agent) reply {
				return a.call("create_cart", "", `{"line_items":[],"discounts":{"codes":["TEN"]}}`, key())
			},
			"a malformed body": func(a *agent) reply { return a.call("create_cart", "", elements("1×0"), key()) },
			"another body":     func(a *agent) reply { return a.call("create_cart", "", elements("1×3"), used) },
			"an unknown cart": func(a *agent) reply {
				return a.call("update_cart", held[:4]+strings.Repeat("A", 26), elements("1×1"), key())
			},
			"cancel of unknown": func(a *agent) reply { return a.call("cancel_cart", held[:4]+strings.Repeat("B", 26), "", key()) },
			"another version": func(a *agent) reply {
				a.headers = []string{"If-Match", `"x.1-y"`}
				return a.call("update_cart", held, elements("1×4"), key())
			},
			"no profile": func(a *agent) reply { a.profile = ""; return a.call("create_cart", "", elements("1×1"), key()) },
		} {
			again := *a
			r := refused(&again)
			assert.That(t, r.Status >= 400 || r.RPC != 0 || r.Cart.UCP.Status == "error", "%s over MCP %t is not refused: %s", name, a.mcp, r.Raw)
			assert.Equal(t, s.dump(t), before, "%s over MCP %t: what is in Redis", name, a.mcp)
		}
		unsold, item := key(), 801+nextStore()%1000
		sent := elements(fmt.Sprint(item, "×1"))
		a.call("create_cart", "", sent, unsold)
		s.Catalog.Put(s.ID, &cart.Product{ID: item, Name: locale.Named("P"), Active: true, MinQuantity: 1, Price: 100})
		later := a.call("create_cart", "", sent, unsold)
		assert.Equal(t, later.lines(), fmt.Sprint(item, "×1"), "lines of the same call later")
		assert.That(t, bytes.Equal(a.call("create_cart", "", sent, unsold).Raw, later.Raw), "a repeat has another result")
	})
}

func TestAgent_IsAnsweredInItsLanguage(t *testing.T) {
	onEachFace(t, func(t *testing.T, s *shop, a *agent) {
		title := func(cart string, headers ...string) string {
			a.headers = headers
			return a.call("create_cart", "", cart, "").Cart.Totals[0].Text
		}
		in := func(language string) string {
			return strings.TrimSuffix(elements("1×1"), "}") + `,"context":{"language":"` + language + `"}}`
		}
		for _, test := range []struct{ got, want string }{
			{title(elements("1×1")), "Subtotal"},
			{title(elements("1×1"), "Accept-Language", "ar"), "المجموع الفرعي"},
			{title(in("ar-SA"), "Accept-Language", "en"), "المجموع الفرعي"},
			{title(in("en"), "Accept-Language", "ar"), "Subtotal"},
			{title(in("fr"), "Accept-Language", "ar"), "المجموع الفرعي"},
		} {
			assert.Equal(t, test.got, test.want, "text")
		}
	})
}

func TestAgent_SeesNoTextsOfThePerson(t *testing.T) {
	s := newShop(t)
	for _, a := range s.agents(t) {
		made := a.create("1×1")
		person := s.sharing(t, made)
		person.add(`{"product_id":5,"fields":{"Account email":"secret@example.com","Region":"us"},"notice":"secret notice","metadata":{"n":"secret"}}`)
		person.add(`{"product_id":5,"qty":2,"fields":{"Account email":"0501234567","Region":"us"}}`)
		read := a.call("get_cart", made.Cart.ID, "", "")
		assert.Equal(t, read.lines(), "1×1 5×1 5×2", "lines")
		assert.That(t, !strings.Contains(string(read.Raw), "secret"), "shows %s", read.Raw)
		held := person.cart().Items
		for _, line := range held[1:] {
			_, digest, _ := strings.Cut(line.ID, ".f")
			assert.That(t, len(digest) == 16 && !strings.Contains(string(read.Raw), digest), "shows the digest of texts %q: %s", digest, read.Raw)
		}
		l := read.Cart.Items
		update := fmt.Sprintf(`{"line_items":[{"id":%q,"item":{"id":"5"},"quantity":4},{"id":%q,"item":{"id":"5"},"quantity":3}]}`, l[2].ID, l[1].ID)
		assert.Equal(t, a.call("update_cart", made.Cart.ID, update, "").messages(), nil, "messages of an update by these ids")
		person.wantLines(held[1].ID + "×3 " + held[2].ID + "×4")
	}
}

// Catalogs have URLs as a person types them.
func TestAgent_GetsImagesByURIs(t *testing.T) {
	s := newShop(t)
	for stored, want := range map[string]string{
		"https://cdn.example.com/ة 1.png": `"image_url":"https://cdn.example.com/%D8%A9%201.png"`,
		"https://cdn.example.com/%41?a=b": `"image_url":"https://cdn.example.com/%41?a=b"`,
		"relative/1.png":                  "",
		"https://cdn.example.com/%zz":     "",
	} {
		s.Catalog.Put(s.ID, &cart.Product{ID: 1001, Name: locale.Named("P"), Active: true, MinQuantity: 1, Price: 100, Image: &cart.Image{URL: stored}})
		shown := string(s.agent(t).create("1001×1").Raw)
		assert.That(t, strings.Contains(shown, want) && strings.Contains(shown, "image_url") == (want != ""), "%q is shown as %s", stored, shown)
	}
}

func TestMCP_SpeaksJSONRPC(t *testing.T) {
	s := newShop(t)
	a := s.agents(t)[1]
	const latest = `"protocolVersion":"2025-11-25"`
	for _, test := range []struct {
		body, want string
		status     int
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`, `"protocolVersion":"2025-06-18"`, 200},
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2030-01-01"}}`, latest, 200},
		{`{"jsonrpc":"2.0","id":1,"method":"initialize"}`, latest, 200},
		{`{"jsonrpc":"2.0","id":"x","method":"ping"}`, `{"jsonrpc":"2.0","id":"x","result":{}}`, 200},
		{`{"jsonrpc":"2.0","id":1.5,"method":"tools/list","params":{}}`, `"id":1.5,"result":{"tools":[{"name":"create_cart"`, 200},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "", 202},
		{`{"jsonrpc":"2.0","method":"no such notification"}`, "", 202},
		{`{"jsonrpc":"2.0","id":1,"result":{}}`, "", 202},
		{`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`, `"id":1,"error":{"code":-32601`, 200},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, `"id":1,"error":{"code":-32602`, 200},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete_cart"}}`, `"error":{"code":-32602`, 200},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_cart","arguments":[]}}`, `"error":{"code":-32602`, 200},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_cart","arguments":{"meta":1}}}`, `"error":{"code":-32602`, 200},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_cart","arguments":{"cart":[]}}}`, `"error":{"code":-32602`, 200},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_cart","arguments":{"id":7}}}`, `"error":{"code":-32001`, 400},
		{`{`, `"id":null,"error":{"code":-32700`, 400},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `"id":null,"error":{"code":-32700`, 400},
		{`{"jsonrpc":"1.0","id":1,"method":"ping"}`, `"error":{"code":-32600`, 400},
		{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, `"error":{"code":-32600`, 400},
		{`{"jsonrpc":"2.0","id":[],"method":"ping"}`, `"error":{"code":-32600`, 400},
		{`{"jsonrpc":"2.0","id":1,"method":7}`, `"error":{"code":-32600`, 400},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`, `"error":{"code":-32600`, 400},
		{`{}`, `"error":{"code":-32600`, 400},
	} {
		r := a.rpc(test.body)
		assert.That(t, r.Status == test.status && strings.Contains(string(r.Raw), test.want) && (test.want != "" || len(r.Raw) == 0), "%s: got %d %s, want %d %s", test.body, r.Status, r.Raw, test.status, test.want)
	}
	for _, test := range []struct {
		header, value string
		status        int
	}{
		{"Origin", "https://evil.example", 403},
		{"Origin", "null", 403},
		{"Origin", "https://shop.example.com", 200},
		{"Origin", s.URL, 200},
		{"MCP-Protocol-Version", "2025-06-18", 200},
		{"MCP-Protocol-Version", "1999-01-01", 400},
	} {
		a.headers = []string{test.header, test.value}
		assert.Equal(t, a.rpc(`{"jsonrpc":"2.0","id":1,"method":"ping"}`).Status, test.status, "status with %s: %s", test.header, test.value)
	}
}

// A change of a tool's schema must not make it unusable: clients compile it, and refuse what does not match.
func TestMCP_ToolsAcceptWhatTheServiceAccepts(t *testing.T) {
	s := newShop(t)
	var listed struct {
		Result struct {
			Tools []struct {
				Name         string
				InputSchema  json.RawMessage
				OutputSchema json.RawMessage
			}
		}
	}
	a := s.agents(t)[1]
	assert.NoError(t, json.Unmarshal(a.rpc(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).Raw, &listed))
	var names []string
	for _, tool := range listed.Result.Tools {
		names = append(names, tool.Name)
		for _, schema := range []json.RawMessage{tool.InputSchema, tool.OutputSchema} {
			c := jsonschema.NewCompiler()
			assert.NoError(t, c.AddResource("tool.json", assert.Must(jsonschema.UnmarshalJSON(bytes.NewReader(schema)))(t)))
			compiled := assert.Must(c.Compile("tool.json"))(t)
			if bytes.Equal(schema, tool.InputSchema) {
				arguments := map[string]any{
					"meta": map[string]any{"ucp-agent": map[string]any{"profile": agentProfile}}, "id": "x",
					"cart": map[string]any{"line_items": []any{map[string]any{"item": map[string]any{"id": "1"}, "quantity": 1}}},
				}
				assert.Succeeds(t, compiled.Validate(arguments), "arguments of %s", tool.Name)
				assert.That(t, compiled.Validate(map[string]any{}) != nil, "%s needs nothing", tool.Name)
			}
		}
	}
	assert.Equal(t, names, []string{"create_cart", "get_cart", "update_cart", "cancel_cart"}, "tools")
}

// The tests above check every response against the protocol's schemas. These are mistakes that the check finds.
func TestAgents_ConformToTheProtocol(t *testing.T) {
	s := newShop(t)
	good := s.agent(t).call("create_cart", "", `{"line_items":[{"item":{"id":"1"},"quantity":2},{"item":{"id":"6"},"quantity":1}],"discounts":{"codes":["TEN"]}}`, "")
	assert.NoError(t, agentsConform(decode[any](t, good.Raw)))
	for before, after := range map[string]string{
		`"version":"2026-08-25","status"`: `"version":"2026-01-23","status"`,
		`"status":"success"`:              `"status":"fine"`,
		`"currency":"SAR",`:               "",
		`"quantity":2`:                    `"quantity":0`,
		`"price":4950`:                    `"price":49.5`,
		`"type":"subtotal"`:               `"type":"sub"`,
		`"amount":-990`:                   `"amount":990`,
		`"amount":8910}],`:                `"amount":8911}],`,
		`"severity":"recoverable"`:        `"severity":"fatal"`,
		`"type":"info","code"`:            `"type":"note","code"`,
		`"continue_url":"https`:           `"continue_url":"https:// x`,
		`"expires_at":"`:                  `"expires_at":"on `,
		`"codes":["TEN"]`:                 `"codes":[null]`,
		`"title":"Coupon TEN",`:           "",
	} {
		bad := strings.Replace(string(good.Raw), before, after, 1)
		assert.That(t, bad != string(good.Raw) && agentsConform(decode[any](t, []byte(bad))) != nil, "%q passes for %q", after, before)
	}
	profile := s.guest(t).ok("GET", "/.well-known/ucp", "").Raw
	assert.That(t, agentsConform(decode[any](t, bytes.Replace(profile, []byte(`"transport":"rest"`), []byte(`"transport":"soap"`), 1))) != nil, "another transport passes")
}

func agentExamples(t *testing.T, add func(string, answer)) {
	t.Helper()
	a := exampleShop(t).agent(t)
	add("AgentCart", a.create("1×2 6×1").answer)
	a.profile = ""
	add("AgentWithoutProfile", a.call("get_cart", "x", "", "").answer)
}

// An agent knows where the buyer is, but the shopper knows better.
func TestAgent_SaysTheBuyersCountry(t *testing.T) {
	onEachFace(t, func(t *testing.T, s *shop, a *agent) {
		in := func(country string) string {
			return `{"line_items":[{"item":{"id":"1"},"quantity":2}],"context":{"address_country":` + country + `}}`
		}
		taxed := func(r reply) string {
			for _, m := range r.Cart.Messages {
				if m.Code == "tax_included" {
					return m.Content
				}
			}
			return ""
		}
		made := a.call("create_cart", "", in(`"de"`), "")
		assert.That(t, strings.Contains(taxed(made), "15.81") && len(made.messages()) == 0, "in Germany: %s", made.Raw)
		moved := a.call("update_cart", made.Cart.ID, in(`"FR"`), "")
		assert.That(t, strings.Contains(taxed(moved), "16.50"), "in France: %s", moved.Raw)
		unknown := a.call("update_cart", made.Cart.ID, in(`"EU"`), "")
		assert.Equal(t, unknown.messages(), []string{"warning address_country_unknown $.context.address_country"}, "no country")
		kept := a.call("update_cart", made.Cart.ID, elements("1×2"), "")
		assert.That(t, strings.Contains(taxed(kept), "16.50"), "without a country: %s", kept.Raw)
		claimed := a.call("update_cart", made.Cart.ID, `{"line_items":[],"context":{"eligibility":["com.example.gold"]}}`, "")
		assert.Equal(t, claimed.messages(), []string{"warning eligibility_not_accepted $.context.eligibility"}, "a claim")
		alone := a.call("create_cart", "", `{"line_items":[{"item":{"id":"404"},"quantity":1}],"context":{"address_country":"DE"}}`, "")
		assert.That(t, alone.Cart.ID == "", "a country makes no cart: %s", alone.Raw)

		full := a.call("create_cart", "", in(`"DE"`), "")
		shopper := s.guest(t)
		redeemed := shopper.ok("POST", "/cart/handover/redeem", `{"code":"`+strings.TrimPrefix(full.Cart.ContinueURL, "https://shop.example.com/cart#handover=")+`","keep_agent":true}`, "Idempotency-Key", "0123456789abcdefghijkl")
		shopper.Token = *redeemed.Body.Data.CartToken
		assert.Equal(t, redeemed.Body.Data.Buyer.String(), "DE by agent", "after the hand-over")
		assert.Equal(t, shopper.isIn(`"IT"`).Buyer.String(), "IT by shopper", "the shopper says")
		seen := a.call("get_cart", full.Cart.ID, "", "")
		a.call("update_cart", full.Cart.ID, strings.Replace(in(`"DE"`), `{"item"`, `{"id":"`+seen.Cart.Items[0].ID+`","item"`, 1), "")
		assert.Equal(t, shopper.cart().Buyer.String(), "IT by shopper", "after the agent has said another")
	})
}
