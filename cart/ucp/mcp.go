package ucp

import (
	"cmp"
	_ "embed"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json/jsontext"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart/wire"
)

// tools is the result of tools/list. Its schemas refer to nothing outside: clients compile them.
//
//go:embed tools.json
var tools []byte

// revisions are the revisions of MCP that are served, the latest first. Calls are the same in all of them.
var revisions = []string{"2025-11-25", "2025-06-18", "2025-03-26"}

// mcp serves MCP by streamable HTTP without sessions and without streams.
func (a *API) mcp(g *gin.Context) (wire.Answer, error) {
	c, err := a.begin(g)
	if err != nil {
		return wire.Answer{}, err
	}
	if err := a.refusePage(g.Request); err != nil {
		return c.failed(nil), err
	}
	m, err := readRPC(g.Request)
	if err != nil {
		return c.failed(nil), err
	}
	if m.id == nil { // a notification or a response, which need no answer
		g.Status(http.StatusAccepted)
		return c.answer(0, nil), nil
	}
	value, err := c.method(m)
	if err != nil {
		return c.failed(rpcFailure(m.id, c.caller.Store.CartURL)), err
	}
	return c.answer(http.StatusOK, func(w *wire.Writer) {
		w.BeginObject()
		w.Text("jsonrpc", "2.0")
		w.JSON("id", m.id)
		w.JSON("result", value)
		w.EndObject()
	}), nil
}

// refusePage refuses the scripts of other origins than the service's own and those that may read its responses.
func (a *API) refusePage(r *http.Request) error {
	if origin := r.Header.Get("Origin"); origin != "" && !a.Allowed(origin) && !strings.EqualFold(origin, a.Origin(r)) {
		return errOrigin
	}
	return nil
}

// maxID is how many bytes of JSON an id may have: the response repeats it.
const maxID = 256

type rpc struct {
	id     jsontext.Value // nil for a notification or a response
	method string
	params wire.Object
}

func readRPC(r *http.Request) (m rpc, err error) {
	for _, revision := range r.Header.Values("MCP-Protocol-Version") {
		if !isRevision(revision) {
			return m, wire.BadHeader("MCP-Protocol-Version")
		}
	}
	_, o, err := wire.ReadBody(r)
	if err != nil {
		return m, err
	}
	_, result := o["result"]
	_, failure := o["error"]
	method, ok := wire.Unquote(o["method"])
	id, named := o["id"]
	params, given := o["params"]
	switch spoken, _ := wire.Unquote(o["jsonrpc"]); {
	case spoken != "2.0", named && (id.Kind() != '"' && id.Kind() != '0' || len(id) > maxID), given && params.Kind() != '{':
		return m, errRequest
	case !ok && (result || failure):
		return m, nil
	case !ok:
		return m, errRequest
	}
	m = rpc{id: id, method: method, params: wire.Object{}}
	if given {
		m.params = wire.Members(params)
	}
	return m, nil
}

func (c *call) method(m rpc) (jsontext.Value, error) {
	switch m.method {
	case "initialize":
		return initialized(m.params), nil
	case "ping":
		return jsontext.Value("{}"), nil
	case "tools/list":
		return tools, nil
	case "tools/call":
		if err := c.readTool(m.params); err != nil {
			return nil, err
		}
		r, err := c.run(c.Request.Context())
		if err != nil {
			return nil, err
		}
		w := c.writer()
		w.BeginObject()
		w.Array("content")
		w.BeginObject()
		w.Text("type", "text")
		w.Text("text", string(r.body))
		w.EndObject()
		w.EndArray()
		w.JSON("structuredContent", r.body)
		w.EndObject()
		return w.Bytes(), nil
	}
	return nil, errMethod
}

func initialized(params wire.Object) jsontext.Value {
	revision, _ := wire.Unquote(params["protocolVersion"])
	if !isRevision(revision) {
		revision = revisions[0]
	}
	return jsontext.Value(`{"protocolVersion":` + strconv.Quote(revision) +
		`,"capabilities":{"tools":{}},"serverInfo":{"name":"merchant-commerce","version":"` + releases[0].version + `"}}`)
}

