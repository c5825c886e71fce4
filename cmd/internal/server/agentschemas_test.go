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

// agentSchemas has the schemas of the responses of each release, by what they show. The first release describes no envelopes
// of MCP; those of the second hold for both.
var agentSchemas = sync.OnceValues(func() (map[string]map[string]*jsonschema.Schema, error) {
	all, failed := map[string]map[string]*jsonschema.Schema{}, error(nil)
	for release, schemas := range map[string]map[string]string{
		"2026-04-08": {
			"profile":    `{"properties":{"ucp":{"$ref":"ucp.json#/$defs/business_schema"}}}`,
			"cart":       `{"oneOf":[{"$ref":"shopping/cart.json"},{"$ref":"shopping/types/error_response.json"}]}`,
			"discounted": `{"oneOf":[{"$ref":"shopping/discount.json#/$defs/dev.ucp.shopping.cart"},{"$ref":"shopping/types/error_response.json"}]}`,
		},
		"2026-08-25": {
			"profile":    `{"$ref":"profile.json#/$defs/business_schema"}`,
			"permalink":  `{"$ref":"shopping/permalink.json#/$defs/dev.ucp.shopping.permalink/business_schema"}`,
			"tool":       `{"$ref":"transports/mcp_tool_call.json#/$defs/response"}`,
			"rpc":        `{"$ref":"transports/jsonrpc.json"}`,
			"cart":       `{"oneOf":[{"$ref":"shopping/cart.json"},{"$ref":"common/types/error_response.json"}]}`,
			"discounted": `{"oneOf":[{"$ref":"shopping/discount.json#/$defs/dev.ucp.shopping.cart"},{"$ref":"common/types/error_response.json"}]}`,
		},
	} {
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		add := func(path, text string) {
			schema, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
			failed = errors.Join(failed, err, c.AddResource("https://ucp.dev/schemas/"+path, schema))
		}
		var bundle map[string]json.RawMessage
		text, err := os.ReadFile("testdata/ucp/" + release + ".json")
		failed = errors.Join(failed, err, json.Unmarshal(text, &bundle))
		for path, schema := range bundle {
			add(path, string(schema))
		}
		all[release] = map[string]*jsonschema.Schema{}
		for name, text := range schemas {
			add(name, text)
			all[release][name], err = c.Compile("https://ucp.dev/schemas/" + name)
			failed = errors.Join(failed, err)
		}
	}
	return all, failed
})

// agentsConform compares the body of a response to an agent with the protocol's schemas of its release, and its sums with
// each other.
func agentsConform(body any) error {
	schemas, err := agentSchemas()
	if err != nil {
		return err
	}
	content := body.(map[string]any)
	if content["jsonrpc"] != nil {
		latest := schemas["2026-08-25"]
		result, _ := content["result"].(map[string]any)
		shown, ok := result["structuredContent"].(map[string]any)
		if !ok {
			return latest["rpc"].Validate(content) // an error, or of another method than tools/call
		}
		text := result["content"].([]any)[0].(map[string]any)["text"].(string)
		same, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err = errors.Join(err, latest["tool"].Validate(content)); err != nil || !reflect.DeepEqual(same, any(shown)) {
			return fmt.Errorf("content and structuredContent differ: %w", err)
		}
		content = shown
	}
	meta, ok := content["ucp"].(map[string]any)
	if !ok {
		return nil // an error
	}
	of := schemas[fmt.Sprint(meta["version"])]
	if of == nil {
		return fmt.Errorf("release %v", meta["version"])
	}
	capabilities, _ := meta["capabilities"].(map[string]any)
	if meta["services"] != nil {
		err = of["profile"].Validate(content)
		if links, ok := capabilities["dev.ucp.shopping.permalink"].([]any); ok && overHTTPS(links[0]) {
			err = errors.Join(err, of["permalink"].Validate(links[0]))
		}
		return err
	}
	name := "cart"
	if capabilities["dev.ucp.shopping.discount"] != nil {
		name = "discounted"
	}
	if err = of[name].Validate(content); err == nil && content["line_items"] != nil {
		err = sums(content)
	}
	return err
}

// overHTTPS reports whether permalinks are of an https URL, as they must be except on this machine.
func overHTTPS(capability any) bool {
	config := capability.(map[string]any)["config"].(map[string]any)
	return strings.HasPrefix(config["endpoint"].(string), "https:")
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
		Version, Status string
		Capabilities    map[string]any
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
