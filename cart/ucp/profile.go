package ucp

import (
	"net/url"

	"github.com/gin-gonic/gin"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/cart/wire"
)

// profile shows the profile of the latest release for the store of the host. It leads to those of all releases.
func (a *API) profile(g *gin.Context) (wire.Answer, error) {
	of, err := a.Callers.HostStore(g.Request.Context(), a.Host(g.Request))
	if err != nil {
		return wire.Answer{}, err
	}
	return a.showProfile(g, of, &releases[0], true), nil
}

func (a *API) profileOfRelease(g *gin.Context) (wire.Answer, error) {
	of, err := a.Callers.AgentStore(g.Request, g.Param("key"), wire.Client(g))
	if err != nil {
		return wire.Answer{}, err
	}
	r := releaseOf(g.Param("release"))
	if r == nil {
		return wire.Answer{}, errNoRelease
	}
	return a.showProfile(g, of, r, false), nil
}

func (a *API) showProfile(g *gin.Context, of *store.Store, r *release, leads bool) wire.Answer {
	endpoint := a.Origin(g.Request) + a.BasePath + prefix + url.PathEscape(of.PublicKeys[0])
	return wire.Answer{
		Language: of.Locale, Store: of.ID, Caller: wire.Agent, Cache: "public, max-age=300",
		Data: func(w *wire.Writer) {
			w.BeginObject()
			w.Object("ucp")
			w.Text("version", r.version)
			if leads {
				w.Object("supported_versions")
				for _, each := range releases {
					w.Text(each.version, endpoint+profiles+each.version)
				}
				w.EndObject()
			}
			r.writeServices(w, endpoint)
			r.writeCapabilities(w, endpoint, of.CartURL != "")
			w.Object("payment_handlers")
			w.EndObject()
			w.EndObject()
			w.EndObject()
		},
	}
}

func (r *release) writeServices(w *wire.Writer, endpoint string) {
	w.Object("services")
	w.Array("dev.ucp.shopping")
	for _, each := range []struct{ transport, endpoint, schema string }{
		{"rest", endpoint, "rest.openapi.json"},
		{"mcp", endpoint + "/mcp", "mcp.openrpc.json"},
	} {
		w.BeginObject()
		r.writeEntity(w, "overview", "services/shopping/"+each.schema)
		w.Text("transport", each.transport)
		w.Text("endpoint", each.endpoint)
		w.EndObject()
	}
	w.EndArray()
	w.EndObject()
}

// writeCapabilities writes that of permalinks only for a store with a page that takes their items over.
func (r *release) writeCapabilities(w *wire.Writer, endpoint string, page bool) {
	w.Object("capabilities")
	r.writeCapability(w, cartCapability, r.folder+"cart", "cart", nil)
	r.writeCapability(w, discountCapability, "discount", "discount", func() { w.Text("extends", cartCapability) })
	if r.permalinks && page {
		r.writeCapability(w, permalinkCapability, "permalink", "permalink", func() {
			w.Object("config")
			w.Text("endpoint", endpoint+buy)
			w.EndObject()
		})
	}
	w.EndObject()
}

// writeCapability writes a capability with the members that more writes; nil for none.
func (r *release) writeCapability(w *wire.Writer, name, page, schema string, more func()) {
	w.Array(name)
	w.BeginObject()
	r.writeEntity(w, page, "schemas/shopping/"+schema+".json")
	if more != nil {
		more()
	}
	w.EndObject()
	w.EndArray()
}

func (r *release) writeEntity(w *wire.Writer, page, schema string) {
	w.Text("version", r.version)
	w.Text("spec", "https://ucp.dev/"+r.version+"/specification/"+page)
	w.Text("schema", "https://ucp.dev/"+r.version+"/"+schema)
}

var errNoRelease = problem.New(problem.NotFound, "", locale.Text{
	locale.En: "This release of the protocol is not served.",
	locale.Ar: "هذا الإصدار من البروتوكول غير متاح.",
})