func isRevision(text string) bool { return slices.Contains(revisions, text) }

func (c *call) readTool(params wire.Object) error {
	name, _ := wire.Unquote(params["name"])
	c.operation = operation(name)
	var r request
	arguments := r.object(params, "", "arguments")
	meta := r.object(arguments, "", "meta")
	agent := r.object(meta, "", "ucp-agent")
	c.cart, c.sent = r.object(arguments, "", "cart"), arguments["cart"]
	if r.faults != nil || !slices.Contains([]operation{create, get, update, cancel}, c.operation) {
		return errParams
	}
	c.caller.Profile, _ = wire.Unquote(agent["profile"])
	c.id, _ = wire.Unquote(arguments["id"])
	if key := "idempotency-key"; meta.Has(key) && c.operation != get {
		c.key, _ = wire.Unquote(meta[key])
		return checkKey("meta."+key, c.key)
	}
	return nil
}

// The codes of JSON-RPC's errors, by the tables of the protocol. Others are -32000.
var rpcCodes = map[problem.Code]int64{
	problem.MalformedJSON:        -32700,
	problem.InvalidParameter:     -32602,
	problem.BodyTooLarge:         -32600,
	problem.UnsupportedMediaType: -32600,
	problem.Internal:             -32603,
	"invalid_request":            -32600,
	"method_not_found":           -32601,
	"invalid_params":             -32602,
	"invalid_profile_url":        -32001,
	"profile_unreachable":        -32001,
	"profile_malformed":          -32001,
	"version_unsupported":        -32001,
}

// rpcFailure writes a protocol error over MCP. id is that of the request as it was sent; nil if it is not known.
func rpcFailure(id jsontext.Value, continueURL string) wire.Failure {
	if id == nil {
		id = jsontext.Value("null")
	}
	return func(w *wire.Writer, e *problem.Error, status int) {
		w.BeginObject()
		w.Text("jsonrpc", "2.0")
		w.JSON("id", id)
		w.Object("error")
		w.Number("code", cmp.Or(rpcCodes[e.Code], -32000))
		w.Text("message", e.Message(w.Language))
		w.Object("data")
		writeFault(w, e, continueURL)
		if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
			w.Number("retry_after", e.RetrySeconds())
		}
		w.EndObject()
		w.EndObject()
		w.EndObject()
	}
}

// refusal returns an error of MCP itself. Those of a method that was understood have the status 200.
func refusal(code problem.Code, status int, text locale.Text) *problem.Error {
	e := problem.New(code, "", text)
	e.Status = status
	return e
}

var (
	errOrigin = refusal("forbidden", http.StatusForbidden, locale.Text{
		locale.En: "Pages of this origin are not allowed to call the service.",
		locale.Ar: "لا يُسمح لصفحات هذا المصدر باستدعاء الخدمة.",
	})
	errRequest = refusal("invalid_request", http.StatusBadRequest, locale.Text{
		locale.En: "The request body must be a single JSON-RPC 2.0 request. Its id must be a string or a number of at most 256 bytes, and its params an object.",
		locale.Ar: "يجب أن يكون محتوى الطلب طلب JSON-RPC 2.0 واحدًا. يجب أن يكون id نصًا أو عددًا لا يتجاوز 256 بايت، وأن تكون params كائنًا.",
	})
	errMethod = refusal("method_not_found", http.StatusOK, locale.Text{
		locale.En: "The service has only the methods initialize, ping, tools/list and tools/call.",
		locale.Ar: "لا توفر الخدمة إلا الطرق initialize وping وtools/list وtools/call.",
	})
	errParams = refusal("invalid_params", http.StatusOK, locale.Text{
		locale.En: "There is no such tool, or one of arguments, meta, meta.ucp-agent and cart is not an object. See tools/list.",
		locale.Ar: "لا توجد أداة بهذا الاسم، أو أن إحدى القيم arguments وmeta وmeta.ucp-agent وcart ليست كائنًا. راجع tools/list.",
	})
)
