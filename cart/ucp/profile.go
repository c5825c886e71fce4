package ucp

import (
	"github.com/gin-gonic/gin"

	"commerce/cart/wire"
)

const (
	spec   = "https://ucp.dev/" + version + "/specification/"
	schema = "https://ucp.dev/" + version + "/schemas/shopping/"
	binder = "https://ucp.dev/" + version + "/services/shopping/"
)

// profile answers with what the store of the request's host can do, and where.
func (a *API) profile(c *gin.Context) (wire.Answer, error) {
	store, err := a.Callers.HostStore(c.Request.Context(), a.Host(c.Request))
	if err != nil {
		return wire.Answer{}, err
	}
	endpoint := a.Origin(c.Request) + a.BasePath + prefix + store.PublicKeys[0]
	return wire.Answer{
		Language: store.Locale, Store: store.ID, Caller: wire.Agent, Cache: "public, max-age=300",
		Data: func(w *wire.Writer) { writeProfile(w, endpoint) },
	}, nil
}

func writeProfile(w *wire.Writer, endpoint string) {
	w.BeginObject()
	w.Object("ucp")
	w.Text("version", version)
	w.Object("services")
	w.Array("dev.ucp.shopping")
	writeService(w, "rest", endpoint, binder+"rest.openapi.json")
	writeService(w, "mcp", endpoint+"/mcp", binder+"mcp.openrpc.json")
	w.EndArray()
	w.EndObject()
	w.Object("capabilities")
	writeCapability(w, cartCapability, "cart", "")
	writeCapability(w, discountCapability, "discount", cartCapability)
	w.EndObject()
	w.Object("payment_handlers")
	w.EndObject()
	w.EndObject()
	w.EndObject()
}

func writeService(w *wire.Writer, transport, endpoint, schema string) {
	w.BeginObject()
	w.Text("version", version)
	w.Text("spec", spec+"overview")
	w.Text("transport", transport)
	w.Text("endpoint", endpoint)
	w.Text("schema", schema)
	w.EndObject()
}

// writeCapability writes a capability. extends is the one that it extends; "" for none.
func writeCapability(w *wire.Writer, name, page, extends string) {
	w.Array(name)
	w.BeginObject()
	w.Text("version", version)
	w.Text("spec", spec+page)
	w.Text("schema", schema+page+".json")
	if extends != "" {
		w.Text("extends", extends)
	}
	w.EndObject()
	w.EndArray()
}
