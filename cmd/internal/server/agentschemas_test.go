package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// forAgents reports whether a path is one of the calls of agents, whose responses have no envelope.
func forAgents(path string) bool {
	return strings.HasPrefix(path, "/ucp/") || path == "/.well-known/ucp"
}

type agentSchemas struct{ profile, cart, discounted *jsonschema.Schema }

var protocol = sync.OnceValues(func() (s agentSchemas, err error) {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.UseLoader(pinned{})
	const base = "https://ucp.dev/schemas/"
	either := func(cart string) *jsonschema.Schema {
		url := "https://ucp.dev/either/" + strings.ReplaceAll(cart, "#", "/")
		refused := map[string]any{"$ref": base + "shopping/types/error_response.json"}
		err = errors.Join(err, c.AddResource(url, map[string]any{"oneOf": []any{map[string]any{"$ref": base + cart}, refused}}))
		schema, failed := c.Compile(url)
		err = errors.Join(err, failed)
		return schema
	}
	s.cart, s.discounted = either("shopping/cart.json"), either("shopping/discount.json#/$defs/dev.ucp.shopping.cart")
	profile, failed := c.Compile(base + "ucp.json#/$defs/business_schema")
	s.profile = profile
	return s, errors.Join(err, failed)
})

type pinned struct{}

func (pinned) Load(url string) (any, error) {
	f, err := os.Open("testdata/ucp/" + strings.TrimPrefix(url, "https://ucp.dev/"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return jsonschema.UnmarshalJSON(f)
}

// agentsConform compares the body of a response to an agent with the protocol's schemas, and its sums with each other.
func agentsConform(body any) error {
	schemas, err := protocol()
	if err != nil {
		return err
	}
	content := body.(map[string]any)
	if result, ok := content["result"].(map[string]any); ok {
		shown, ok := result["structuredContent"].(map[string]any)
		if !ok {
			return nil // of another method than tools/call
		}
		text := result["content"].([]any)[0].(map[string]any)["text"].(string)
		same, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil || !reflect.DeepEqual(same, any(shown)) {
			return fmt.Errorf("content and structuredContent differ: %w", err)
		}
		content = shown
	}
	meta, ok := content["ucp"].(map[string]any)
	switch {
	case !ok:
		return nil // an error
	case meta["services"] != nil:
		return schemas.profile.Validate(meta)
	case meta["capabilities"].(map[string]any)["dev.ucp.shopping.discount"] != nil:
		err = schemas.discounted.Validate(content)
	default:
		err = schemas.cart.Validate(content)
	}
	if err == nil && content["line_items"] != nil {
		err = sums(content)
	}
	return err
}

// sums holds the numbers of a cart to the invariants of the protocol.
func sums(shown map[string]any) error {
	text, err := json.Marshal(shown)
	if err != nil {
		return err
	}
	var c agentCart
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	var discounts int64
	for _, l := range c.Items {
		if l.total("subtotal") != l.Item.Price*l.Quantity || l.total("subtotal")+l.total("items_discount") != l.total("total") {
			return fmt.Errorf("the line %s does not add up: %+v", l.ID, l)
		}
		discounts += l.total("items_discount")
	}
	var all, applied, allocated int64
	for _, t := range c.Totals {
		if t.Type != "total" {
			all += t.Amount
		}
	}
	for _, d := range c.Discounts.Applied {
		applied += d.Amount
		for _, a := range d.Allocations {
			allocated += a.Amount
		}
	}
	if all != c.total("total") || discounts != c.total("items_discount") || c.Discounts.Codes != nil && (applied != -discounts || allocated != applied) {
		return fmt.Errorf("the cart does not add up: %s", text)
	}
	return nil
}

type agentCart struct {
	UCP struct {
		Status       string
		Capabilities map[string]any
	}
	ID    string
	Items []struct {
		ID   string
		Item struct {
			ID, Title string
			Price     int64
		}
		Quantity int64
		totals
	} `json:"line_items"`
	Currency string
	totals
	Discounts struct {
		Codes   []string
		Applied []struct {
			Code, Title string
			Amount      int64
			Allocations []struct {
				Path   string
				Amount int64
			}
		}
	}
	Messages    []agentMessage
	ContinueURL string `json:"continue_url"`
	ExpiresAt   string `json:"expires_at"`
}

type totals struct {
	Totals []struct {
		Type   string
		Text   string `json:"display_text"`
		Amount int64
	}
}

func (t totals) total(kind string) (sum int64) {
	for _, one := range t.Totals {
		if one.Type == kind {
			sum += one.Amount
		}
	}
	return sum
}

type agentMessage struct{ Type, Code, Path, Content, Severity string }

// String is such as "error out_of_stock $.line_items[0] recoverable".
func (m agentMessage) String() string {
	return strings.Join(strings.Fields(strings.Join([]string{m.Type, m.Code, m.Path, m.Severity}, " ")), " ")
}
